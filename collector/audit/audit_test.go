package audit_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/audit"
)

var noon = time.Date(2026, time.November, 24, 12, 0, 0, 123_456_789, time.UTC)

// anErasure is the id of one.
const anErasure = "3e1f8e44-5a5c-4c0e-9d0b-6b1f4b9a7c21"

func clock() time.Time { return noon }

func TestEntries(t *testing.T) {
	token := audit.Party{Kind: audit.AccessToken, Name: "bi", Scope: "read"}
	for sentence, row := range map[string]struct {
		entry audit.Entry
		want  string
	}{
		"an act of now, with details": {
			audit.Entry{
				Act: audit.EventsExported, Property: "default/shop", Actor: token, Object: audit.Party{Kind: audit.Events}, Outcome: audit.Success,
				Details: []slog.Attr{slog.Time("from", noon.In(time.FixedZone("", 7200))), slog.Int("rows", 3)},
			},
			`{"time":"2026-11-24T12:00:00.123Z","log":"audit","act":"events.exported","property":"default/shop",` +
				`"actor":{"kind":"access_token","name":"bi","scope":"read"},"object":{"kind":"events"},"outcome":"success",` +
				`"details":{"from":"2026-11-24T12:00:00.123Z","rows":3}}`,
		},
		"an act of another time, of somebody without a name": {
			audit.Entry{
				Time: noon.Add(-time.Hour), Act: audit.CredentialRevoked, Property: "default/shop", Actor: audit.Party{Kind: audit.Operator}, Object: token, Outcome: audit.Success,
			},
			`{"time":"2026-11-24T11:00:00.123Z","log":"audit","act":"credential.revoked","property":"default/shop",` +
				`"actor":{"kind":"operator"},"object":{"kind":"access_token","name":"bi","scope":"read"},"outcome":"success"}`,
		},
		"an erasure that a token has asked for": {
			audit.RequestedErasure("default/shop", anErasure, token, nil),
			`{"time":"2026-11-24T12:00:00.123Z","log":"audit","act":"erasure.requested","property":"default/shop",` +
				`"actor":{"kind":"access_token","name":"bi","scope":"read"},"object":{"kind":"erasure","name":"` + anErasure + `"},"outcome":"success"}`,
		},
		"an erasure that a shop has asked for, in vain": {
			audit.RequestedErasure("default/shop", anErasure, audit.Party{Kind: audit.Source, Name: "shopify"}, errors.New("not in time")),
			`{"time":"2026-11-24T12:00:00.123Z","log":"audit","act":"erasure.requested","property":"default/shop",` +
				`"actor":{"kind":"source","name":"shopify"},"object":{"kind":"erasure","name":"` + anErasure + `"},"outcome":"failure"}`,
		},
		"an erasure that is carried out": {
			audit.HiddenErasure("default/shop", anErasure, audit.ErasureCounts{Events: 4, Records: 8, Identifiers: 3, Linked: 1}),
			`{"time":"2026-11-24T12:00:00.123Z","log":"audit","act":"erasure.hidden","property":"default/shop",` +
				`"actor":{"kind":"deliverer"},"object":{"kind":"erasure","name":"` + anErasure + `"},"outcome":"success",` +
				`"details":{"events":4,"records":8,"identifiers":3,"linked":1}}`,
		},
		"an erasure that no file has anything of": {
			audit.PurgedErasure("default/shop", anErasure),
			`{"time":"2026-11-24T12:00:00.123Z","log":"audit","act":"erasure.purged","property":"default/shop",` +
				`"actor":{"kind":"operator"},"object":{"kind":"erasure","name":"` + anErasure + `"},"outcome":"success"}`,
		},
		"one that a backup has undone": {
			audit.PurgedErasure("default/shop", "restored-"+anErasure),
			`{"time":"2026-11-24T12:00:00.123Z","log":"audit","act":"erasure.purged","property":"default/shop",` +
				`"actor":{"kind":"operator"},"object":{"kind":"erasure","name":"restored-` + anErasure + `"},"outcome":"success"}`,
		},
		"one of which a Redis claims that it is called jane": {
			audit.PurgedErasure("default/shop", "jane@example.com"),
			`{"time":"2026-11-24T12:00:00.123Z","log":"audit","act":"erasure.purged","property":"default/shop",` +
				`"actor":{"kind":"operator"},"object":{"kind":"erasure"},"outcome":"success"}`,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			var lines bytes.Buffer
			audit.New(&lines, slog.New(slog.DiscardHandler), clock).Write(t.Context(), row.entry)
			if diff := cmp.Diff(row.want+"\n", lines.String()); diff != "" {
				t.Errorf("line (-want +got):\n%s", diff)
			}
		})
	}
}

func TestALogThatCannotBeWrittenIsReported(t *testing.T) {
	var reported bytes.Buffer
	log := audit.New(broken{}, slog.New(slog.NewJSONHandler(&reported, nil)), clock)
	log.Write(t.Context(), audit.PurgedErasure("default/shop", anErasure))
	var line struct{ Msg, Act, Property, Error string }
	if err := json.Unmarshal(reported.Bytes(), &line); err != nil {
		t.Fatal(err)
	}
	if line.Msg != "an act is missing in the audit log" || line.Act != "erasure.purged" || line.Property != "default/shop" || line.Error != "the disk is full" {
		t.Errorf("reported is %s", reported.String())
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("the disk is full") }

func TestALogThatNobodyKeepsTakesEntries(t *testing.T) {
	var log *audit.Log
	log.Write(t.Context(), audit.PurgedErasure("default/shop", anErasure))
	var uses *audit.FirstUses
	uses.Of(key("default", "key-1")).Note()
	if err := uses.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// The page is the schema that pipelines are built on.
func TestThePageHasEachActAndKind(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/audit-log.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("audit.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for line := range strings.Lines(string(source)) {
		_, rest, isConstant := strings.Cut(line, ` = "`)
		name, _, ends := strings.Cut(rest, `"`)
		if !isConstant || !ends || !strings.HasPrefix(line, "\t") {
			continue
		}
		found++
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("the page says nothing of %s", name)
		}
	}
	if found < 20 {
		t.Errorf("the search found %d names: it has gone blind", found)
	}
}
