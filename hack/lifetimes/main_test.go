package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/platforms"
)

func TestAVersionThatEndsWithin90DaysIsNotReleased(t *testing.T) {
	now := time.Date(2026, time.November, 24, 12, 0, 0, 0, time.UTC)
	for sentence, test := range map[string]struct {
		ends           time.Time
		lines, problem string
	}{
		"no end is announced": {time.Time{}, "Meta v24.0: no end announced; beta\n", ""},
		"91 days to go":       {time.Date(2027, time.February, 23, 0, 0, 0, 0, time.UTC), "Meta v24.0: ends on 2027-02-23; beta\n", ""},
		"90 days to go": {
			time.Date(2027, time.February, 22, 12, 0, 0, 0, time.UTC), "Meta v24.0: ends on 2027-02-22; beta\n",
			"Meta ends version v24.0 of its interface on 2027-02-22, in 90 days; a release has to speak one that goes on for more than 90",
		},
		"it has ended": {
			time.Date(2026, time.October, 6, 0, 0, 0, 0, time.UTC), "Meta v24.0: ends on 2026-10-06; beta\n",
			"Meta ends version v24.0 of its interface on 2026-10-06, in -49 days; a release has to speak one that goes on for more than 90",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			var out strings.Builder
			got := ""
			if err := write(&out, []row{{platforms.TypeMeta, platforms.Version{Name: "v24.0", Ends: test.ends}, true}}, now); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff([]string{test.lines, test.problem}, []string{out.String(), got}); diff != "" {
				t.Errorf("lines and error (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEachVersionThatEndsIsNamed(t *testing.T) {
	now := time.Date(2026, time.November, 24, 0, 0, 0, 0, time.UTC)
	err := write(new(strings.Builder), []row{
		{platforms.TypeLinkedIn, platforms.Version{Name: "202512", Ends: now.AddDate(0, 0, 20)}, true},
		{platforms.TypeTikTok, platforms.Version{Name: "v1.3"}, true},
		{platforms.TypeKlaviyo, platforms.Version{Name: "2024-10-15", Ends: now.AddDate(0, 0, 40)}, true},
	}, now)
	if err == nil || !strings.Contains(err.Error(), "LinkedIn ends version 202512") || !strings.Contains(err.Error(), "Klaviyo ends version 2024-10-15") || strings.Contains(err.Error(), "TikTok") {
		t.Errorf("got %v, want both that end and no other", err)
	}
}

// What the table has is listed: each type with a version, and each that is beta.
func TestTheTableIsListed(t *testing.T) {
	got := map[platforms.Type]bool{}
	for _, r := range spoken() {
		got[r.kind] = r.beta
	}
	if !got[platforms.TypeMeta] || !got[platforms.TypeMixpanel] {
		t.Errorf("listed are %v, want Meta and Mixpanel, which are beta", got)
	}
	if _, listed := got[platforms.TypeLog]; listed {
		t.Error("the log is listed, which has no version and is not beta")
	}
}
