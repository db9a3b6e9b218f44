package main

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// inRoot runs a test where the generator runs.
func inRoot(t *testing.T) { t.Chdir("../..") }

func TestThePageOfPersonalDataIsFresh(t *testing.T) {
	inRoot(t)
	page, err := os.ReadFile("docs/reference/" + personal + ".md")
	if err != nil {
		t.Fatal(err)
	}
	want, err := personalPage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(page)); diff != "" {
		t.Errorf("make generate writes it anew (-want +got):\n%s", diff)
	}
}

// The tables must be able to tell these apart, or they say nothing.
func TestRowsSayWhatIsStoredAndWhoReadsIt(t *testing.T) {
	inRoot(t)
	page, err := personalPage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| `client_id` | identifier | value | `retention.identifiersDays` | nothing | Amplitude: as sent, GA4: as sent,",
		"| `user.email` | contact | hash | `retention.identifiersDays` | nothing | GA4: hash,",
		"| `user.street` | contact | hash, for platforms that take it | `retention.identifiersDays` | nothing | Webhook: hash |",
		"| `user.country` | place | value | `retention.identifiersDays` | nothing |",
		"| `context.ip` | device | value | `retention.deviceHours` | nothing |",
		"| `context.referrer` | behaviour | value | `retention.days` | own form |",
		"| `data.value` | behaviour | value | `retention.days` | value |",
		"| [Mixpanel](platforms/mixpanel.md) |  | `client_id`,",
		"| always; the newest 1,024 | collector | collector |",
		"| always; the newest 1,024 | query | query |",
		"| trimmed by the deliverer, see [below](../internals/formats.md#trimming) | deliverer, query, archive | collector, deliverer |",
		"| `source:NAME` | nothing | 31 days | deliverer | deliverer |",
		"| `import:events` | as `events` | during an import |  |  |",
	} {
		if !strings.Contains(page, strings.ReplaceAll(want, "  |", " |")) {
			t.Errorf("no row has %s", want)
		}
	}
}

func TestEachKeyIsSpokenForAndNoOther(t *testing.T) {
	inRoot(t)
	keys, err := documentedKeys()
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, key := range keys {
		if there[key.name] = true; holds[key.name] == "" {
			t.Errorf("nobody says what %s has of persons", key.name)
		}
	}
	for name := range holds {
		if !there[name] {
			t.Errorf("%s is no key of the table", name)
		}
	}
}
