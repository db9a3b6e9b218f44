package deliver

import (
	"testing"
	"time"

	"github.com/weir-dev/weir/collector/deliver/adapter"
)

// When the next attempt is due, where it is not known exactly what time it is: never before what the platform asked for, and
// never after the event's end.
func TestWhenTheNextAttemptIsDue(t *testing.T) {
	const unknown = 40 * time.Millisecond // how late it may be besides
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	s := scheduler{
		backoff: backoff{unit: time.Second, cap: time.Minute, floor: 200 * time.Millisecond},
		now:     func() time.Time { return now }, latest: func() time.Time { return now.Add(unknown) },
	}
	for name, test := range map[string]struct {
		verdict       adapter.Verdict
		assessed      assessment
		attempts      int
		expires       time.Duration
		earliest, end time.Duration // from now
	}{
		"throttled for a second":                 {adapter.Verdict{Class: adapter.Throttle, After: time.Second}, assessment{failures: 1}, 0, time.Hour, time.Second + unknown, time.Second + unknown},
		"throttled for a second, and often":      {adapter.Verdict{Class: adapter.Throttle, After: time.Second}, assessment{failures: 7}, 0, time.Hour, time.Second + unknown, time.Minute + unknown},
		"throttled for no time":                  {adapter.Verdict{Class: adapter.Throttle}, assessment{failures: 1}, 0, time.Hour, 200*time.Millisecond + unknown, time.Second + unknown},
		"throttled, and the circuit opens":       {adapter.Verdict{Class: adapter.Throttle, After: time.Second}, assessment{openFor: 7 * time.Second}, 0, time.Hour, 7*time.Second + unknown, 7*time.Second + unknown},
		"throttled beyond the event's end":       {adapter.Verdict{Class: adapter.Throttle, After: time.Hour}, assessment{failures: 1}, 0, time.Minute, time.Minute, time.Minute},
		"no answer":                              {adapter.Verdict{Class: adapter.Retry}, assessment{}, 1, time.Hour, 200 * time.Millisecond, time.Second},
		"no answer ten times":                    {adapter.Verdict{Class: adapter.Retry}, assessment{}, 10, time.Hour, 200 * time.Millisecond, time.Minute},
		"the credential is refused to all":       {adapter.Verdict{Class: adapter.Auth}, assessment{openFor: time.Minute}, 1, time.Hour, 200 * time.Millisecond, 200 * time.Millisecond},
		"the credential is refused to one alone": {adapter.Verdict{Class: adapter.Auth}, assessment{failures: 5}, 5, time.Hour, 200 * time.Millisecond, 16 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			e := task{attempts: test.attempts, payload: adapter.Payload{Expires: now.Add(test.expires)}}
			for range 100 { // some of them are drawn
				due := s.settlement(e, s.judge(test.verdict, test.assessed), 0).RetryAt.Sub(now)
				if due < test.earliest || due > test.end {
					t.Fatalf("due after %s, want %s at least and %s at most", due, test.earliest, test.end)
				}
			}
		})
	}
}
