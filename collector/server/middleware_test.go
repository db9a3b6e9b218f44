package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/server"
)

func emptyRegistry() *prometheus.Registry { return prometheus.NewRegistry() }

// secret stands in every path of these tests; it may appear nowhere else.
const secret = "wk_secret"

// observed is a router with routes of every kind, its log and its metrics.
type observed struct {
	http.Handler
	log     *bytes.Buffer
	metrics *prometheus.Registry
}

func newObserved() observed {
	o := observed{log: new(bytes.Buffer), metrics: emptyRegistry()}
	logger := slog.New(slog.NewJSONHandler(o.log, nil))
	router := server.NewRouter(server.NewObserver(logger, o.metrics))
	router.Post("/collect/{key}", func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Query().Get("do") {
		case "refuse":
			server.Note(w, slog.String("property", "shop"))
			server.Invalid(w, event.Errors{{Field: "event", Message: "The event field is required."}})
		case "panic":
			panic("the key is " + chi.URLParam(r, "key"))
		case "panic at run time":
			_ = []int{1}[len(r.Method)]
		case "panic late":
			server.Message(w, http.StatusAccepted, "begun")
			panic(errors.New(secret))
		case "nothing":
		default:
			server.Message(w, http.StatusAccepted, "served")
		}
	})
	router.Route("/api/v1", func(r chi.Router) {
		r.Get("/properties/{id}", func(w http.ResponseWriter, _ *http.Request) { server.Message(w, http.StatusOK, "read") })
		r.Delete("/properties/{id}", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	})
	o.Handler = router
	return o
}

func TestEveryRequestIsAnsweredCountedAndLogged(t *testing.T) {
	for name, c := range map[string]struct {
		method, path string
		status       int
		body         string
		allow        string
		route        string
		logged       string // a part of the log line
	}{
		"one that is served": {
			method: "POST", path: "/collect/" + secret, status: 202, body: `{"message":"served"}`, route: "/collect/{key}",
			logged: `"level":"INFO","msg":"request served","method":"POST","route":"/collect/{key}","status":202`,
		},
		"one that is refused, with what the handler notes": {
			method: "POST", path: "/collect/" + secret + "?do=refuse", status: 422,
			body:  `{"message":"The event field is required.","errors":{"event":["The event field is required."]}}`,
			route: "/collect/{key}", logged: `"level":"INFO","msg":"request not served","method":"POST","route":"/collect/{key}","status":422`,
		},
		"one without a route": {
			method: "GET", path: "/collect/" + secret + "/more", status: 404, body: `{"message":"Not found."}`, route: "unmatched", logged: `"status":404`,
		},
		"one below a router without a route": {
			method: "GET", path: "/api/v1/" + secret, status: 404, body: `{"message":"Not found."}`, route: "unmatched", logged: `"status":404`,
		},
		"one of another method": {
			method: "GET", path: "/collect/" + secret, status: 405, body: `{"message":"Method not allowed."}`, allow: "POST", route: "unmatched", logged: `"method":"GET"`,
		},
		"one of another method below a router": {
			method: "POST", path: "/api/v1/properties/" + secret, status: 405, body: `{"message":"Method not allowed."}`, allow: "GET, HEAD, DELETE",
			route: "unmatched", logged: `"status":405`,
		},
		"one of a method that nobody knows": {
			method: "JANE", path: "/collect/" + secret, status: 405, body: `{"message":"Method not allowed."}`, allow: "POST", route: "unmatched", logged: `"method":"other"`,
		},
		"one below a router": {
			method: "GET", path: "/api/v1/properties/" + secret, status: 200, body: `{"message":"read"}`, route: "/api/v1/properties/{id}",
			logged: `"msg":"request served"`,
		},
		"one that the handler leaves unanswered": {
			method: "POST", path: "/collect/" + secret + "?do=nothing", status: 200, route: "/collect/{key}", logged: `"msg":"request served"`,
		},
		"one that panics": {
			method: "POST", path: "/collect/" + secret + "?do=panic", status: 500, body: `{"message":"Server Error"}`, route: "/collect/{key}",
			logged: `"panic":"string","stack":"goroutine`,
		},
		"one that panics at run time": {
			method: "POST", path: "/collect/" + secret + "?do=panic+at+run+time", status: 500, body: `{"message":"Server Error"}`, route: "/collect/{key}",
			logged: `"panic":"runtime error: index out of range [4] with length 1"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := newObserved()
			recorder := httptest.NewRecorder()
			o.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), c.method, c.path, nil))

			if recorder.Code != c.status || recorder.Body.String() != c.body {
				t.Errorf("got %d %s, want %d %s", recorder.Code, recorder.Body, c.status, c.body)
			}
			if got := recorder.Header().Get("Allow"); got != c.allow {
				t.Errorf("Allow: got %q, want %q", got, c.allow)
			}
			// What has a route says for itself.
			for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"} {
				if got := recorder.Header().Get(name); (got == want) != (c.route == "unmatched") {
					t.Errorf("%s: got %q for the route %s", name, got, c.route)
				}
			}
			if !strings.Contains(o.log.String(), c.logged) {
				t.Errorf("log: got %s, want %s", o.log, c.logged)
			}
			if lines := strings.Count(o.log.String(), "\n"); lines != 1 {
				t.Errorf("log: got %d lines, want one", lines)
			}
			if strings.Contains(o.log.String(), secret) {
				t.Errorf("the log repeats the path: %s", o.log)
			}
			want := map[string]string{"route": c.route, "code": http.StatusText(c.status)}
			if diff := cmp.Diff([]map[string]string{want}, counted(t, o.metrics)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestASampleOfRequestsIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newObserved()
		send := func(query string) {
			o.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/collect/"+secret+query, nil))
		}
		lines := func(message string) int { return strings.Count(o.log.String(), `"msg":"`+message+`"`) }
		for range 50 {
			send("?do=refuse")
		}
		for range 50 {
			send("")
		}
		if served, refused := lines("request served"), lines("request not served"); served != 1 || refused != 10 {
			t.Errorf("in the first second %d served and %d refused requests are logged, want 1 and 10", served, refused)
		}
		send("?do=panic")
		if refused := lines("request not served"); refused != 11 {
			t.Error("a request that was not served for another reason is not logged")
		}
		<-time.After(time.Second) // at once: the clock is synctest's
		for range 50 {
			send("")
			send("?do=refuse")
		}
		if served, refused := lines("request served"), lines("request not served"); served != 2 || refused != 12 {
			t.Errorf("in two seconds %d served and %d refused requests are logged, want 2 and 12", served, refused)
		}
		if !strings.Contains(o.log.String(), `"suppressed":40`) {
			t.Errorf("nothing says how many were not logged: %s", o.log)
		}
	})
}

// counted returns the labels of the requests that were counted, with the status in words.
func counted(t *testing.T, metrics prometheus.Gatherer) []map[string]string {
	t.Helper()
	families, err := metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var found []map[string]string
	for _, family := range families {
		if family.GetName() != "weir_http_request_duration_seconds" {
			continue
		}
		for _, metric := range family.GetMetric() {
			if metric.GetHistogram().GetSampleCount() != 1 {
				t.Errorf("counted %d times", metric.GetHistogram().GetSampleCount())
			}
			labels := map[string]string{}
			for _, pair := range metric.GetLabel() {
				labels[pair.GetName()] = pair.GetValue()
			}
			var code int
			if err := json.Unmarshal([]byte(labels["code"]), &code); err != nil {
				t.Error(err)
			}
			labels["code"] = http.StatusText(code)
			found = append(found, labels)
		}
	}
	return found
}

func TestAnAnswerThatATornHandlerBeganIsCutOff(t *testing.T) {
	o := newObserved()
	serving := httptest.NewServer(o)
	defer serving.Close()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, serving.URL+"/collect/"+secret+"?do=panic+late", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err == nil {
		_, err = io.ReadAll(response.Body)
		response.Body.Close()
	}
	if err == nil {
		t.Error("the answer arrived in full")
	}
	serving.Close()
	if got := o.log.String(); !strings.Contains(got, `"status":500`) || !strings.Contains(got, `"panic":"*errors.errorString"`) || strings.Contains(got, secret) {
		t.Errorf("log: got %s", got)
	}
}

func TestNoteWithoutAnObserverIsHarmless(t *testing.T) {
	server.Note(httptest.NewRecorder(), slog.String("property", "shop"))
}

func TestReadinessNamesTheReasons(t *testing.T) {
	blocked := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	for name, c := range map[string]struct {
		checks []server.Check
		status int
		body   string
	}{
		"without checks": {nil, 200, `{"status":"ok"}`},
		"when all are ready": {
			[]server.Check{{Name: "redis", Ready: func(context.Context) error { return nil }}}, 200, `{"status":"ok","checks":{"redis":"ok"}}`,
		},
		"when one is not": {[]server.Check{
			{Name: "redis", Ready: func(context.Context) error { return nil }},
			{Name: "view", Ready: func(context.Context) error { return errors.New("replaying: 40 %") }},
		}, 503, `{"status":"unavailable","checks":{"redis":"ok","view":"replaying: 40 %"}}`},
		"when two do not answer": {
			[]server.Check{{Name: "a", Ready: blocked}, {Name: "b", Ready: blocked}}, 503,
			`{"status":"unavailable","checks":{"a":"context deadline exceeded","b":"context deadline exceeded"}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			handler := server.OperationsHandler(server.NewHealth(c.checks...), emptyRegistry())
			recorder := httptest.NewRecorder()
			handler.ServeHTTP(recorder, httptest.NewRequestWithContext(ctx, http.MethodGet, "/readyz", nil))
			var got, want any
			if err := errors.Join(json.Unmarshal(recorder.Body.Bytes(), &got), json.Unmarshal([]byte(c.body), &want)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" || recorder.Code != c.status {
				t.Errorf("got %d, want %d\n%s", recorder.Code, c.status, diff)
			}
		})
	}
}

func TestMetricsAreServedForPrometheus(t *testing.T) {
	registry := emptyRegistry()
	counter := prometheus.NewCounter(prometheus.CounterOpts{Name: "weir_test_total"})
	registry.MustRegister(counter)
	counter.Inc()
	handler := server.OperationsHandler(server.NewHealth(), registry)
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	if recorder.Code != 200 || !strings.Contains(recorder.Body.String(), "weir_test_total 1") {
		t.Errorf("got %d %s", recorder.Code, recorder.Body)
	}
	recorder = httptest.NewRecorder()
	handler.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/debug/pprof/", nil))
	if recorder.Code != 404 {
		t.Errorf("another path: got %d, want 404", recorder.Code)
	}
}

func TestRetryAfterIsInWholeSecondsRoundedUp(t *testing.T) {
	for after, want := range map[time.Duration]string{0: "1", time.Millisecond: "1", time.Second: "1", 1001 * time.Millisecond: "2", time.Minute: "60"} {
		recorder := httptest.NewRecorder()
		server.Unavailable(recorder, "Later.", after)
		if got := recorder.Header().Get("Retry-After"); got != want || recorder.Code != 503 {
			t.Errorf("after %s: got %d, Retry-After %q, want 503, %q", after, recorder.Code, got, want)
		}
	}
}
