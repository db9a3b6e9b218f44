package main

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestThePageOfWhichPlatformGetsWhatIsFresh(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/" + coverage + ".md")
	if err != nil {
		t.Fatal(err)
	}
	want, err := coveragePage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(page)); diff != "" {
		t.Errorf("make generate writes it anew (-want +got):\n%s", diff)
	}
}

// The table must be able to tell these apart, or it says nothing.
func TestCellsSayWhatTheAdaptersDo(t *testing.T) {
	page, err := coveragePage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(page, "\n")
	columns := map[string]int{}
	for _, line := range lines {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			continue
		}
		if strings.TrimSpace(cells[1]) == "Member" {
			for i, cell := range cells {
				name, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(cell), "["), "]")
				columns[name] = i
			}
		}
	}
	cell := func(member, platform string) string {
		for _, line := range lines {
			if cells := strings.Split(line, "|"); len(cells) > 3 && strings.TrimSpace(cells[1]) == "`"+member+"`" {
				return strings.TrimSpace(cells[columns[platform]])
			}
		}
		return "no row"
	}
	for _, want := range []struct{ member, platform, what string }{
		{"user.email", "Meta", "hash"}, {"user.email", "Mixpanel", ""}, {"user.email", "GA4", "hash"}, {"user.street", "Meta", ""},
		{"user.country", "Meta", "hash"}, {"user.country", "TikTok", "converted"}, {"user.country", "Webhook", "as sent"},
		{"client_id", "GA4", "as sent"}, {"client_id", "TikTok", "hash"}, {"client_id", "Log", ""},
		{"consent.ad_user_data", "Meta", "decides"}, {"consent.ad_user_data", "GA4", "converted"}, {"consent.tcf", "Meta", "decides"}, {"consent.tcf", "Log", ""},
		{"consent.analytics_storage", "GA4", "decides"}, {"consent.us_privacy", "Meta", "converted"}, {"consent.limited_data_use", "TikTok", "as sent"},
		{"properties", "Webhook", "as sent"}, {"properties", "Pinterest", ""}, {"context.click_ids.fbclid", "Meta", "converted"},
		{"data.contents[].brand", "Pinterest", "as sent"}, {"data.contents[].variant", "Pinterest", ""},
		{"context.page_url", "Meta", "as sent"}, {"context.action_source", "Meta", "as sent"}, {"timestamp", "GA4", "converted"}, {"event", "Pinterest", "converted"},
		{"user.email", "Reddit", "hash"}, {"user.city", "Reddit", ""}, {"context.click_ids.rdt_cid", "Reddit", "as sent"}, {"timestamp", "Reddit", "converted"},
		{"user.city", "Snapchat", "hash"}, {"user.date_of_birth", "Snapchat", ""}, {"context.click_ids.sc_click_id", "Snapchat", "as sent"},
		{"consent.limited_data_use", "Snapchat", "converted"},
	} {
		if got := cell(want.member, want.platform); got != want.what {
			t.Errorf("%s at %s: got %q, want %q", want.member, want.platform, got, want.what)
		}
	}
}
