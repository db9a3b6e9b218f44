package query

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/clickhouse/clickhousetest"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/demo"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/history"
	"github.com/weir-dev/weir/collector/history/rows"
	"github.com/weir-dev/weir/collector/history/schema"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/stream"
)

// listedFromDisk answers with a history's listings and how far it is, and with a view's figures.
type listedFromDisk struct {
	*history.Engine
	viewed
}

type viewed struct{ *analytics.View }

// TestEventsOfAHistoryAreAnsweredAsThoseOfAStream asks the same of a property in memory and of one on disk.
func TestEventsOfAHistoryAreAnsweredAsThoseOfAStream(t *testing.T) {
	property := config.Property{
		Namespace: "default", Name: "shop", Currency: "EUR",
		Platforms: []platforms.Platform{{Name: "crm", Type: platforms.TypeWebhook}, {Name: "meta", Type: platforms.TypeMeta}},
	}
	past, err := demo.New(demo.Options{Property: &property, Events: 600, Days: 3, Seed: 1, End: fixtureNow})
	if err != nil {
		t.Fatal(err)
	}
	source := &memory{}
	for batch := range past.Batches() {
		source.entries, source.records = append(source.entries, batch.Entries...), append(source.records, batch.Records...)
	}
	view := analytics.NewView(analytics.Options{Property: "default/shop", Currency: "EUR", Logger: slog.New(slog.DiscardHandler)})
	fill(t, view, source)
	archived := archive(t, source)

	serve := func(tenant Tenant) http.Handler {
		tenant.Property, tenant.Location = property, time.UTC
		tenant.Tokens = []auth.Credential{{Name: "default", Hash: auth.HashOf(tokens["berlin"]), Scope: auth.ScopeRead}}
		handler := New(Options{Logger: slog.New(slog.DiscardHandler), Now: func() time.Time { return fixtureNow }})
		handler.Serve([]Tenant{tenant})
		return routes(handler)
	}
	inMemory := serve(Tenant{Engine: view, Entries: source, Records: source})
	onDisk := serve(Tenant{Engine: listedFromDisk{archived, viewed{view}}, Entries: archived, Attempts: archived})

	calls := []string{
		"events?limit=1000&period=30d", "events?limit=7&period=30d&total=true", "events?status=failed,retrying,expired&period=30d", "events?status=pending&platform=meta",
		"events?event=purchase&order=asc&period=30d", "events/unknown", "analytics/summary",
	}
	page, err := view.Listing(t.Context(), analytics.ListingQuery{Range: analytics.Range{To: fixtureNow}, AnyClass: true, Limit: 40})
	if err != nil {
		t.Fatal(err)
	}
	for i := range page.Records {
		r := &page.Records[i]
		calls = append(calls, "events/"+url.PathEscape(r.EventID), "events?visitor="+r.Visitor, "events?order_id="+url.QueryEscape(r.OrderID))
	}
	for _, call := range calls {
		want, got := get(inMemory, tokens["berlin"], "shop/"+call), get(onDisk, tokens["berlin"], "shop/"+call)
		if want.Code != got.Code || want.Body.String() != got.Body.String() {
			t.Errorf("%s: got %d, want %d (-stream +history):\n%s", call, got.Code, want.Code, cmp.Diff(want.Body.String(), got.Body.String()))
		}
		if diff := cmp.Diff(want.Header(), got.Header()); diff != "" {
			t.Errorf("headers of %s (-stream +history):\n%s", call, diff)
		}
	}
	export := func(api http.Handler) string {
		request := httptest.NewRequest(http.MethodGet, "/api/v1/properties/shop/events?period=30d&limit=300", nil)
		request.Header.Set("Authorization", "Bearer "+tokens["berlin"])
		request.Header.Set("Accept", typeNDJSON)
		answer := httptest.NewRecorder()
		api.ServeHTTP(answer, request)
		return answer.Body.String()
	}
	if diff := cmp.Diff(export(inMemory), export(onDisk)); diff != "" || !strings.Contains(export(onDisk), "\n") {
		t.Errorf("export (-stream +history):\n%s", diff)
	}
}

// archive returns a history of streams.
func archive(t *testing.T, source *memory) *history.Engine {
	t.Helper()
	client, err := clickhouse.Dial(clickhousetest.Shared(t), clickhouse.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	if _, err := schema.Ensure(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	var events []rows.Event
	names := map[stream.Position]string{}
	for _, entry := range source.entries {
		e, err := wire.Decode(entry.Data)
		if err != nil {
			t.Fatal(err)
		}
		events, names[entry.Position] = append(events, rows.FromEvent("default/shop", entry.Position, &e)), e.Name
	}
	var records []rows.Record
	for i, position := range source.recordPositions() {
		r := &source.records[i]
		records = append(records, rows.FromRecord(position, 0, r, names[r.Event]))
	}
	if err := clickhouse.Insert(t.Context(), client, schema.Events, events, ""); err != nil {
		t.Fatal(err)
	}
	if err := clickhouse.Insert(t.Context(), client, schema.Records, records, ""); err != nil {
		t.Fatal(err)
	}
	return history.New(history.Options{Client: client, Currency: "EUR"})
}
