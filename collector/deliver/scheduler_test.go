package deliver

import (
	"testing"
	"time"

	"github.com/weir-dev/weir/collector/deliver/platform"
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
		verdict       platform.Verdict
		assessed      assessment
		attempts      int
		expires       time.Duration
		earliest, end time.Duration // from now
	}{
		"throttled for a second":                 {platform.Verdict{Class: platform.Throttle, After: time.Second}, assessment{failures: 1}, 0, time.Hour, time.Second + unknown, time.Second + unknown},
		"throttled for a second, and often":      {platform.Verdict{Class: platform.Throttle, After: time.Second}, assessment{failures: 7}, 0, time.Hour, time.Second + unknown, time.Minute + unknown},
		"throttled for no time":                  {platform.Verdict{Class: platform.Throttle}, assessment{failures: 1}, 0, time.Hour, 200*time.Millisecond + unknown, time.Second + unknown},
		"throttled, and the circuit opens":       {platform.Verdict{Class: platform.Throttle, After: time.Second}, assessment{openFor: 7 * time.Second}, 0, time.Hour, 7*time.Second + unknown, 7*time.Second + unknown},
		"throttled beyond the event's end":       {platform.Verdict{Class: platform.Throttle, After: time.Hour}, assessment{failures: 1}, 0, time.Minute, time.Minute, time.Minute},
		"no answer":                              {platform.Verdict{Class: platform.Retry}, assessment{}, 1, time.Hour, 200 * time.Millisecond, time.Second},
		"no answer ten times":                    {platform.Verdict{Class: platform.Retry}, assessment{}, 10, time.Hour, 200 * time.Millisecond, time.Minute},
		"the credential is refused to all":       {platform.Verdict{Class: platform.Auth}, assessment{openFor: time.Minute}, 1, time.Hour, 200 * time.Millisecond, 200 * time.Millisecond},
		"the credential is refused to one alone": {platform.Verdict{Class: platform.Auth}, assessment{failures: 5}, 5, time.Hour, 200 * time.Millisecond, 16 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			e := task{attempts: test.attempts, payload: platform.Payload{Expires: now.Add(test.expires)}}
			for range 100 { // some of them are drawn
				due := s.settlement(e, s.judge(test.verdict, test.assessed), 0).RetryAt.Sub(now)
				if due < test.earliest || due > test.end {
					t.Fatalf("due after %s, want %s at least and %s at most", due, test.earliest, test.end)
				}
			}
		})
	}
}
