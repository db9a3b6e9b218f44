package consent

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The page lists every category that has a meaning by itself, in any spelling of its letters.
func TestThePageSaysWhatCategoriesMean(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/consent.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(page), "| Category | Of | Means |")
	table, _, _ = strings.Cut(table, "\n\n")
	if !found {
		t.Fatal("the page has no table of categories")
	}
	quoted := regexp.MustCompile("`([^`]+)`")
	documented := map[string]Purposes{}
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 {
			continue
		}
		for _, name := range quoted.FindAllStringSubmatch(cells[1], -1) {
			var means Purposes
			for _, purpose := range quoted.FindAllStringSubmatch(strings.Replace(cells[3], "itself", "`"+name[1]+"`", 1), -1) {
				p, ok := ParsePurpose(purpose[1])
				if !ok {
					t.Errorf("%s is no purpose", purpose[1])
				}
				means |= Of(p)
			}
			documented[strings.ToLower(name[1])] = means
		}
	}
	if diff := cmp.Diff(known, documented); diff != "" {
		t.Errorf("what categories mean (-code +page):\n%s", diff)
	}
}
