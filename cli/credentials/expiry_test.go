package credentials

import (
	"testing"
	"time"
)

func TestWhenATokenEnds(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 30, 15, 999, time.UTC)
	for text, want := range map[string]string{
		"720h": "2026-03-31T12:30:15Z", "30d": "2026-03-31T12:30:15Z", "1s": "2026-03-01T12:30:16Z", "2027-01-31": "2027-01-31T00:00:00Z",
		"2027-01-31T12:00:00+02:00": "2027-01-31T10:00:00Z", "2027-01-31T12:00:00.9Z": "2027-01-31T12:00:00Z",
		"-1h": "", "0d": "", "-1d": "", "1.5d": "", "1ns": "", "2026-03-01": "", "d": "", "30": "", "99999999h": "", "65536d": "", "10000-01-01": "", "60000d": "2190-06-09T12:30:15Z",
	} {
		got, err := parseExpiry(text, now)
		if want == "" {
			if err == nil {
				t.Errorf("%s is %s, want it refused", text, got)
			}
			continue
		}
		if err != nil || got.Format(time.RFC3339) != want {
			t.Errorf("%s is %s, %v; want %s", text, got.Format(time.RFC3339), err, want)
		}
	}
}
