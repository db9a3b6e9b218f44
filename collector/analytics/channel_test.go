package analytics

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/analytics/columns"
	"github.com/weir-dev/weir/collector/event"
)

// documented returns the rows of the table below a heading of docs/reference/channels.md, without back quotes; the table
// is the one whose first column has the given title.
func documented(t *testing.T, heading, title string) [][]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/reference/channels.md")
	mustNot(t, err)
	_, section, found := strings.Cut(string(text), "# "+heading+"\n")
	_, table, foundTable := strings.Cut(section, "\n| "+title+" |")
	_, body, _ := strings.Cut(table, "|\n|---")
	if !found || !foundTable {
		t.Fatalf("docs/reference/channels.md must have a heading %q with a table whose first column is %q", heading, title)
	}
	var rows [][]string
	for _, line := range strings.Split(body, "\n")[1:] {
		if !strings.HasPrefix(line, "|") {
			break
		}
		var cells []string
		for cell := range strings.SplitSeq(strings.Trim(line, "|"), "|") {
			cells = append(cells, strings.TrimSpace(strings.ReplaceAll(cell, "`", "")))
		}
		rows = append(rows, cells)
	}
	return rows
}

func TestEachDocumentedExampleIsTakenForWhatItSays(t *testing.T) {
	examples := documented(t, "Examples", "utm_source")
	if len(examples) == 0 {
		t.Fatal("docs/reference/channels.md has no examples")
	}
	shown := map[string]bool{}
	for _, row := range examples {
		t.Run(strings.Join(row[:5], " "), func(t *testing.T) {
			c := event.Context{UTMSource: row[0], UTMMedium: row[1], Referrer: row[3], PageURL: row[4]}
			if row[2] != "" {
				c.ClickIDs = map[string]string{row[2]: "id"}
			}
			want := columns.Touch{Source: row[5], Medium: row[6], Channel: row[7]}
			if row[7] == "no touch" {
				want = columns.Touch{}
			}
			shown[want.Channel] = true
			got, isTouch := TouchOf(&c)
			if got != want || isTouch != (want != columns.Touch{}) {
				t.Errorf("got %+v (%t), want %+v", got, isTouch, want)
			}
		})
	}
	for _, channel := range channels {
		if !shown[channel] {
			t.Errorf("docs/reference/channels.md has no example of %s", channel)
		}
	}
}

func TestTheDocumentedTablesAreThoseOfTheCode(t *testing.T) {
	var wantClicks, wantRules, wantKinds [][]string
	for _, c := range clicks {
		wantClicks = append(wantClicks, []string{c.id, c.source, c.medium})
	}
	for _, r := range rules {
		media := slices.Clone(r.media)
		for i, medium := range media {
			if medium == "" {
				media[i] = "–"
			}
		}
		if media == nil {
			media = []string{"any"}
		}
		wantRules = append(wantRules, []string{r.channel, string(r.kind), strings.Join(media, ", ")})
	}
	byKind := map[kind][]string{}
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		byKind[kinds[name]] = append(byKind[kinds[name]], name)
	}
	for _, k := range []kind{search, social, assistant, mail, direct} {
		wantKinds = append(wantKinds, []string{string(k), strings.Join(byKind[k], ", ")})
	}
	for name, table := range map[string]struct{ documented, want [][]string }{
		"click ids":     {documented(t, "Click ids", "click id"), wantClicks},
		"channels":      {documented(t, "Channels", "channel"), wantRules},
		"known sources": {documented(t, "Known sources", "kind"), wantKinds},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(table.want, table.documented); diff != "" {
				t.Errorf("docs/reference/channels.md differs from the code (-code +docs):\n%s", diff)
			}
		})
	}
}

// channels are all that there are, in the order in which they are looked for.
var channels = []string{
	"Paid Search", "Paid Social", "Display", "Email", "Affiliate", "AI Assistants", "Organic Search", "Organic Social",
	"Direct", "Referral",
}

func TestEveryRuleHasAChannelOfTheList(t *testing.T) {
	var inOrder []string
	for _, r := range rules {
		if !slices.Contains(inOrder, r.channel) {
			inOrder = append(inOrder, r.channel)
		}
		for _, medium := range r.media {
			if normalMedium(medium) != medium {
				t.Errorf("the medium %q of %s can never match: it must be %q", medium, r.channel, normalMedium(medium))
			}
		}
	}
	if diff := cmp.Diff(channels, inOrder); diff != "" {
		t.Errorf("rules and channels differ (-channels +rules):\n%s", diff)
	}
}

func TestEveryClickIDIsOneThatAnEnvelopeMayCarry(t *testing.T) {
	for _, c := range clicks {
		if !slices.Contains(event.ClickIDNames[:], c.id) {
			t.Errorf("%s is not among event.ClickIDNames", c.id)
		}
	}
}

func TestACampaignIsTheUTMCampaignWithoutSpaces(t *testing.T) {
	got, _ := TouchOf(&event.Context{UTMSource: " google ", UTMMedium: " cpc", UTMCampaign: " Spring Sale "})
	if want := (columns.Touch{Source: "google", Medium: "cpc", Campaign: "Spring Sale", Channel: "Paid Search"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func FuzzTouchOf(f *testing.F) {
	f.Add("google", "cpc", "https://www.google.com/?q=a", "https://shop.example")
	f.Add("", "", "android-app://com.google.android.gm/", "")
	f.Add("a..b.", "\xff", "//[::1", "%zz")
	f.Fuzz(func(t *testing.T, source, medium, referrer, page string) {
		touch, ok := TouchOf(&event.Context{UTMSource: source, UTMMedium: medium, Referrer: referrer, PageURL: page})
		if ok != (touch.Source != "") || ok != slices.Contains(channels, touch.Channel) {
			t.Errorf("%+v, %t: a touch must have a source and a channel of the list", touch, ok)
		}
	})
}
