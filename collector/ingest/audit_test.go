package ingest_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/audit"
	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/ingest"
	"github.com/weir-dev/weir/collector/stream"
)

// everyUse is a register to which each use is the first.
type everyUse struct{}

func (everyUse) FirstUse(context.Context, [sha256.Size]byte, time.Time) (bool, error) {
	return true, nil
}

func TestTheUseOfAKeyIsNoted(t *testing.T) {
	const server, site = "the-servers-key", "the-sites-key"
	inJSON := func(path, body string) request {
		return request{path: path, body: []byte(body), contentType: "application/json"}
	}
	from := func(r request, origin string) request {
		r.header = map[string]string{"Origin": origin}
		return r
	}
	for sentence, row := range map[string]struct {
		request request
		want    []string
	}{
		"by an event":            {inJSON("/collect/"+server, `{"event": "lead"}`), []string{"api_key server"}},
		"by a batch":             {inJSON("/collect/"+server+"/batch", `{"events": [{"event": "lead"}]}`), []string{"api_key server"}},
		"by a call of Segment's": {inJSON("/v1/track", `{"writeKey": "`+server+`", "event": "lead", "userId": "u"}`), []string{"api_key server"}},
		"by a shop, though the source is not there": {inJSON("/sources/"+server+"/shop", `{}`), []string{"api_key server"}},
		"by what is refused for what it holds":      {inJSON("/collect/"+server, `{"event"`), []string{"api_key server"}},
		"by a page that has a secret key":           {from(inJSON("/collect/"+server, `{"event": "lead"}`), "https://shop.example"), []string{"api_key server"}},
		"by a page":                                 {from(inJSON("/collect/"+site, `{"event": "lead"}`), "https://shop.example"), []string{"publishable_key site"}},
		"by a page that loads the snippet":          {request{method: http.MethodGet, path: "/collect/" + site + "/weir.js"}, []string{"publishable_key site"}},
		"not by a wrong key":                        {inJSON("/collect/wrong", `{"event": "lead"}`), nil},
		"not without one":                           {inJSON("/v1/track", `{"event": "lead", "userId": "u"}`), nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			var lines bytes.Buffer
			uses := audit.NewFirstUses("default/shop", audit.New(&lines, slog.New(slog.DiscardHandler), func() time.Time { return noon }), everyUse{}, slog.New(slog.DiscardHandler))
			stored := &memory{}
			tenant := ingest.Tenant{Property: property("shop"), Appender: stored, Limiter: &generous{}, FirstUses: uses, Keys: []auth.Credential{
				{Name: "server", Hash: auth.HashOf(server)},
				{Name: "site", Hash: auth.HashOf(site), Publishable: &auth.Publishable{AllowedOrigins: []string{"https://shop.example"}, EventsPerSecond: 10, EventsPerSecondPerAddress: 10}},
			}}
			s := newSite(t, tenant)
			for range 2 {
				s.send(t, row.request)
				s.handler.Serve([]ingest.Tenant{tenant}) // as after a change of the configuration
			}
			if err := uses.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(row.want, usesIn(t, lines.Bytes())); diff != "" {
				t.Errorf("first uses (-want +got):\n%s", diff)
			}
		})
	}
}

// usesIn are the keys whose first use an audit log has.
func usesIn(t *testing.T, lines []byte) (keys []string) {
	t.Helper()
	for text := range bytes.Lines(lines) {
		var line struct {
			Act   string
			Actor struct{ Kind, Name string }
		}
		if err := json.Unmarshal(text, &line); err != nil || line.Act != "credential.first_used" {
			t.Errorf("%s: %v", text, err)
		}
		keys = append(keys, line.Actor.Kind+" "+line.Actor.Name)
	}
	return keys
}

func TestAShopsRequestForAnErasureIsWrittenDown(t *testing.T) {
	for outcome, fail := range map[string]error{"success": nil, "failure": stream.ErrNotLedgered} {
		t.Run(outcome, func(t *testing.T) {
			tenant, _ := inMemory()
			tenant = withSources(tenant)
			asked := &eraser{fail: fail}
			tenant.Eraser = asked
			var lines bytes.Buffer
			s := newSiteWith(t, ingest.Options{Audit: audit.New(&lines, slog.New(slog.DiscardHandler), func() time.Time { return noon })}, tenant)
			s.send(t, signed("shopify", "customers/redact", []byte(`{"customer": {"id": 191167, "email": "jane@example.com"}}`), signingSecret))
			want := `{"time":"2026-11-20T12:00:00.000Z","log":"audit","act":"erasure.requested","property":"default/shop",` +
				`"actor":{"kind":"source","name":"shopify"},"object":{"kind":"erasure","name":"` + asked.requests[0].ID + `"},"outcome":"` + outcome + `"}` + "\n"
			if diff := cmp.Diff(want, lines.String()); diff != "" {
				t.Errorf("the audit log (-want +got):\n%s", diff)
			}
		})
	}
}
