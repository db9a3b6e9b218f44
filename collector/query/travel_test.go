package query

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
)

// askWith makes a request with headers.
func askWith(api http.Handler, method, target string, header map[string]string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(method, target, http.NoBody)
	for name, value := range header {
		request.Header.Set(name, value)
	}
	answer := httptest.NewRecorder()
	api.ServeHTTP(answer, request)
	return answer
}

const (
	allBerlin    = "/api/v1/properties/berlin/events?period=30d"
	berlinBearer = "Bearer wt_berlin"
)

func TestAnswersAreCompressedForThoseWhoAcceptThat(t *testing.T) {
	_, api := serve(t)
	for name, test := range map[string]struct {
		method, target, accept, encodings string
		want                              bool
	}{
		"a page of events":                     {http.MethodGet, allBerlin, typeJSON, "gzip", true},
		"an export in CSV":                     {http.MethodGet, allBerlin, typeCSV, "gzip, deflate, br", true},
		"an export in NDJSON":                  {http.MethodGet, allBerlin, typeNDJSON, "gzip;q=0.5", true},
		"the API's description":                {http.MethodGet, "/api/v1/openapi.json", "*/*", "gzip", true},
		"the script of the page that shows it": {http.MethodGet, "/docs/docs.js", "*/*", "gzip", true},
		"not an answer of less than 1 KiB":     {http.MethodGet, allBerlin + "&limit=1", typeJSON, "gzip", false},
		"not an error":                         {http.MethodGet, allBerlin + "&limit=0", typeJSON, "gzip", false},
		"not for who accepts nothing of it":    {http.MethodGet, allBerlin, typeJSON, "", false},
		"not for who refuses it":               {http.MethodGet, allBerlin, typeJSON, "gzip;q=0", false},
		"not for who accepts something else":   {http.MethodGet, allBerlin, typeJSON, "br, zstd", false},
		"not for who asks for a header alone":  {http.MethodHead, allBerlin, typeJSON, "gzip", false},
	} {
		t.Run(name, func(t *testing.T) {
			header := map[string]string{"Authorization": berlinBearer, "Accept": test.accept}
			plain := askWith(api, test.method, test.target, header)
			header["Accept-Encoding"] = test.encodings
			answer := askWith(api, test.method, test.target, header)
			if got := answer.Header().Get("Content-Encoding") == "gzip"; got != test.want {
				t.Fatalf("got %d, %v", answer.Code, answer.Header())
			}
			if !strings.Contains(strings.Join(answer.Header().Values("Vary"), ", "), "Accept-Encoding") {
				t.Errorf("Vary is %q", answer.Header().Values("Vary"))
			}
			text := answer.Body.Bytes()
			if test.want {
				if len(text) >= plain.Body.Len() {
					t.Errorf("%d bytes became %d", plain.Body.Len(), len(text))
				}
				text = inflate(t, text)
			}
			if test.method == http.MethodGet && !bytes.Equal(text, plain.Body.Bytes()) {
				t.Errorf("got %s, want %s", text, plain.Body)
			}
		})
	}
}

func inflate(t *testing.T, compressed []byte) []byte {
	t.Helper()
	reader, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestWhatIsCutIsNoticedAlsoWhereItIsCompressed(t *testing.T) {
	for name, rows := range map[string]int{"before anything is sent": 0, "after a few rows": 10, "after many rows": 100_000} {
		t.Run(name, func(t *testing.T) {
			site := httptest.NewServer(compressed(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				out, err := newRowWriter(w, typeCSV, "n")
				for i := 0; i < rows && err == nil; i++ {
					err = out.write(numbered(i))
				}
				if err == nil {
					err = out.send()
				}
				if err != nil {
					t.Error(err)
				}
				panic(http.ErrAbortHandler)
			})))
			site.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
			defer site.Close()
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, site.URL, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Accept-Encoding", "gzip") // so that the client leaves the text as it is
			answer, err := site.Client().Do(request)
			if err != nil {
				return // there was nothing to take for an answer
			}
			defer answer.Body.Close()
			text, err := io.ReadAll(answer.Body)
			if err == nil {
				t.Fatalf("%d bytes seem to be whole", len(text))
			}
			// Nor does the text itself say that it is whole, to whoever stands behind a proxy that hides the cut.
			if reader, err := gzip.NewReader(bytes.NewReader(text)); err == nil {
				if _, err := io.Copy(io.Discard, reader); err == nil {
					t.Error("the compressed text ends properly")
				}
			}
		})
	}
}

// numbered is a row.
type numbered int

func (n numbered) columns() []column { return []column{computed(strconv.Itoa(int(n)))} }

func (n numbered) appendJSON(b []byte) ([]byte, error) { return fmt.Appendf(b, "%d", int(n)), nil }

func TestWhoHasAnAnswerAlreadyIsToldSo(t *testing.T) {
	_, api := serve(t)
	first := askWith(api, http.MethodGet, allBerlin, map[string]string{"Authorization": berlinBearer})
	tag := first.Header().Get("ETag")
	if !strings.HasPrefix(tag, `W/"`) {
		t.Fatalf("the tag is %q", tag)
	}
	strong := strings.TrimPrefix(tag, "W/")
	for name, test := range map[string]struct {
		method, target, accept, known string
		want                          int
		tagged                        bool
	}{
		"the same tag":                             {http.MethodGet, allBerlin, "", tag, 304, true},
		"the same tag for a header":                {http.MethodHead, allBerlin, "", tag, 304, true},
		"one of several":                           {http.MethodGet, allBerlin, "", `W/"a", ` + tag, 304, true},
		"the tag as a strong one, compared weakly": {http.MethodGet, allBerlin, "", strong, 304, true},
		"any":                      {http.MethodGet, allBerlin, "", "*", 304, true},
		"another tag":              {http.MethodGet, allBerlin, "", `W/"a"`, 200, true},
		"no tag":                   {http.MethodGet, allBerlin, "", "", 200, true},
		"another question":         {http.MethodGet, allBerlin + "&limit=3", "", tag, 200, true},
		"a stream, which has none": {http.MethodGet, allBerlin, typeCSV, "*", 200, false},
		"an error, which has none": {http.MethodGet, allBerlin + "&limit=0", "", "*", 422, false},
		"a list of properties":     {http.MethodGet, "/api/v1/properties", "", "*", 304, true},
	} {
		t.Run(name, func(t *testing.T) {
			header := map[string]string{"Authorization": berlinBearer, "If-None-Match": test.known, "Accept-Encoding": "gzip"}
			if test.accept != "" {
				header["Accept"] = test.accept
			}
			answer := askWith(api, test.method, test.target, header)
			if answer.Code != test.want || (answer.Header().Get("ETag") != "") != test.tagged {
				t.Fatalf("got %d, %v", answer.Code, answer.Header())
			}
			if test.want != http.StatusNotModified {
				return
			}
			if answer.Body.Len() > 0 || answer.Header().Get("Content-Length") != "" || answer.Header().Get("Content-Encoding") != "" {
				t.Errorf("there is a text: %v %q", answer.Header(), answer.Body)
			}
			if test.target == allBerlin {
				for _, name := range []string{"Weir-As-Of", "Vary", "Cache-Control"} {
					if answer.Header().Get(name) == "" || first.Header().Get(name) != answer.Header().Get(name) {
						t.Errorf("%s: got %q, want %q", name, answer.Header().Get(name), first.Header().Get(name))
					}
				}
			}
		})
	}
}

func TestATagFollowsTheText(t *testing.T) {
	onEachEngine(t, func(t *testing.T, engine engineMaker) {
		handler, api := serveFrom(t, engine)
		header := map[string]string{"Authorization": berlinBearer}
		before := askWith(api, http.MethodGet, allBerlin, header).Header().Get("ETag")
		if again := askWith(api, http.MethodGet, allBerlin, header).Header().Get("ETag"); again != before {
			t.Errorf("the same text has the tags %q and %q", before, again)
		}
		view := (*handler.tenants.Load())[indexOf(t, handler, "berlin")].Engine.(learner)
		if err := view.AddEvents(arrivals(t, 1, fixtureNow)); err != nil {
			t.Fatal(err)
		}
		header["If-None-Match"] = before
		if answer := askWith(api, http.MethodGet, allBerlin, header); answer.Code != http.StatusOK {
			t.Errorf("got %d after an event has come", answer.Code)
		}
	})
}

func TestAllThatAnswersTravelByLeadsToTheConnection(t *testing.T) {
	for _, encoding := range []string{"gzip", "identity"} {
		recorder, reached := httptest.NewRecorder(), false
		handler := compressed(tagged(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for w != nil && !reached {
				reached = w == http.ResponseWriter(recorder)
				unwrapper, _ := w.(interface{ Unwrap() http.ResponseWriter })
				if unwrapper == nil {
					return
				}
				w = unwrapper.Unwrap()
			}
		})))
		request := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		request.Header.Set("Accept-Encoding", encoding)
		if handler.ServeHTTP(recorder, request); !reached {
			t.Errorf("%s: a writer hides what it wraps", encoding)
		}
	}
}
