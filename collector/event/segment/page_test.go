package segment

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the tables of the page")

const pageFile = "../../../docs/reference/segment-api.md"

// TestThePageSaysWhatTheTablesSay compares the page's tables with the code's.
func TestThePageSaysWhatTheTablesSay(t *testing.T) {
	text, err := os.ReadFile(pageFile)
	if err != nil {
		t.Fatal(err)
	}
	want := string(text)
	for heading, rows := range map[string][]string{
		"| Member | Read from |\n|---|---|\n":                        memberRows(),
		"| Segment's e-commerce specification | Here |\n|---|---|\n": renameRows(),
	} {
		before, rest, found := strings.Cut(want, heading)
		if !found {
			t.Fatalf("the page has no table %q", heading)
		}
		_, after, _ := strings.Cut(rest, "\n\n")
		if strings.HasPrefix(rest, "\n") { // it has no rows yet
			after = rest[1:]
		}
		want = before + heading + strings.Join(rows, "") + "\n" + after
	}
	if *update {
		if err := os.WriteFile(pageFile, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("go test ./collector/event/segment -update writes it (-want +page):\n%s", diff)
	}
}

func TestEachRowHasABit(t *testing.T) {
	for c := range calls {
		if n := len(rowsOf(call(c))); n > 64 {
			t.Errorf("call %d has %d rows, of which no more than 64 can be told apart", c, n)
		}
	}
}

// memberRows has a row for each member: those that all calls read alike, and those that some read otherwise.
func memberRows() []string {
	rows := []string{
		"| `event` | of track calls `event`, see [below](#names-of-events); of page calls `pageview`, of screen calls `screen_view` |\n",
		"| `event_id` | `messageId` |\n",
	}
	of := [calls]string{track: "of track calls", product: "of events about one product", paid: "of purchases and refunds", page: "of page calls", screen: "of screen calls"}
	var members []string
	places := map[string][calls]string{}
	for c := range calls {
		for _, row := range rowsOf(call(c)) {
			if row.aside || len(row.From) == 0 {
				continue
			}
			to, from := row.To, "`"+strings.Join(row.From, "`, `")+"`"
			if id, is := strings.CutPrefix(to, clickIDs); is && id != "sc_click_id" {
				to, from = clickIDs+"NAME", strings.ReplaceAll(from, id, "NAME")
			}
			if !slices.Contains(members, to) {
				members = append(members, to)
			}
			all := places[to]
			all[c] = from
			places[to] = all
		}
	}
	for _, member := range members {
		var said []string
		all := places[member]
		for c, from := range all {
			if from == "" || slices.Contains(all[:c], from) {
				continue
			}
			var who []string
			for other, same := range all {
				if same == from {
					who = append(who, of[other])
				}
			}
			if len(who) < calls-2 {
				from += " (" + strings.Join(who, ", ") + ")"
			}
			said = append(said, from)
		}
		slices.SortStableFunc(said, func(a, b string) int { return strings.Count(a, "(") - strings.Count(b, "(") })
		rows = append(rows, fmt.Sprintf("| %#q | %s |\n", member, strings.Join(said, "; ")))
	}
	return rows
}

func renameRows() []string {
	var rows []string
	for _, r := range Renames {
		about := ""
		if r.Product {
			about = ", about one product"
		}
		rows = append(rows, fmt.Sprintf("| %s | %#q%s |\n", r.From, r.To, about))
	}
	return rows
}
