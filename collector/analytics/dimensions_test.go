package analytics

import (
	"fmt"
	"log/slog"
	"maps"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/analytics/columns"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/stream"
)

// groupsOf asks a view for a breakdown of an afternoon and returns its groups as "name events", in order.
func groupsOf(t *testing.T, v *View, by Dimension, filter Filter) string {
	t.Helper()
	b, err := v.Breakdown(t.Context(), BreakdownQuery{Range: afternoon(), By: by, Order: OrderEvents, Filter: filter})
	mustNot(t, err)
	var words []string
	for i := range b.Groups {
		words = append(words, fmt.Sprint(b.Groups[i].Name, " ", b.Groups[i].Events))
	}
	return strings.Join(words, ", ")
}

func TestWhereAnEventComesFrom(t *testing.T) {
	for sentence, scene := range map[string]struct {
		tale []string
		want string
	}{
		"from its own touch":                             {[]string{"1h a x from:google"}, "google 1"},
		"from the visitor's touch before":                {[]string{"0h a x from:google", "1h a x"}, "google 2"},
		"from the latest of them":                        {[]string{"0h a x from:google", "1h a x from:bing", "2h a x", "3h a x"}, "bing 3, google 1"},
		"not from a touch that comes later":              {[]string{"0h a x", "1h a x from:google"}, "(direct) 1, google 1"},
		"not from another visitor's":                     {[]string{"0h a x from:google", "1h b x"}, "(direct) 1, google 1"},
		"from a touch before the period":                 {[]string{"-1h a x from:google", "1h a x"}, "google 1"},
		"from a touch of 30 days ago":                    {[]string{"-719h a x from:google", "1h a x"}, "google 1"},
		"not from an older one":                          {[]string{"-719h a x from:google", "1h1ms a x"}, "(direct) 1"},
		"nor from one that an event between has renewed": {[]string{"-719h a x from:google", "-1h a x", "2h a x"}, "(direct) 1"},
		"nobody's event from nowhere":                    {[]string{"1h - x from:google"}, "(direct) 1"},
		"an event of who has denied analytics neither":   {[]string{"0h a x from:google", "1h a x anonymous"}, "(direct) 1, google 1"},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := groupsOf(t, tale(t, scene.tale...), BySource, nil); got != scene.want {
				t.Errorf("the sources are %q, want %q", got, scene.want)
			}
		})
	}
}

func TestWhereAnEventComesFromIsForgottenWithItsTouch(t *testing.T) {
	for sentence, scene := range map[string]struct {
		forget func(v *View, touch, next stream.Position)
		want   string
	}{
		"nothing is forgotten":     {func(*View, stream.Position, stream.Position) {}, "bing 2, google 1"},
		"the touch is erased":      {func(v *View, touch, _ stream.Position) { mustNot(t, v.Erase([]stream.Position{touch})) }, "google 2"},
		"the touch is trimmed":     {func(v *View, _, next stream.Position) { v.Forget(next) }, "(direct) 1"},
		"the touch becomes nobody": {func(v *View, _, next stream.Position) { v.Anonymize(next) }, "(direct) 3"},
	} {
		t.Run(sentence, func(t *testing.T) {
			v := tale(t, "0h a x from:google", "1h a x from:bing", "2h a x")
			scene.forget(v, stream.At(begin.Add(time.Hour)), stream.At(begin.Add(2*time.Hour)))
			if got := groupsOf(t, v, BySource, nil); got != scene.want {
				t.Errorf("the sources are %q, want %q", got, scene.want)
			}
		})
	}
}

func TestPages(t *testing.T) {
	for url, want := range map[string]string{
		"": "", "https://shop.example/a/b?c=/d#e": "/a/b", "https://shop.example": "/", "https://shop.example?a": "/", "https://shop.example/": "/",
		"https://shop.example/%C3%A4%2F": "/%C3%A4%2F", "https://shop.example//a": "//a", "//shop.example/a": "/a", "/a?b": "/a", "/go/https://x/y": "/go/https://x/y",
		"about:blank": "about:blank", "#top": "/", "(none)": "",
	} {
		if got := pageOf(url); got != want {
			t.Errorf("the page of %q is %q, want %q", url, got, want)
		}
	}
}

// amountOf is the amount of a text, nil for none.
func amountOf(t *testing.T, text string) *event.Amount {
	t.Helper()
	if text == "" {
		return nil
	}
	amount, err := event.ParseAmount(text)
	mustNot(t, err)
	return &amount
}

func TestProducts(t *testing.T) {
	item := func(id, price, quantity string) event.Item {
		return event.Item{ID: id, Price: amountOf(t, price), Quantity: amountOf(t, quantity)}
	}
	for sentence, scene := range map[string]struct {
		event event.Event
		want  string
	}{
		"are those of the items":                     {event.Event{Contents: []event.Item{item("a", "2", "3"), item("b", "1.5", "2")}}, "a 6 3, b 3 2"},
		"one piece where the item says nothing":      {event.Event{Contents: []event.Item{item("a", "2.5", "")}}, "a 2.5 1"},
		"no money without a price":                   {event.Event{Contents: []event.Item{item("a", "", "3")}}, "a 0 3"},
		"each once":                                  {event.Event{Contents: []event.Item{item("a", "2", "1"), item("b", "1", "1"), item("a", "3", "2")}}, "a 8 3, b 1 1"},
		"rounded half to even, a line at a time":     {event.Event{Contents: []event.Item{item("a", "0.0005", "0.1"), item("a", "0.0015", "0.1")}}, "a 0.0002 0.2"},
		"the content id with the event's value else": {event.Event{ContentID: "c", Value: amountOf(t, "9")}, "c 9 1"},
		"not beside items":                           {event.Event{ContentID: "c", Contents: []event.Item{item("a", "2", "1")}}, "a 2 1"},
		"but beside items without an id":             {event.Event{ContentID: "c", Value: amountOf(t, "9"), Contents: []event.Item{item("", "2", "1")}}, "c 9 1"},
		"nothing where nothing is named":             {event.Event{Value: amountOf(t, "9")}, ""},
		"at most the largest amount":                 {event.Event{Contents: []event.Item{item("a", "99999999999", "99999999999")}}, "a 99999999999.9999 99999999999"},
	} {
		t.Run(sentence, func(t *testing.T) {
			var words []string
			for _, p := range productsOf(&scene.event) {
				words = append(words, fmt.Sprint(p.ID, " ", p.Amount, " ", p.Quantity))
			}
			if got := strings.Join(words, ", "); got != scene.want {
				t.Errorf("the products are %q, want %q", got, scene.want)
			}
		})
	}
	if got := productsOf(&event.Event{ContentID: "c"}); len(got) != 1 || got[0].Amount != columns.NoValue {
		t.Errorf("a content id without a value is %+v, want no amount", got)
	}
}

// toldByTheMinute is a view of events a minute apart.
func toldByTheMinute(t *testing.T, events ...event.Event) *View {
	t.Helper()
	v := NewView(Options{Property: testProperty, Currency: "EUR", Logger: slog.New(slog.DiscardHandler)})
	var entries []stream.Entry
	for i, e := range events {
		e.ID, e.DeliveryID = fmt.Sprint(i), uuid.UUID{6: 0x70, 8: 0x80}
		entries = append(entries, stream.Entry{Position: stream.At(begin.Add(time.Duration(i) * time.Minute)), Data: wire.Encode(&e)})
	}
	mustNot(t, v.AddEvents(entries))
	return v
}

func TestABreakdownByProductHasTheItemsMoney(t *testing.T) {
	sale := func(name, who string, items ...event.Item) event.Event {
		return event.Event{Name: name, ClientID: who, Value: amountOf(t, "100"), Currency: "EUR", Contents: items}
	}
	item := func(id, price, quantity string) event.Item {
		return event.Item{ID: id, Price: amountOf(t, price), Quantity: amountOf(t, quantity)}
	}
	v := toldByTheMinute(t,
		event.Event{Name: "pageview", ClientID: "a", ContentID: "shoe"},
		event.Event{Name: "pageview", ClientID: "b", ContentID: "shoe"},
		sale("purchase", "a", item("shoe", "40", "2"), item("lace", "5", "")),
		sale("refund", "a", item("shoe", "40", "1")),
		sale("purchase", "a"),
	)
	b, err := v.Breakdown(t.Context(), BreakdownQuery{Range: afternoon(), By: ByProduct, Order: OrderRevenue, Limit: 2})
	mustNot(t, err)
	shoe, others := b.Groups[1], b.Others
	for what, pair := range map[string][2]any{
		"the first group is what names no product, with the event's value": {fmt.Sprint(b.Groups[0].Name, " ", b.Groups[0].Revenue), "(none) 100"},
		"the shoe's revenue is the items'":                                 {fmt.Sprint(shoe.Name, " ", shoe.GrossRevenue, " ", shoe.Refunded, " ", shoe.Revenue), "shoe 80 40 40"},
		"pieces are the purchases' less the refunds'":                      {shoe.Quantity.String(), "1"},
		"visitors are counted once":                                        {shoe.UniqueVisitors, 2},
		"one of two has bought":                                            {shoe.ConversionRate.String(), "0.5"},
		"four of five events name the shoe":                                {shoe.Share.String(), "0.8"},
		"the lace is left out":                                             {fmt.Sprint(others.Groups, " ", others.Events, " ", others.Purchases, " ", others.Revenue), "1 1 1 5"},
		"the totals have each event once, with its value":                  {fmt.Sprint(b.Totals.Events, " ", b.Totals.Purchases, " ", b.Totals.Revenue), "5 2 100"},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: got %v, want %v", what, pair[0], pair[1])
		}
	}
}

func TestFilters(t *testing.T) {
	v := toldByTheMinute(t,
		event.Event{Name: "pageview", ClientID: "a", Context: event.Context{UTMSource: "google", UTMMedium: "cpc", UTMCampaign: "spring", PageURL: "https://s.example/a"}},
		event.Event{Name: "pageview", ClientID: "a", ContentID: "shoe", Context: event.Context{PageURL: "https://s.example/b"}},
		event.Event{Name: "purchase", ClientID: "a", Contents: []event.Item{{ID: "shoe"}, {ID: "lace"}}},
		event.Event{Name: "pageview", ClientID: "b", Context: event.Context{PageURL: "https://s.example/a"}},
		event.Event{Name: "pageview", Class: event.Bot, Context: event.Context{UTMSource: "google", PageURL: "https://s.example/a"}},
	)
	for sentence, scene := range map[string]struct {
		filter       Filter
		events, bots int
	}{
		"none keeps all":                            {nil, 4, 1},
		"nor do lists that are empty drop any":      {Filter{ByEvent: nil, ByPage: {}}, 4, 1},
		"a name keeps its events of every class":    {Filter{ByEvent: {"pageview"}}, 3, 1},
		"two names keep those of either":            {Filter{ByEvent: {"pageview", "purchase"}}, 4, 1},
		"a name that nothing has keeps nothing":     {Filter{ByEvent: {"unknown"}}, 0, 0},
		"a page":                                    {Filter{ByPage: {"/a"}}, 2, 1},
		"no page":                                   {Filter{ByPage: {"(none)"}}, 1, 0},
		"an empty page is none that an event has":   {Filter{ByPage: {""}}, 0, 0},
		"a product":                                 {Filter{ByProduct: {"shoe"}}, 2, 0},
		"an event of two products is kept once":     {Filter{ByProduct: {"shoe", "lace"}}, 2, 0},
		"no product, or one":                        {Filter{ByProduct: {"(none)", "lace"}}, 3, 1},
		"a channel that the visitor came by before": {Filter{ByChannel: {"Paid Search"}}, 3, 0},
		"none":                              {Filter{ByChannel: {Direct}}, 1, 1},
		"two dimensions keep what has both": {Filter{BySource: {"google"}, ByPage: {"/a"}}, 1, 0},
		"dimensions of one touch are of the same touch": {Filter{ByMedium: {"cpc"}, ByCampaign: {"spring", "summer"}}, 3, 0},
	} {
		t.Run(sentence, func(t *testing.T) {
			got, err := v.Summary(t.Context(), afternoon(), scene.filter)
			mustNot(t, err)
			if got.Events != scene.events || got.EventsByClass[event.Bot] != scene.bots {
				t.Errorf("%d events and %d of bots, want %d and %d", got.Events, got.EventsByClass[event.Bot], scene.events, scene.bots)
			}
		})
	}
}

func TestABreakdownByOriginCreditsWhatTheLastTouchIsCredited(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			w := newWorld(seed)
			w.erases = true
			w.grow(t, 200)
			for range 3 {
				w.live(t, 30)
				for _, by := range []Dimension{ByChannel, BySource, ByMedium, ByCampaign} {
					w.checkAgainstLastTouch(t, by)
				}
			}
		})
	}
}

// checkAgainstLastTouch compares the purchases and what they brought in with the attribution's.
func (w *world) checkAgainstLastTouch(t *testing.T, by Dimension) {
	t.Helper()
	r := w.someRange()
	b, err := w.view.Breakdown(t.Context(), BreakdownQuery{Range: r, By: by, Order: OrderPurchases})
	mustNot(t, err)
	a, err := w.view.Attribution(t.Context(), AttributionQuery{
		Range: r, Model: LastTouch, ConversionEvent: "purchase", Lookback: TouchLookback, GroupBy: by,
	})
	mustNot(t, err)
	got, want := map[string]string{}, map[string]string{}
	revenue := map[string]event.Sum{}
	for i := range b.Groups {
		if g := &b.Groups[i]; g.Purchases > 0 {
			got[g.Name], revenue[g.Name] = fmt.Sprint(g.Purchases), g.GrossRevenue
		}
	}
	for _, result := range a.Results {
		want[result.Name] = result.Conversions.String()
		// Credits are rounded to the minor unit, where that suffices for their total; sums are not.
		off := result.Revenue.Minus(revenue[result.Name])
		if unit := event.MinorUnit(w.oracle.currency); new(big.Int).Abs(off.Big()).Cmp(big.NewInt(int64(unit))) >= 0 {
			t.Errorf("by %s the purchases of %s have brought in %s, and the last touch is credited %s", by, result.Name, revenue[result.Name], result.Revenue)
		}
	}
	if !maps.Equal(got, want) {
		t.Fatalf("by %s the purchases are %v, want those of the last touch, %v", by, got, want)
	}
}

func TestABreakdownOfManyPagesIsExact(t *testing.T) {
	const count = 60_000
	view := shape{count, func(n int) event.Event {
		return event.Event{Name: "pageview", ClientID: fmt.Sprint(n % 7000), Context: event.Context{PageURL: fmt.Sprint("https://s.example/", n%20_000)}}
	}}.view(t, Options{})
	b, err := view.Breakdown(t.Context(), BreakdownQuery{Range: everything, By: ByPage, Order: OrderUniqueVisitors, Limit: 100})
	mustNot(t, err)
	names := make([]string, len(b.Groups))
	for i := range b.Groups {
		names[i] = b.Groups[i].Name
		if b.Groups[i].Events != 3 || b.Groups[i].UniqueVisitors != 3 {
			t.Errorf("%s has %d events of %d visitors, want 3 of 3", names[i], b.Groups[i].Events, b.Groups[i].UniqueVisitors)
		}
	}
	if !slices.IsSorted(names) || b.Others == nil || b.Others.Groups != 20_000-100 || b.Others.Events != count-300 {
		t.Errorf("the others are %+v behind %v", b.Others, names)
	}
}
