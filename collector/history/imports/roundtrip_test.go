package imports_test

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/demo"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/history"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/query"
	"github.com/weir-dev/weir/collector/stream"
)

// kept are the entries of a property's stream.
type kept []stream.Entry

func (k kept) Entries(_ context.Context, positions []stream.Position) (found []stream.Entry, err error) {
	for _, p := range positions {
		if i, there := slices.BinarySearchFunc(k, p, func(e stream.Entry, p stream.Position) int { return cmp.Compare(e.Position, p) }); there {
			found = append(found, k[i])
		}
	}
	return found, nil
}

func (k kept) Bounds(context.Context) (stream.Bounds, error) {
	return stream.Bounds{First: k[0].Position, Last: k[len(k)-1].Position, Length: int64(len(k))}, nil
}

// exportOf has a made-up past, in a view and as the read API exports it.
func exportOf(t testing.TB, events int, order string) (*analytics.View, string) {
	t.Helper()
	p := config.Property{
		Namespace: "default", Name: "shop", Currency: "EUR", TimeZone: "Europe/Berlin",
		Platforms: []platforms.Platform{{Name: "crm", Type: platforms.TypeWebhook}, {Name: "meta", Type: platforms.TypeMeta}},
	}
	past, err := demo.New(demo.Options{Property: &p, Events: events, Days: 70, Seed: 3, End: now.Add(-time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	view := analytics.NewView(analytics.Options{Property: property, Currency: "EUR", Logger: slog.New(slog.DiscardHandler)})
	var entries kept
	for batch := range past.Batches() {
		if err := view.AddEvents(batch.Entries); err != nil {
			t.Fatal(err)
		}
		view.AddRecords(batch.Records)
		entries = append(entries, batch.Entries...)
	}
	ready(t, view)
	handler := query.New(query.Options{Logger: slog.New(slog.DiscardHandler), Now: func() time.Time { return now }})
	handler.Serve([]query.Tenant{{
		Property: p, Location: time.UTC, Engine: view, Events: query.StreamEvents{Stream: entries},
		Tokens: []auth.Credential{{Name: "default", Hash: auth.HashOf("wt_shop"), Scope: auth.ScopeRead}},
	}})
	routes := chi.NewRouter()
	handler.Routes(routes)
	path := filepath.Join(t.TempDir(), "export.ndjson")
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	for class := range event.Classes {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet,
			"/api/v1/properties/shop/events?from=2026-08-01&to=2026-11-20T14:30:00Z&order="+order+"&class="+event.Class(class).String(), nil)
		request.Header.Set("Authorization", "Bearer wt_shop")
		request.Header.Set("Accept", "application/x-ndjson")
		answer := httptest.NewRecorder()
		routes.ServeHTTP(answer, request)
		if answer.Code != http.StatusOK {
			t.Fatalf("the export is answered %d %s", answer.Code, answer.Body)
		}
		if _, err := out.Write(answer.Body.Bytes()); err != nil {
			t.Fatal(err)
		}
	}
	return view, path
}

// idle is a source with nothing in it.
type idle struct{}

func (idle) ReadEvents(ctx context.Context, _ stream.Position, _ int, block time.Duration) ([]stream.Entry, error) {
	return nil, wait(ctx, block)
}

func (idle) ReadRecords(ctx context.Context, after stream.Position, _ int, block time.Duration) (stream.Records, error) {
	return stream.Records{Last: after}, wait(ctx, block)
}

func (idle) Bounds(context.Context) (stream.Bounds, error)       { return stream.Bounds{}, nil }
func (idle) RecordBounds(context.Context) (stream.Bounds, error) { return stream.Bounds{}, nil }
func (idle) Dropped(context.Context) (stream.Dropped, error)     { return stream.Dropped{}, nil }
func (idle) Beyond(context.Context) (stream.Position, error)     { return 0, nil }

func wait(ctx context.Context, block time.Duration) error {
	if block == 0 {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

// ready has a view answer.
func ready(t testing.TB, view *analytics.View) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- view.Follow(ctx, idle{}) }()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for !view.Status(ctx).Ready {
		select {
		case err := <-ended:
			t.Fatalf("the view is not ready: %v", err)
		case <-ticker.C:
		}
	}
	cancel()
	if err := <-ended; err != nil && ctx.Err() == nil {
		t.Fatal(err)
	}
}

// answerer is what both engines are, of which the history answers these.
//
//nolint:interfacebloat // it has a method for each kind of question
type answerer interface {
	Summary(ctx context.Context, r analytics.Range, filter analytics.Filter) (analytics.Summary, error)
	Series(ctx context.Context, ranges []analytics.Range, filter analytics.Filter) (analytics.Series, error)
	Breakdown(ctx context.Context, q analytics.BreakdownQuery) (analytics.Breakdown, error)
	EventStats(ctx context.Context, q analytics.StatsQuery) (analytics.Stats, error)
	Deliveries(ctx context.Context, q analytics.DeliveriesQuery) (analytics.Deliveries, error)
}

func TestAnExportThatIsImportedAnswersAsBefore(t *testing.T) {
	for _, order := range []string{"desc", "asc"} {
		t.Run("the order is "+order, func(t *testing.T) {
			view, path := exportOf(t, 4000, order)
			p := newPlace(t)
			report := p.run(path)
			if report.Imported != 4000 || report.Bad != 0 || report.Records == 0 {
				t.Fatalf("report %+v, %v", report, p.bad)
			}
			engine := history.New(history.Options{Client: p.client, Currency: "EUR"})
			for name, ask := range questions() {
				want, err := ask(view)
				if err != nil {
					t.Fatal(err)
				}
				got, err := ask(engine)
				if err != nil {
					t.Fatal(err)
				}
				if diff := gocmp.Diff(want, got, cmpopts.EquateEmpty(), gocmp.Comparer(func(a, b event.Sum) bool { return a == b })); diff != "" {
					t.Errorf("%s (-before +after):\n%s", name, diff)
				}
			}
			if again := p.run(path); again.Imported != 0 || again.Records != 0 || again.There != 4000 {
				t.Errorf("again: %+v", again)
			}
		})
	}
}

// questions are some of each kind, over several ranges.
func questions() map[string]func(answerer) (any, error) {
	ctx, all := context.Background(), map[string]func(answerer) (any, error){}
	begin := now.AddDate(0, 0, -75)
	ranges := []analytics.Range{{From: begin, To: now}, {From: begin.AddDate(0, 0, 20), To: begin.AddDate(0, 0, 29)}, {From: now.AddDate(0, 0, -2), To: now}}
	for i, r := range ranges {
		at := string(rune('a' + i))
		all["summary "+at] = func(e answerer) (any, error) { return e.Summary(ctx, r, nil) }
		for class := range event.Classes {
			all["statistics "+at+event.Class(class).String()] = func(e answerer) (any, error) {
				return e.EventStats(ctx, analytics.StatsQuery{Range: r, Class: event.Class(class), Limit: 100})
			}
		}
		all["deliveries "+at] = func(e answerer) (any, error) { return e.Deliveries(ctx, analytics.DeliveriesQuery{Ranges: ranges}) }
		for _, by := range []analytics.Dimension{
			analytics.ByEvent, analytics.ByChannel, analytics.BySource, analytics.ByMedium, analytics.ByCampaign, analytics.ByPage, analytics.ByProduct,
		} {
			all["breakdown "+at+string(by)] = func(e answerer) (any, error) {
				return e.Breakdown(ctx, analytics.BreakdownQuery{Range: r, By: by, Order: analytics.OrderEvents})
			}
		}
	}
	all["series"] = func(e answerer) (any, error) { return e.Series(ctx, ranges, nil) }
	return all
}
