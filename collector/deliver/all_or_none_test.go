package deliver

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/deliver/fakes"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/stream"
)

// Platforms that take all of a request or none: what becomes of the others where one is refused.
func TestNoEventIsLostForAnothersSake(t *testing.T) {
	const row = "/data/attributes/events-bulk-create/data/1/attributes"
	klaviyo := func(pointer string) fakes.Failure {
		return fakes.Failure{Status: http.StatusBadRequest, Body: `{"errors":[{"id":"1","code":"invalid","title":"Invalid input.","detail":"Invalid input.",` +
			`"source":{"pointer":"` + pointer + `"}}]}`}
	}
	for name, test := range map[string]struct {
		kind platforms.Type
		// answer is the one to the first request, which has three events.
		answer fakes.Failure
		want   [3]record
		// alone says that each is sent alone at once.
		alone bool
	}{
		"a row that Klaviyo names has failed, and the others are sent again": {
			platforms.TypeKlaviyo, klaviyo(row + "/events/data/0/attributes/time"),
			[3]record{{Status: "delivered"}, {Status: "failed", Reason: "time_refused"}, {Status: "delivered"}}, false,
		},
		"an event that Klaviyo has already ends well by itself": {
			platforms.TypeKlaviyo, klaviyo(row + "/events/data/0/attributes/unique_id"),
			[3]record{{Status: "delivered"}, {Status: "delivered"}, {Status: "delivered"}}, true,
		},
		"where Klaviyo names no row each event is sent alone": {
			platforms.TypeKlaviyo, klaviyo("/data/"),
			[3]record{{Status: "delivered"}, {Status: "delivered"}, {Status: "delivered"}}, true,
		},
		"an event that Amplitude names has failed, and the others are sent again": {
			platforms.TypeAmplitude, fakes.Failure{Status: http.StatusBadRequest, Body: `{"code":400,"events_with_invalid_fields":{"time":[1]}}`},
			[3]record{{Status: "delivered"}, {Status: "failed", Reason: "time_refused"}, {Status: "delivered"}}, false,
		},
		"an event of a device that is silenced has failed": {
			platforms.TypeAmplitude, fakes.Failure{Status: http.StatusBadRequest, Body: `{"code":400,"silenced_events":[1],"silenced_devices":["d"]}`},
			[3]record{{Status: "delivered"}, {Status: "failed", Reason: "device_silenced"}, {Status: "delivered"}}, false,
		},
		"one who sends too fast is tried again, and so are the others": {
			platforms.TypeAmplitude, fakes.Failure{Status: http.StatusTooManyRequests, Body: `{"code":429,"throttled_events":[1],"throttled_devices":{"d":31}}`},
			[3]record{{Status: "delivered"}, {Status: "delivered"}, {Status: "delivered"}}, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, test.kind)
			s.fake.Fail(test.answer)
			want := map[stream.Position]record{}
			for _, r := range test.want {
				position, _ := s.purchase("")
				want[position] = r
			}
			engine := s.launch()
			s.await("all have ended", func() string {
				for position, r := range want {
					got := s.records("p")[position]
					if got.Status != r.Status || got.Reason != r.Reason {
						return got.Status + " " + got.Reason + ", want " + r.Status + " " + r.Reason
					}
				}
				return ""
			})
			engine.stop()
			for id, n := range s.fake.Taken() {
				if n != 1 {
					t.Errorf("%s was taken %d times, want once", id, n)
				}
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if got := strings.Count(s.wire.String(), "/api/events "); test.alone && got != len(test.want) {
				t.Errorf("got %d events sent alone, want %d", got, len(test.want))
			}
		})
	}
}

// LinkedIn answers for each event: what it has taken is not sent again for the sake of one that it has not.
func TestWhatWasTakenIsNotSentAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t, platforms.TypeLinkedIn)
	s.fake.Fail(fakes.Failure{Status: http.StatusOK, Body: `{"elements":[{"status":201},{"status":429},{"status":201}]}`})
	for range 3 {
		s.purchase("")
	}
	engine := s.launch()
	s.await("all have come", func() string {
		delivered := 0
		for _, r := range s.records("p") {
			if r.Status == "delivered" {
				delivered++
			}
		}
		return cmp.Diff(3, delivered)
	})
	engine.stop()
	if got := len(s.fake.Taken()); got != 1 {
		t.Errorf("%d events were sent again, want the one that was not taken", got)
	}
}

// A platform that says for how long it wants a pause gets it at once, and not the halves of what it refused.
func TestAPauseThatIsAskedForIsKeptAtOnce(t *testing.T) {
	t.Parallel()
	fb := newMeta(t, always(answer{status: 429, header: map[string]string{"Retry-After": "3600"}}))
	h := newHarness(t, fb.platform("meta"))
	positions := map[stream.Position]bool{}
	for range 100 {
		positions[h.accept(pageview)] = true
	}
	h.start("one", nil)
	h.await("all wait", func() string {
		waiting := 0
		for _, r := range h.records("meta") {
			if r.Status == "retrying" && r.Reason == "throttled" {
				waiting++
			}
		}
		return cmp.Diff(len(positions), waiting)
	})
	// Redis may hand the events out in parts.
	if got := h.metric("weir_delivery_requests_total", map[string]string{"platform": "meta"}); got > firstRequests {
		t.Errorf("%v requests were made, want one", got)
	}
}
