package snippet_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/weir-dev/weir/collector/snippet"
)

// TestTheGuidesLinesWorkAsTheyStand holds that a shop which copies the guide's two lines, and its policy, sends events.
func TestTheGuidesLinesWorkAsTheyStand(t *testing.T) {
	text, err := os.ReadFile("../../docs/guides/browser.md")
	if err != nil {
		t.Fatal(err)
	}
	guide := strings.NewReplacer("https://collect.shop.example.com", collector, "wp_…", webKey).Replace(string(text))
	lines := regexp.MustCompile("(?s)```html\n(" + regexp.QuoteMeta(snippet.Stub) + "\n.*?)```").FindStringSubmatch(guide)
	policy := regexp.MustCompile("Content-Security-Policy: ([^`]*)").FindStringSubmatch(guide)
	if lines == nil || policy == nil {
		t.Fatal("the guide has no lines to copy, or no policy")
	}
	s := openShop(t)
	s.policy = strings.Join(strings.Fields(policy[1]), " ")
	s.has("/", lines[1])
	tab := s.consented()
	if complaints := tab.Complaints(); len(complaints) > 0 {
		t.Errorf("the console says %q", complaints)
	}
}
