package history_test

import (
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/clickhouse/clickhousetest"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/history"
	"github.com/weir-dev/weir/collector/history/rows"
	"github.com/weir-dev/weir/collector/history/schema"
	"github.com/weir-dev/weir/collector/stream"
)

var (
	questions = flag.Int("questions", 300, "how many random questions both engines are asked")
	seed      = flag.Uint64("seed", 0, "what the made-up pasts are made of; 0 for another one each time")
)

const property = "default/shop"

var begin = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// engine is what both engines are.
//
//nolint:interfacebloat // it has a method for each kind of question
type engine interface {
	Summary(ctx context.Context, r analytics.Range, filter analytics.Filter) (analytics.Summary, error)
	Series(ctx context.Context, ranges []analytics.Range, filter analytics.Filter) (analytics.Series, error)
	Breakdown(ctx context.Context, q analytics.BreakdownQuery) (analytics.Breakdown, error)
	EventStats(ctx context.Context, q analytics.StatsQuery) (analytics.Stats, error)
	Deliveries(ctx context.Context, q analytics.DeliveriesQuery) (analytics.Deliveries, error)
	Listing(ctx context.Context, q analytics.ListingQuery) (analytics.Page, error)
	Status(ctx context.Context) analytics.Status
	Funnel(ctx context.Context, q analytics.FunnelQuery) (analytics.Funnel, error)
	Attribution(ctx context.Context, q analytics.AttributionQuery) (analytics.Attribution, error)
}

// past is a made-up past that a view and a history have.
type past struct {
	*rand.Rand
	last     stream.Position
	pace     int64
	visitors int
	currency string
	view     *analytics.View
	history  *history.Engine
	// anonymous is the position before which both take events for nobody's.
	anonymous stream.Position
	// oldest is the position before which the history keeps nothing.
	oldest stream.Position
	// touches are the newest touch of each visitor, and where it was.
	touches map[uint64]rows.Event
	// seen is the newest event of each visitor, of those of which the archive knows.
	seen   map[uint64]stream.Position
	client *clickhouse.Client
	// entries are the events as they stood in the stream, erased those that were erased, forgotten the position before which all were
	// forgotten.
	entries   []stream.Entry
	erased    []stream.Position
	forgotten stream.Position
	// events are what has happened, table their rows, records what became of them, and recordTable that in rows.
	events      []happened
	table       []rows.Event
	records     []stream.Record
	recordTable []rows.Record
}

// happened is an event and where it stands in its stream.
type happened struct {
	at stream.Position
	event.Event
}

// newPast makes up some events.
func newPast(t *testing.T, seed uint64) *past {
	t.Helper()
	return newPastIn(t, clickhousetest.Shared(t), seed, 1+int(seed%5)*60)
}

// newPastIn makes up some events in a database.
func newPastIn(t *testing.T, address string, seed uint64, events int) *past {
	t.Helper()
	client, err := clickhouse.Dial(address, clickhouse.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	if _, err := schema.Ensure(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(seed, 14))
	p := &past{
		Rand: r, last: stream.At(begin), pace: pick(r, int64(1), 1000, 600_000, 3*24*3_600_000), visitors: 1 + r.IntN(6),
		currency: pick(r, "EUR", "EUR", "JPY", "KWD"), touches: map[uint64]rows.Event{}, seen: map[uint64]stream.Position{}, client: client,
	}
	p.view = analytics.NewView(analytics.Options{Property: property, Currency: p.currency, Logger: slog.New(slog.DiscardHandler)})
	p.history = history.New(history.Options{Client: client, Currency: p.currency, Anonymous: func() stream.Position { return p.anonymous }, Oldest: func() stream.Position { return p.oldest }})
	var entries []stream.Entry
	for range events {
		e := p.event()
		p.events = append(p.events, happened{p.last, e})
		p.hear(r.IntN(5))
		entries = append(entries, stream.Entry{Position: p.last, Data: wire.Encode(&e)})
		p.table = append(p.table, p.row(&e))
	}
	p.hearAgain()
	p.entries = entries
	if err := p.view.AddEvents(entries); err != nil {
		t.Fatal(err)
	}
	p.view.AddRecords(p.records)
	for block := range slices.Chunk(p.recordTable, max(1, len(p.recordTable)/2)) {
		if err := clickhouse.Insert(t.Context(), client, schema.Records, block, ""); err != nil {
			t.Fatal(err)
		}
	}
	for block := range slices.Chunk(p.table, 1+r.IntN(events)) {
		if err := clickhouse.Insert(t.Context(), client, schema.Events, block, ""); err != nil {
			t.Fatal(err)
		}
	}
	p.lose(t, client)
	if r.IntN(3) == 0 {
		p.anonymous = stream.At(begin.Add(time.Duration(r.Int64N(p.last.Time().Sub(begin).Milliseconds()+1)) * time.Millisecond))
		p.view.Anonymize(p.anonymous)
	}
	return p
}

// row is an event's, with the origin that whoever archives it finds.
func (p *past) row(e *event.Event) rows.Event {
	row := rows.FromEvent(property, p.last, e)
	if row.Visitor == 0 {
		return row
	}
	if seen, known := p.seen[row.Visitor]; known && p.last.Milliseconds()-seen.Milliseconds() < math.MaxUint32 {
		row.Since = uint32(p.last.Milliseconds()-seen.Milliseconds()) + 1
	}
	if p.seen[row.Visitor] = p.last; p.IntN(9) == 0 {
		delete(p.seen, row.Visitor) // it need not be known
	}
	if row.Touch != "" {
		p.touches[row.Visitor] = row
		return row
	}
	touch, known := p.touches[row.Visitor]
	if age := stream.Position(row.At).Milliseconds() - stream.Position(touch.At).Milliseconds(); known && age <= analytics.TouchLookback.Milliseconds() {
		row.Origin, row.OriginAge = touch.Touch, uint32(age)
	}
	return row
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// event makes up the next event, often in the same millisecond.
func (p *past) event() event.Event {
	if p.IntN(5) > 0 {
		p.last = stream.At(p.last.Time().Add(time.Duration(p.Int64N(p.pace)+1) * time.Millisecond))
	} else {
		p.last++
	}
	e := event.Event{DeliveryID: uuid.New(), Name: pick(p.Rand, "pageview", "pageview", "add_to_cart", "purchase", "purchase", "refund", "lead")}
	e.ID = e.DeliveryID.String()
	if p.IntN(3) == 0 {
		e.ID = fmt.Sprintf("Order %d", p.IntN(20))
	}
	if e.Name == "purchase" || e.Name == "refund" || p.IntN(4) == 0 {
		e.Value = new(event.Amount(max(0, p.Int64N(1000)-30) * pick[int64](p.Rand, 1, 100, 10_000)))
		e.Currency = pick(p.Rand, p.currency, p.currency, "USD", "")
	}
	if p.IntN(5) == 0 {
		e.Class = event.Class(p.IntN(event.Classes))
	}
	e.Context = pick(p.Rand, contexts()...)
	p.identify(&e)
	if p.IntN(3) == 0 {
		for range p.IntN(4) {
			e.Contents = append(e.Contents, event.Item{ID: pick(p.Rand, "p1", "p2", fmt.Sprint("p", p.IntN(9)), ""), Price: pick(p.Rand, nil, new(event.Amount(p.Int64N(99_999))))})
		}
	}
	if p.IntN(3) == 0 {
		e.ContentID = pick(p.Rand, "p1", "p4")
	}
	if e.Name == "purchase" {
		e.OrderID = fmt.Sprint(p.IntN(40))
	}
	if e.Class == event.Human {
		e.Platforms = pick(p.Rand, nil, []string{"meta"}, []string{"meta", "crm"})
	}
	return e
}

func contexts() []event.Context {
	return []event.Context{
		{}, {}, {PageURL: "https://shop.example/a?x"}, {PageURL: "https://shop.example", Referrer: "https://l.facebook.com/"},
		{PageURL: "https://shop.example/a", UTMSource: "google", UTMMedium: "cpc", UTMCampaign: "spring"},
		{UTMSource: "google", UTMMedium: "cpc", UTMCampaign: "\x1fsum'mer\\"}, {UTMSource: "newsletter", UTMMedium: "email"}, {UTMSource: "partner"},
		{ClickIDs: map[string]string{"gclid": "x"}},
	}
}

// identify makes up whose event it is.
func (p *past) identify(e *event.Event) {
	who := p.IntN(p.visitors)
	hash := event.Hash(sha256.Sum256([]byte{byte(who)}))
	switch p.IntN(8) {
	case 0:
	case 1:
		e.User[event.EmailLower] = hash
	case 2:
		e.UserID = fmt.Sprint("u", who)
	case 3:
		e.ClientID, e.Person = fmt.Sprint("c", who), event.Person{1, byte(p.IntN(p.visitors))} // known from before
	case 4:
		e.ClientID, e.Anonymous = fmt.Sprint("c", who), true
	default:
		e.ClientID = fmt.Sprint("c", who)
	}
}

// someRange is a range somewhere about the past.
func (p *past) someRange() analytics.Range {
	length := p.last.Time().Sub(begin).Milliseconds() + 2
	from, to := p.Int64N(length)-1, p.Int64N(length)+1
	if p.IntN(3) == 0 {
		from, to = 0, length
	}
	at := func(ms int64) time.Time {
		return begin.Add(time.Duration(ms)*time.Millisecond + pick(p.Rand, 0, 0, 300*time.Microsecond))
	}
	return analytics.Range{From: at(min(from, to)), To: at(max(from, to))}
}

// someParts are ranges that follow one another, some of them empty, as those of a calendar.
func (p *past) someParts() []analytics.Range {
	whole := p.someRange()
	cuts := []time.Time{whole.From, whole.To}
	for range p.IntN(6) {
		cuts = append(cuts, whole.From.Add(time.Duration(p.Int64N(max(0, int64(whole.To.Sub(whole.From)))+1))))
	}
	slices.SortFunc(cuts, time.Time.Compare)
	var parts []analytics.Range
	for i := range cuts[1:] {
		parts = append(parts, analytics.Range{From: cuts[i], To: cuts[i+1]})
	}
	return parts
}

// someFilter makes up a filter.
func (p *past) someFilter() analytics.Filter {
	values := map[analytics.Dimension][]string{
		analytics.ByEvent: {"purchase", "pageview", "refund", "unknown", "it's"}, analytics.ByPage: {"/", "/a", "(none)", ""},
		analytics.ByProduct: {"p1", "p2", "(none)", "", "unknown"}, analytics.ByChannel: {"Direct", "Email", "Paid Search", "unknown"},
		analytics.BySource: {"google", "(direct)", "newsletter", "l.facebook.com"}, analytics.ByMedium: {"cpc", "(none)", "social", ""},
		analytics.ByCampaign: {"spring", "(none)", "\x1fsum'mer\\"},
	}
	filter := analytics.Filter{}
	for _, by := range slices.Sorted(maps.Keys(values)) {
		if p.IntN(6) == 0 {
			p.Shuffle(len(values[by]), func(i, j int) { values[by][i], values[by][j] = values[by][j], values[by][i] })
			filter[by] = values[by][:p.IntN(4)]
		}
	}
	return filter
}

// kinds are the questions. Each makes up one, and returns what it is and how it is asked.
func kinds() map[string]func(p *past) (question any, ask func(engine) (any, error)) {
	return map[string]func(p *past) (any, func(engine) (any, error)){
		"summary": func(p *past) (any, func(engine) (any, error)) {
			r, filter := p.someRange(), p.someFilter()
			return []any{r, filter}, func(e engine) (any, error) { return e.Summary(context.Background(), r, filter) }
		},
		"breakdown": func(p *past) (any, func(engine) (any, error)) {
			q := analytics.BreakdownQuery{
				Range: p.someRange(), Filter: p.someFilter(), Limit: p.IntN(4),
				By:    pick(p.Rand, analytics.ByEvent, analytics.ByChannel, analytics.BySource, analytics.ByMedium, analytics.ByCampaign, analytics.ByPage, analytics.ByProduct),
				Order: pick(p.Rand, analytics.OrderEvents, analytics.OrderUniqueVisitors, analytics.OrderPurchases, analytics.OrderRevenue),
			}
			return q, func(e engine) (any, error) { return e.Breakdown(context.Background(), q) }
		},
		"event statistics": func(p *past) (any, func(engine) (any, error)) {
			q := analytics.StatsQuery{Range: p.someRange(), Limit: 1 + p.IntN(6), Class: pick(p.Rand, event.Human, event.Human, event.Bot)}
			if p.IntN(2) == 0 {
				q.After = analytics.StatsPlace{Count: p.IntN(30), Event: pick(p.Rand, "", "lead", "pageview", "purchase")}
			}
			return q, func(e engine) (any, error) { return e.EventStats(context.Background(), q) }
		},
		"deliveries": func(p *past) (any, func(engine) (any, error)) {
			q := analytics.DeliveriesQuery{
				Ranges: p.someParts(), Platforms: pick(p.Rand, nil, []string{"crm"}, []string{"meta", "gone"}),
				Events: pick(p.Rand, nil, nil, []string{"purchase"}, []string{"lead", "it's", "pageview"}),
			}
			return q, func(e engine) (any, error) { return e.Deliveries(context.Background(), q) }
		},
		"listing": someListing,
		"status": func(*past) (any, func(engine) (any, error)) {
			return nil, func(e engine) (any, error) {
				s := e.Status(context.Background())
				for n := 0; n < 20 && !s.Connected; n++ { // a busy machine's history may not say it in time; a view is not connected to anything here
					s = e.Status(context.Background())
				}
				return []any{s.Last, s.AsOf, s.CompleteFrom, s.Events}, nil
			}
		},
		"series of parts": func(p *past) (any, func(engine) (any, error)) {
			ranges, filter := p.someParts(), p.someFilter()
			return []any{ranges, filter}, func(e engine) (any, error) { return e.Series(context.Background(), ranges, filter) }
		},
		"series": func(p *past) (any, func(engine) (any, error)) {
			ranges, filter := []analytics.Range{p.someRange(), p.someRange(), p.someRange()}, p.someFilter()
			return []any{ranges, filter}, func(e engine) (any, error) { return e.Series(context.Background(), ranges, filter) }
		},
	}
}

// TestBothEnginesAnswerTheSame asks a view and a history of the same made-up pasts the same random questions.
func TestBothEnginesAnswerTheSame(t *testing.T) {
	first := *seed
	if first == 0 {
		first = rand.Uint64()
	}
	const perPast = 30
	names := slices.Sorted(maps.Keys(allKinds()))
	for n := range max(1, *questions/perPast) {
		p := newPast(t, first+uint64(n))
		for range perPast {
			p.compare(t, pick(p.Rand, names...), fmt.Sprintf("-seed %d -questions 1", first+uint64(n)))
		}
	}
}

// compare asks both engines a question of a kind.
func (p *past) compare(t *testing.T, kind, again string) {
	t.Helper()
	question, ask := allKinds()[kind](p)
	want, err := ask(p.view)
	if err != nil {
		t.Fatal(err)
	}
	got, err := ask(p.history)
	if err != nil {
		t.Fatalf("%s %v of %s: %v", kind, question, again, err)
	}
	since := time.Time{}
	if p.entries[0].Position < p.oldest {
		since = p.oldest.Time()
	}
	complete := cmp.FilterPath(func(path cmp.Path) bool { return path.Last().String() == ".CompleteFrom" }, cmp.Comparer(func(a, b time.Time) bool {
		if a.Before(b) { // the view has not been told
			a, b = b, a
		}
		return a.Equal(b) || a.Equal(since) || a.Equal(since.Add(time.Millisecond)) // a view takes the whole millisecond
	}))
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmp.Comparer(func(a, b event.Sum) bool { return a == b }), complete); diff != "" {
		t.Fatalf("%s %v differs with %s (-view +history):\n%s", kind, question, again, diff)
	}
}
