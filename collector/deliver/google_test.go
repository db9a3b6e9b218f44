package deliver

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/deliver/fakes"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/stream"
)

// wants waits until events have these statuses and reasons, with any number of attempts.
func (s *site) wants(what string, want map[stream.Position]record) {
	s.t.Helper()
	s.await(what, func() string {
		all, got := s.records("p"), map[stream.Position]record{}
		for position := range want {
			got[position] = record{Status: all[position].Status, Reason: all[position].Reason}
		}
		return cmp.Diff(want, got)
	})
}

func (s *site) looks() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Count(s.wire.String(), "requestStatus:retrieve")
}

var isQueued, isDelivered = record{Status: "retrying", Reason: "queued"}, record{Status: "delivered"}

func TestQueuedIsNotDelivered(t *testing.T) {
	t.Parallel()
	s := newSite(t, platforms.TypeGoogle)
	s.fake.Process(fakes.Processing{Looks: 2})
	var positions []stream.Position
	for range 3 {
		position, _ := s.purchase("")
		positions = append(positions, position)
	}
	s.launch()
	for _, position := range positions {
		s.wants("what is queued waits", map[stream.Position]record{position: isQueued})
	}
	for _, position := range positions {
		s.wants("it is delivered when the platform says so", map[stream.Position]record{position: isDelivered})
		if got := s.records("p")[position].Attempts; got != 1 {
			t.Errorf("got %d attempts, want 1: a look is none", got)
		}
	}
	if got := s.looks(); got != 3 {
		t.Errorf("it was looked %d times, want 3: once for all events of a request, and again while it is under way", got)
	}
	if got := s.values(1); len(got) != 1 {
		t.Errorf("the first was sent with %v, want once", got)
	}
}

func TestADelivererThatIsKilledWhileEventsAreQueuedSendsNoneTwice(t *testing.T) {
	t.Parallel()
	s := newSite(t, platforms.TypeGoogle)
	s.fake.Process(fakes.Processing{Looks: 1})
	victim := s.startVictim("pod-1", nil)
	position, _ := s.purchase("")
	s.wants("the event is queued", map[stream.Position]record{position: isQueued})
	victim.kill()
	s.launch()
	s.wants("another deliverer asks for it", map[stream.Position]record{position: isDelivered})
	if got := s.values(1); len(got) != 1 {
		t.Errorf("it was sent with %v, want once", got)
	}
}

func TestWhereRedisHasLostATicketTheEventIsSentAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t, platforms.TypeGoogle)
	s.fake.Process(fakes.Processing{Looks: 1 << 30})
	s.launch()
	position, _ := s.purchase("")
	s.wants("the event is queued", map[stream.Position]record{position: isQueued})
	redis := s.redis()
	for _, key := range []string{"due", "open", "attempts"} {
		if err := redis.Del(t.Context(), "weir:{default/shop}:retry:p:"+key).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := redis.XGroupDestroy(t.Context(), "weir:{default/shop}:events", "p").Err(); err != nil {
		t.Fatal(err)
	}
	s.wants("it is sent again", map[stream.Position]record{position: isDelivered})
	if diff := cmp.Diff([]string{"12.5", "12.5"}, s.values(1)); diff != "" {
		t.Errorf("what was sent (-want +got):\n%s", diff)
	}
}

func TestWhatBecomesOfQueuedEvents(t *testing.T) {
	for name, test := range map[string]struct {
		processing fakes.Processing
		reason     string
		// later puts the clocks forward when the event is queued.
		later time.Duration
		want  record
		sent  int
	}{
		"one that is too old has expired": {
			reason: "PROCESSING_ERROR_REASON_EVENT_TOO_OLD", want: record{Status: "expired", Reason: "too_old"}, sent: 1,
		},
		"a repeat is delivered": {reason: "PROCESSING_ERROR_REASON_DUPLICATE_TRANSACTION_ID", want: isDelivered, sent: 1},
		"one of a click that another event has had has failed": {
			reason: "PROCESSING_ERROR_REASON_DUPLICATE_GCLID", want: record{Status: "failed", Reason: "duplicate_gclid"}, sent: 1,
		},
		"one alone that is taken in part has failed": {
			processing: fakes.Processing{Page: `{"requestStatusPerDestination":[{"requestStatus":"PARTIAL_SUCCESS"}]}`},
			want:       record{Status: "failed", Reason: "request_failed"}, sent: 1,
		},
		"one that is said to succeed elsewhere has failed in the end": {
			processing: fakes.Processing{Page: `{"requestStatusPerDestination":[{"destination":{"productDestinationId":"9"},"requestStatus":"SUCCESS"}]}`},
			later:      49 * time.Hour, want: record{Status: "failed", Reason: "status_unknown"}, sent: 1,
		},
		"one whose consent Google denies has failed": {
			reason: "PROCESSING_ERROR_REASON_DENIED_CONSENT", want: record{Status: "failed", Reason: "denied_consent"}, sent: 1,
		},
		"one of an account that it was not for has failed": {
			reason: "PROCESSING_ERROR_OPERATING_ACCOUNT_MISMATCH_FOR_AD_IDENTIFIER",
			want:   record{Status: "failed", Reason: "operating_account_mismatch_for_ad_identifier"}, sent: 1,
		},
		"one whose reason is no word has failed without it": {reason: "ada@example.com", want: record{Status: "failed", Reason: "refused"}, sent: 1},
		"one of a click that is too recent waits": {
			reason: "PROCESSING_ERROR_REASON_TOO_RECENT_CLICK", want: record{Status: "retrying", Reason: "too_recent_click"}, sent: 1,
		},
		"one of a request that Google does not know is sent again": {processing: fakes.Processing{Unknown: true}, want: isDelivered, sent: 2},
		"one that is under way for ever has failed in the end": {
			processing: fakes.Processing{Looks: 1 << 30}, later: 49 * time.Hour, want: record{Status: "failed", Reason: "status_unknown"}, sent: 1,
		},
		"one of which Google talks nonsense has failed in the end": {
			processing: fakes.Processing{Page: "<html>"}, later: 49 * time.Hour, want: record{Status: "failed", Reason: "status_unknown"}, sent: 1,
		},
		"one of which Google says nothing has failed in the end": {
			processing: fakes.Processing{Page: `{"requestStatusPerDestination":[]}`}, later: 49 * time.Hour,
			want: record{Status: "failed", Reason: "status_unknown"}, sent: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, platforms.TypeGoogle)
			s.fake.Process(test.processing)
			if test.reason != "" {
				s.fake.RefuseLater(test.reason, "order-1")
			}
			s.launch()
			position, _ := s.purchase("")
			if test.later > 0 {
				s.wants("the event is queued", map[stream.Position]record{position: isQueued})
				s.advance(test.later)
			}
			s.wants(name, map[stream.Position]record{position: test.want})
			if got := s.values(1); len(got) != test.sent {
				t.Errorf("it was sent with %v, want %d times", got, test.sent)
			}
		})
	}
}

func TestAStatusServerThatFailsCostsNoAttempt(t *testing.T) {
	t.Parallel()
	s := newSite(t, platforms.TypeGoogle)
	s.launch()
	position, _ := s.purchase("")
	s.wants("the event is queued", map[stream.Position]record{position: isQueued})
	s.fake.Fail(fakes.Failure{Status: 503}, fakes.Failure{Reset: true})
	s.wants("the event is delivered all the same", map[stream.Position]record{position: isDelivered})
	if got := s.records("p")[position].Attempts; got != 1 {
		t.Errorf("got %d attempts, want 1", got)
	}
}

func TestOfEventsThatWereQueuedTogetherThoseThatAreRefusedFailAlone(t *testing.T) {
	t.Parallel()
	s := newSite(t, platforms.TypeGoogle)
	want := map[stream.Position]record{}
	for i := range 5 {
		position, _ := s.purchase("")
		want[position] = isDelivered
		if i == 2 {
			want[position] = record{Status: "failed", Reason: "invalid_gclid"}
		}
	}
	s.fake.RefuseLater("PROCESSING_ERROR_REASON_INVALID_GCLID", "order-3")
	s.launch()
	s.wants("one bad event among good ones", want)
}

func TestRequestsThatGoogleNamesAlikeAreNotSentForEver(t *testing.T) {
	t.Parallel()
	s := newSite(t, platforms.TypeGoogle)
	same := fakes.Processing{Ticket: "the-same", Page: `{"requestStatusPerDestination":[{"requestStatus":"PARTIAL_SUCCESS"}]}`}
	want := map[stream.Position]record{}
	for range 4 {
		s.fake.Process(same, same)
		position, _ := s.purchase("")
		want[position] = record{Status: "failed", Reason: "request_failed"}
	}
	s.launch()
	s.wants("all have failed", want)
	if got := s.values(1); len(got) > 2 {
		t.Errorf("the first was sent with %v, want with the others and then alone", got)
	}
}

func TestTokens(t *testing.T) {
	for name, test := range map[string]struct {
		grants []fakes.Failure
		revoke bool
	}{
		"a grant that is refused is asked for again":      {grants: []fakes.Failure{{Status: 400}, {Status: 401}}},
		"a server of tokens that fails is asked again":    {grants: []fakes.Failure{{Status: 503}, {Status: 500}}},
		"a server of tokens that is gone is asked again":  {grants: []fakes.Failure{{Reset: true}}},
		"a server of tokens that says nothing is no harm": {grants: []fakes.Failure{{Silent: true}}},
		"a token that is revoked is had anew":             {revoke: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, platforms.TypeGoogle)
			s.fake.FailGrants(test.grants...)
			s.launch()
			position, _ := s.purchase("")
			s.wants("the first is delivered", map[stream.Position]record{position: isDelivered})
			if test.revoke {
				s.fake.RevokeTokens()
				position, _ = s.purchase("")
				s.wants("the second is delivered", map[stream.Position]record{position: isDelivered})
			}
			if got := s.records("p")[position].Attempts; got < 2 {
				t.Errorf("got %d attempts, want more than one", got)
			}
			if strings.Contains(s.log.String(), "token-for-tests") || strings.Contains(s.log.String(), "PRIVATE KEY") {
				t.Errorf("the log shows a secret:\n%s", s.log)
			}
		})
	}
}

func TestATokenServesManyRequests(t *testing.T) {
	t.Parallel()
	s := newSite(t, platforms.TypeGoogle)
	s.launch()
	for range 3 {
		position, _ := s.purchase("")
		s.wants("the event is delivered", map[stream.Position]record{position: isDelivered})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if got := strings.Count(s.wire.String(), "grant_type="); got != 1 {
		t.Errorf("%d tokens were granted, want 1", got)
	}
}

func TestAnAnswerOfTheStatusServerThatIsRefusedForTheToken(t *testing.T) {
	t.Parallel()
	s := newSite(t, platforms.TypeGoogle)
	s.launch()
	position, _ := s.purchase("")
	s.wants("the event is queued", map[stream.Position]record{position: isQueued})
	s.fake.Fail(fakes.Failure{Status: http.StatusUnauthorized})
	s.wants("the next look has another token", map[stream.Position]record{position: isDelivered})
	if got := s.values(1); len(got) != 1 {
		t.Errorf("it was sent with %v, want once", got)
	}
}
