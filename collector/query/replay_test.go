package query

import (
	standard "cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/stream"
)

// replayer notes what it is asked for.
type replayer struct {
	asked []stream.ReplayRequest
	err   error
}

func (r *replayer) Replay(_ context.Context, request stream.ReplayRequest) (int, error) {
	r.asked = append(r.asked, request)
	return 7, r.err
}

// earliestAt is a property whose events are there from a time on.
type earliestAt struct {
	at  time.Time
	err error
}

func (e earliestAt) Earliest(context.Context) (time.Time, error) { return e.at, e.err }

func TestReplay(t *testing.T) {
	day := func(day, hour int) time.Time { return time.Date(2026, time.October, day, hour, 0, 0, 0, time.UTC) }
	all := []stream.Status{stream.Failed, stream.Expired}
	const accepted, scopeMissing = `{"data":{"replayed":7}}`, `{"message":"This action is unauthorized."}`
	fieldErr := func(field, message string) string {
		return `{"message":"` + message + `","errors":{"` + field + `":["` + message + `"]}}`
	}
	for name, test := range map[string]struct {
		token, body, kind string
		err               error
		reach             Reach
		status            int
		answer            string
		asked             []stream.ReplayRequest
	}{
		"failed and expired ones until now, where it does not say otherwise": {
			body: `{"platform": "crm", "from": "2026-10-25"}`, status: 202, answer: accepted,
			asked: []stream.ReplayRequest{{Platform: "crm", From: day(24, 22), To: fixtureNow, Statuses: all}},
		},
		"days in the property's time zone": {
			body: `{"platform": "crm", "from": "2026-10-20", "to": "2026-10-21", "status": ["failed"]}`, status: 202, answer: accepted,
			asked: []stream.ReplayRequest{{Platform: "crm", From: day(19, 22), To: day(21, 22), Statuses: all[:1]}},
		},
		"timestamps as they are": {
			body:   `{"platform": "crm", "from": "2026-10-20T01:00:00Z", "to": "2026-10-20T04:00:00+02:00", "status": ["expired"]}`,
			status: 202, answer: accepted,
			asked: []stream.ReplayRequest{{Platform: "crm", From: day(20, 1), To: day(20, 2), Statuses: all[1:]}},
		},
		"a period that begins where everything is still there": {
			body: `{"platform": "crm", "from": "2026-10-20T01:00:00Z", "to": "2026-10-20T02:00:00Z"}`, status: 202, answer: accepted,
			reach: earliestAt{at: day(20, 1)},
			asked: []stream.ReplayRequest{{Platform: "crm", From: day(20, 1), To: day(20, 2), Statuses: all}},
		},
		"one that begins a moment before, as that moves on": {
			body: `{"platform": "crm", "from": "2026-10-20T01:00:00Z", "to": "2026-10-20T02:00:00Z"}`, status: 202, answer: accepted,
			reach: earliestAt{at: day(20, 1).Add(reachSlack)},
			asked: []stream.ReplayRequest{{Platform: "crm", From: day(20, 1), To: day(20, 2), Statuses: all}},
		},
		"one from before everything that is there is told the earliest time": {
			body: `{"platform": "crm", "from": "2026-10-20T01:00:00Z"}`, status: 422, reach: earliestAt{at: day(21, 7).Add(time.Millisecond)},
			answer: fieldErr("from", "Events from before 2026-10-21T07:00:00.001Z are not there any more; that is the earliest time from which on deliveries can be put back."),
		},
		"nothing is put back where that is not known": {
			body: `{"platform": "crm", "from": "2026-10-20T01:00:00Z"}`, status: 503, reach: earliestAt{err: errors.New("away")},
			answer: `{"message":"The deliveries cannot be put back now. Those that were are not put back again."}`,
		},
		"a token that may only read is refused": {token: "wt_read", body: `{}`, status: 403, answer: scopeMissing},
		"an unknown token is refused":           {token: "wt_nobody", body: `{}`, status: 401, answer: `{"message":"Unauthenticated."}`},
		"a member that there is not": {
			body: `{"platform": "crm", "from": "2026-10-20", "statuses": ["failed"]}`, status: 422,
			answer: fieldErr("statuses", "The statuses field is unknown; known are platform, from, to, status."),
		},
		"a platform is required": {
			body: `{"from": "2026-10-20"}`, status: 422, answer: fieldErr("platform", "The platform field is required."),
		},
		"a platform that the property does not have": {
			body: `{"platform": "x", "from": "2026-10-20"}`, status: 422, answer: fieldErr("platform", "The selected platform is invalid."),
		},
		"a platform that is no string": {
			body: `{"platform": 1, "from": "2026-10-20"}`, status: 422, answer: fieldErr("platform", "The platform field must be a string."),
		},
		"a beginning is required": {
			body: `{"platform": "crm", "from": ""}`, status: 422, answer: fieldErr("from", "The from field is required."),
		},
		"a status that is never replayed": {
			body:   `{"platform": "crm", "from": "2026-10-20", "status": ["failed", "delivered"]}`,
			status: 422, answer: fieldErr("status.1", "The selected status.1 is invalid."),
		},
		"a status that is no list": {
			body: `{"platform": "crm", "from": "2026-10-20", "status": "failed"}`, status: 422, answer: fieldErr("status", "The status field must be an array."),
		},
		"no status": {
			body: `{"platform": "crm", "from": "2026-10-20", "status": []}`, status: 422, answer: fieldErr("status", "The status field is required."),
		},
		"a body that is no JSON":   {body: `{"platform"`, status: 400, answer: `{"message":"The body must be a JSON object."}`},
		"a body that is no object": {body: `null`, status: 400, answer: `{"message":"The body must be a JSON object."}`},
		"a body of another type":   {body: `{}`, kind: "text/plain", status: 415, answer: `{"message":"The Content-Type must be application/json."}`},
		"a body that is too large": {body: `{"x":"` + strings.Repeat("x", maxReplayBody) + `"}`, status: 413, answer: `{"message":"The body must not be larger than 16384 bytes."}`},
		"a Redis that does not answer": {
			body: `{"platform": "crm", "from": "2026-10-25T22:00:00Z"}`, err: errors.New("gone"), status: 503,
			answer: `{"message":"The deliveries cannot be put back now. Those that were are not put back again."}`,
			asked:  []stream.ReplayRequest{{Platform: "crm", From: day(25, 22), To: fixtureNow, Statuses: all}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			berlin, err := time.LoadLocation("Europe/Berlin")
			if err != nil {
				t.Fatal(err)
			}
			r := &replayer{err: test.err}
			handler := New(Options{Logger: slog.New(slog.DiscardHandler), Now: func() time.Time { return fixtureNow }})
			handler.Serve([]Tenant{{
				Property: config.Property{Name: "shop", Platforms: []platforms.Platform{{Name: "crm"}}}, Location: berlin, Replayer: r, Reach: test.reach,
				Tokens: []auth.Credential{
					{Name: "a", Hash: auth.HashOf("wt_write"), Scope: auth.ScopeWrite}, {Name: "b", Hash: auth.HashOf("wt_read"), Scope: auth.ScopeRead},
				},
			}})
			router := chi.NewRouter()
			handler.Routes(router)
			request := httptest.NewRequest(http.MethodPost, "/api/v1/properties/shop/deliveries/replay", strings.NewReader(test.body))
			request.Header.Set("Authorization", "Bearer "+standard.Or(test.token, "wt_write"))
			request.Header.Set("Content-Type", standard.Or(test.kind, "application/json; charset=utf-8"))
			answer := httptest.NewRecorder()
			router.ServeHTTP(answer, request)
			if answer.Code != test.status || answer.Body.String() != test.answer {
				t.Errorf("got %d %s\nwant %d %s", answer.Code, answer.Body, test.status, test.answer)
			}
			if diff := cmp.Diff(test.asked, r.asked); diff != "" {
				t.Errorf("asked for (-want +got):\n%s", diff)
			}
		})
	}
}
