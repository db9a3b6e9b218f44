package query

import (
	standard "cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/stream"
)

// anErasure is the id of one.
const anErasure = "3e1f8e44-5a5c-4c0e-9d0b-6b1f4b9a7c21"

// eraser takes requests, and knows states.
type eraser struct {
	mu     sync.Mutex
	asked  []stream.ErasureRequest
	states map[string]stream.ErasureState
	err    error
	// wait is how long a request waits for the ledger.
	wait time.Duration
}

func (e *eraser) Erase(ctx context.Context, r stream.ErasureRequest) (stream.ErasureState, error) {
	e.mu.Lock()
	e.asked = append(e.asked, r)
	e.mu.Unlock()
	if e.wait > 0 {
		select {
		case <-ctx.Done():
			return stream.ErasureState{}, stream.ErrNotLedgered
		case <-time.After(e.wait):
		}
	}
	return stream.ErasureState{ID: anErasure, Requested: fixtureNow, Ledgered: fixtureNow}, e.err
}

func (e *eraser) Erasure(_ context.Context, id string) (stream.ErasureState, error) {
	if state, found := e.states[id]; found || e.err != nil {
		return state, e.err
	}
	return stream.ErasureState{}, stream.ErrNoErasure
}

// erasing is a read API of a property with an eraser, and its log.
func erasing(e *eraser, log *strings.Builder, named ...platforms.Platform) http.Handler {
	_, api := erasingHandler(e, log, named...)
	return api
}

func erasingHandler(e *eraser, log *strings.Builder, named ...platforms.Platform) (*Handler, http.Handler) {
	handler := New(Options{Logger: slog.New(slog.NewTextHandler(log, nil)), Now: func() time.Time { return fixtureNow }})
	handler.Serve([]Tenant{{
		Property: config.Property{Namespace: "default", Name: "shop", Platforms: named}, Location: time.UTC, Eraser: e,
		Engine: analytics.NewView(analytics.Options{Property: "default/shop", Currency: "EUR", Logger: slog.New(slog.DiscardHandler)}),
		Tokens: []auth.Credential{{Name: "dpo", Hash: auth.HashOf("wt_admin"), Scope: auth.ScopeAdmin}, {Name: "ops", Hash: auth.HashOf("wt_write"), Scope: auth.ScopeWrite}},
	}})
	return handler, routes(handler)
}

// askErasures makes a call with a token, that of an admin where it is "".
func askErasures(api http.Handler, method, token, path, kind, body string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(method, "/api/v1/properties/shop/erasures"+path, strings.NewReader(body))
	request.Header.Set("Authorization", "Bearer "+standard.Or(token, "wt_admin"))
	request.Header.Set("Content-Type", standard.Or(kind, "application/json"))
	answer := httptest.NewRecorder()
	api.ServeHTTP(answer, request)
	return answer
}

func TestWhoIsErasedIsNamedByOneMember(t *testing.T) {
	jane := event.Event{ClientID: "jane-client"}
	client := jane.Identifiers("default/shop", nil).List
	fieldErr := func(field, message string) string {
		return `{"message":"` + message + `","errors":{"` + field + `":["` + message + `"]}}`
	}
	const known = "known are email, phone, client_id, user_id, linked, suppress."
	for sentence, test := range map[string]struct {
		token, kind, body string
		status            int
		// answer is what an error says.
		answer           string
		linked, suppress bool
		// ids are whom it asks for, nil for any.
		ids []event.Identifier
	}{
		"a client id":                           {body: `{"client_id": "jane-client"}`, status: 202, ids: client},
		"what was seen with it, too":            {body: `{"client_id": " jane-client ", "linked": true, "suppress": false}`, status: 202, linked: true, ids: client},
		"and suppressed from then on":           {body: `{"client_id": "jane-client", "suppress": true, "linked": null}`, status: 202, suppress: true, ids: client},
		"an e-mail address":                     {body: `{"email": "Jane.Doe@example.com"}`, status: 202},
		"members that are null count as absent": {body: `{"email": null, "phone": "", "client_id": "jane-client"}`, status: 202, ids: client},
		"nobody": {
			body: `{"linked": true}`, status: 422, answer: fieldErr("email", "One of the fields email, phone, client_id, user_id is required."),
		},
		"two": {
			body: `{"phone": "+41791234567", "email": "jane.doe@example.com"}`, status: 422,
			answer: fieldErr("phone", "The phone field must be absent beside email: an erasure is of one subject."),
		},
		"an address that is none, which is not repeated": {
			body: `{"email": "jane.doe at example"}`, status: 422, answer: fieldErr("email", "The email field must be a valid email address."),
		},
		"an id of nobody": {body: `{"client_id": "undefined"}`, status: 422, answer: fieldErr("client_id", "The client_id field format is invalid.")},
		"a member that there is not": {
			body: `{"client_id": "jane-client", "name": "Jane"}`, status: 422, answer: fieldErr("name", "The name field is unknown; "+known),
		},
		"a switch that is neither on nor off": {
			body: `{"client_id": "jane-client", "linked": "yes"}`, status: 422, answer: fieldErr("linked", "The linked field must be true or false."),
		},
		"a member twice":           {body: `{"client_id": "a", "client_id": "b"}`, status: 400, answer: `{"message":"The body must be a JSON object."}`},
		"a body that is no JSON":   {body: `{"email"`, status: 400, answer: `{"message":"The body must be a JSON object."}`},
		"a body that is no object": {body: `null`, status: 400, answer: `{"message":"The body must be a JSON object."}`},
		"a body that is too large": {
			body: `{"email": "` + strings.Repeat("x", maxErasureBody) + `"}`, status: 413, answer: `{"message":"The body must not be larger than 16384 bytes."}`,
		},
		"a body of another type":      {kind: "text/plain", body: `{}`, status: 415, answer: `{"message":"The Content-Type must be application/json."}`},
		"a token that may only write": {token: "wt_write", body: `{"client_id": "jane-client"}`, status: 403, answer: `{"message":"This action is unauthorized."}`},
		"a token that there is not":   {token: "wt_nobody", body: `{"client_id": "jane-client"}`, status: 401, answer: `{"message":"Unauthenticated."}`},
	} {
		t.Run(sentence, func(t *testing.T) {
			e, log := &eraser{}, &strings.Builder{}
			answer := askErasures(erasing(e, log), http.MethodPost, test.token, "", test.kind, test.body)
			if answer.Code != test.status || test.answer != "" && answer.Body.String() != test.answer {
				t.Fatalf("got %d %s\nwant %d %s", answer.Code, answer.Body, test.status, test.answer)
			}
			if strings.Contains(strings.ToLower(log.String()), "jane") {
				t.Errorf("the log tells of the person: %s", log)
			}
			if (len(e.asked) == 1) != (test.status == 202) {
				t.Fatalf("asked for %v", e.asked)
			}
			if test.status != 202 {
				return
			}
			got := e.asked[0]
			if got.Linked != test.linked || got.Suppress != test.suppress || got.Origin != "api:dpo" || len(got.Identifiers) == 0 {
				t.Errorf("asked for %+v", got)
			}
			if test.ids != nil && !slices.Equal(got.Identifiers, test.ids) {
				t.Errorf("identifiers (-want +got):\n%s", cmp.Diff(test.ids, got.Identifiers))
			}
		})
	}
}

func TestAnErasureThatStandsInNoLedgerIsAskedForAgain(t *testing.T) {
	for sentence, test := range map[string]struct {
		err  error
		want string
	}{
		"nobody keeps the ledger": {stream.ErrNotLedgered, notLedgered},
		"Redis is away":           {errors.New("dial tcp: connection refused"), "The erasure cannot be requested at the moment. Please ask again."},
	} {
		t.Run(sentence, func(t *testing.T) {
			log := &strings.Builder{}
			answer := askErasures(erasing(&eraser{err: test.err}, log), http.MethodPost, "", "", "", `{"email": "jane.doe@example.com"}`)
			if want := `{"message":"` + test.want + `"}`; answer.Code != 503 || answer.Body.String() != want || answer.Header().Get("Retry-After") == "" {
				t.Errorf("got %d %s", answer.Code, answer.Body)
			}
			if log.Len() == 0 || strings.Contains(log.String(), "jane") {
				t.Errorf("the log says %q", log)
			}
		})
	}
}

func TestTheStateOfAnErasure(t *testing.T) {
	at := func(seconds int) time.Time { return fixtureNow.Add(time.Duration(seconds) * time.Second) }
	ledgered := stream.ErasureState{ID: anErasure, Requested: at(0), Ledgered: at(1)}
	hidden := ledgered
	hidden.Hidden, hidden.Events, hidden.Records, hidden.Identifiers, hidden.Linked, hidden.Platforms = at(9), 3, 2, 4, 1, []string{"crm", "old"}
	purged := hidden
	purged.Purged = at(3600)
	forwarded := hidden
	forwarded.Forwarded = map[string]time.Time{"crm": at(6)}
	failed := forwarded
	failed.Unforwarded = map[string]string{"crm": "http_503"}
	unpurged := hidden
	unpurged.Unpurged = stream.UnpurgedSnapshots
	unhidden := ledgered
	unhidden.Unhidden = stream.UnhiddenHistory
	const notAsked = `"forwarded":"not_asked","forwarded_at":null,"forward_failure":null,`
	const webhook = notAsked + `"instruction":"Erase the person in whatever stores what your receiver was sent: each event there has the client_id, the user_id and the hashes.","documentation":null}`
	begin := `{"data":{"id":"` + anErasure + `","status":`
	const times = `"requested_at":"2026-10-26T10:00:01.000Z","ledgered_at":"2026-10-26T10:00:02.000Z",`
	for sentence, test := range map[string]struct {
		state stream.ErasureState
		want  string
	}{
		"in the ledger, and nothing done yet": {ledgered, begin + `"ledgered",` + times + `"hidden_at":null,"purge_by":"2026-10-27T10:00:02.000Z","purged_at":null,"unhidden_reason":null,"unpurged_reason":null,` +
			`"events":0,"delivery_records":0,"identifiers":0,"linked_identifiers":0,"platforms":[{"platform":"crm","type":"Webhook","sent":false,` + webhook + `]}}`},
		"hidden, with a platform that the Property names no more": {hidden, begin + `"hidden",` + times +
			`"hidden_at":"2026-10-26T10:00:10.000Z","purge_by":"2026-10-27T10:00:02.000Z","purged_at":null,"unhidden_reason":null,"unpurged_reason":null,"events":3,"delivery_records":2,"identifiers":4,"linked_identifiers":1,` +
			`"platforms":[{"platform":"crm","type":"Webhook","sent":true,` + webhook + `,{"platform":"old","sent":true,` + notAsked + `"instruction":"` + formerPlatform + `","documentation":null}]}}`},
		"purged":              {purged, `"status":"purged"`},
		"taken by a platform": {forwarded, `"sent":true,"forwarded":"done","forwarded_at":"2026-10-26T10:00:07.000Z","forward_failure":null,`},
		"taken by a platform in part, which is left to the owner": {
			failed, `"sent":true,"forwarded":"failed","forwarded_at":"2026-10-26T10:00:07.000Z","forward_failure":"http_503",`,
		},
		"gone from Redis, and not from the history": {unhidden, `"status":"ledgered",`},
		"gone from Redis, with what it waits for":   {unhidden, `"hidden_at":null,"purge_by":"2026-10-27T10:00:02.000Z","purged_at":null,"unhidden_reason":"history","unpurged_reason":null`},
		"hidden, in a Redis that writes snapshots":  {unpurged, `"purged_at":null,"unhidden_reason":null,"unpurged_reason":"snapshots"`},
	} {
		t.Run(sentence, func(t *testing.T) {
			e := &eraser{states: map[string]stream.ErasureState{anErasure: test.state}}
			api := erasing(e, &strings.Builder{}, platforms.Platform{Name: "crm", Type: platforms.TypeWebhook})
			answer := askErasures(api, http.MethodGet, "", "/"+anErasure, "", "")
			if answer.Code != 200 || !strings.Contains(answer.Body.String(), test.want) {
				t.Errorf("got %d %s\nwant %s", answer.Code, answer.Body, test.want)
			}
			if unknown := askErasures(api, http.MethodGet, "", "/3e1f8e44-5a5c-4c0e-9d0b-000000000000", "", ""); unknown.Code != 404 {
				t.Errorf("an unknown one: %d", unknown.Code)
			}
		})
	}
}

// TestAThousandErasuresHoldUpNoQuery has a thousand callers wait for a ledger that takes its time, and others ask.
func TestAThousandErasuresHoldUpNoQuery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &eraser{wait: 5 * time.Second}
		api := erasing(e, &strings.Builder{})
		var waiting sync.WaitGroup
		statuses := make([]int, 1000)
		for i := range statuses {
			waiting.Go(func() {
				statuses[i] = askErasures(api, http.MethodPost, "", "", "", `{"client_id": "jane-client"}`).Code
			})
		}
		synctest.Wait()
		if len(e.asked) != len(statuses) {
			t.Fatalf("%d ask at once, want %d", len(e.asked), len(statuses))
		}
		request := httptest.NewRequest(http.MethodGet, "/api/v1/properties/shop/analytics/summary", nil)
		request.Header.Set("Authorization", "Bearer wt_admin")
		answer, began := httptest.NewRecorder(), time.Now()
		api.ServeHTTP(answer, request)
		if took := time.Since(began); took > 0 || strings.Contains(answer.Body.String(), "Too many queries") {
			t.Errorf("a query took %s: %d %s", took, answer.Code, answer.Body)
		}
		waiting.Wait()
		for _, status := range statuses {
			if status != 202 {
				t.Fatalf("an erasure was answered %d", status)
			}
		}
	})
}

// TestAnErasureWaitsNoLongerThanEightSeconds has nobody keep the ledger.
func TestAnErasureWaitsNoLongerThanEightSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		answer := askErasures(erasing(&eraser{wait: time.Hour}, &strings.Builder{}), http.MethodPost, "", "", "", `{"client_id": "jane-client"}`)
		if took := time.Since(began); answer.Code != 503 || took != 8*time.Second {
			t.Errorf("answered %d after %s", answer.Code, took)
		}
	})
}

func FuzzErasure(f *testing.F) {
	for _, body := range []string{
		`{"email": "Jane.Doe@example.com", "linked": true}`, `{"phone": "+41791234567", "suppress": true}`, `{"client_id": 4711}`, `{"user_id": "null"}`, `{"email": [], "x": {}}`, `{`,
	} {
		f.Add(body)
	}
	handler := New(Options{Logger: slog.New(slog.DiscardHandler), Now: func() time.Time { return fixtureNow }})
	e := &eraser{}
	handler.Serve([]Tenant{{
		Property: config.Property{Namespace: "default", Name: "shop"}, Location: time.UTC, Eraser: e,
		Tokens: []auth.Credential{{Name: "dpo", Hash: auth.HashOf("wt_admin"), Scope: auth.ScopeAdmin}},
	}})
	router := chi.NewRouter()
	handler.Routes(router)
	f.Fuzz(func(t *testing.T, body string) {
		e.asked = nil
		answer := askErasures(router, http.MethodPost, "", "", "", body)
		switch answer.Code {
		case 202, 400, 413, 422:
		default:
			t.Errorf("answered %d %s", answer.Code, answer.Body)
		}
		if asked := len(e.asked); (asked == 1) != (answer.Code == 202) || asked == 1 && (len(e.asked[0].Identifiers) == 0 || len(e.asked[0].Identifiers) > stream.MaxErasureIdentifiers) {
			t.Errorf("answered %d, asked for %v", answer.Code, e.asked)
		}
	})
}
