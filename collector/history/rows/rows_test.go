package rows_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/analytics/columns"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/history/rows"
	"github.com/weir-dev/weir/collector/stream"
)

const property = "default/shop"

var (
	at       = stream.At(time.UnixMilli(1795176000123)) + 7
	delivery = uuid.MustParse("0190a5c8-7b1a-7c3d-8e4f-5a6b7c8d9e0f")
)

func amount(n int64) *event.Amount { return new(event.Amount(n)) }

// purchase is an event that uses every column.
func purchase() event.Event {
	return event.Event{
		ID: "order/7", DeliveryID: delivery, Name: "purchase", Value: amount(499000), Currency: "EUR", OrderID: "7", ClientID: "c-1", UserID: "u-1",
		User:     event.Hashes{event.EmailLower: {1, 2, 3}},
		Contents: []event.Item{{ID: "cup", Quantity: amount(20000), Price: amount(125000)}, {ID: "plate"}},
		Context: event.Context{PageURL: "https://shop.example/done?gclid=x#end", UTMSource: "news\x1fletter", UTMMedium: "email\x1e", UTMCampaign: "may",
			UserAgent: "UA", IP: "203.0.113.7", ClickIDs: map[string]string{"gclid": "x"}},
		Platforms: []string{"meta", "crm"}, Tax: amount(1), Country: "CH",
	}
}

func TestAnEventComesBackFromItsRow(t *testing.T) {
	tests := map[string]func(*event.Event){
		"with everything":            func(*event.Event) {},
		"with the delivery's own id": func(e *event.Event) { e.ID = e.DeliveryID.String() },
		"without a value":            func(e *event.Event) { e.Value, e.Currency = nil, "" },
		"for no platform":            func(e *event.Event) { e.Platforms = nil },
		"of nobody":                  func(e *event.Event) { e.ClientID, e.UserID, e.User = "", "", event.Hashes{} },
		"of an anonymous visitor":    func(e *event.Event) { e.Anonymous = true },
		"of a bot":                   func(e *event.Event) { e.Class, e.Platforms = event.Bot, nil },
		"of a person known before":   func(e *event.Event) { e.Person = event.Person{1, 2, 3, 4, 5, 6, 7, 8} },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			e := purchase()
			change(&e)
			row := rows.FromEvent(property, at, &e)
			got, err := row.Restore()
			if err != nil {
				t.Fatal(err)
			}
			want := e
			want.Context.IP, want.Context.UserAgent = "", ""
			if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(event.Event{}, "Person")); diff != "" {
				t.Errorf("event (-want +got):\n%s", diff)
			}
			if e.Class.Counts() {
				wantWho, wantKnown := e.Whose(property)
				gotWho, gotKnown := got.Whose(property)
				if wantWho != gotWho || wantKnown != gotKnown {
					t.Errorf("it is %v's (%t), want %v's (%t)", gotWho, gotKnown, wantWho, wantKnown)
				}
			}
		})
	}
}

func TestARowHasTheIdentifiersThatItsVisitorIsNot(t *testing.T) {
	e := purchase()
	client := rows.Number(event.Identifiers{List: e.Identifiers(property, nil).List, Client: 1}.Default())
	others := func(e *event.Event, but uint64) (list []uint64) {
		for _, id := range e.Identifiers(property, nil).List {
			if n := rows.Number(id); n != but {
				list = append(list, n)
			}
		}
		return list
	}
	tests := map[string]struct {
		change  func(*event.Event)
		visitor uint64
		want    []uint64
	}{
		"its client id is the visitor":     {func(*event.Event) {}, client, others(&e, client)},
		"a client id and nothing else":     {func(e *event.Event) { e.UserID, e.User = "", event.Hashes{} }, client, nil},
		"the visitor is known from before": {func(e *event.Event) { e.Person = event.Person{8} }, 8 << 56, append([]uint64{0}, others(&e, 0)...)},
		"an anonymous event has them all":  {func(e *event.Event) { e.Anonymous = true }, 0, others(&e, 0)},
		"as has one of a bot":              {func(e *event.Event) { e.Class = event.Bot }, 0, others(&e, 0)},
		"an event of nobody has none":      {func(e *event.Event) { e.ClientID, e.UserID, e.User = "", "", event.Hashes{} }, 0, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			e := purchase()
			test.change(&e)
			row := rows.FromEvent(property, at, &e)
			if row.Visitor != test.visitor {
				t.Errorf("visitor %x, want %x", row.Visitor, test.visitor)
			}
			if diff := cmp.Diff(test.want, row.Identifiers); diff != "" {
				t.Errorf("identifiers (-want +got):\n%s", diff)
			}
		})
	}
}

func TestATouchIsOneText(t *testing.T) {
	for name, touch := range map[string]columns.Touch{
		"plain":                 {Source: "google", Medium: "cpc", Campaign: "may", Channel: "Paid Search"},
		"without a campaign":    {Source: "google", Medium: "cpc", Channel: "Paid Search"},
		"with the separator":    {Source: "a\x1fb", Medium: "\x1f\x1e1", Campaign: "\x1e", Channel: "Other"},
		"with escapes in a row": {Source: "\x1e\x1e0\x1e1", Channel: "Other"},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := rows.ParseTouch(rows.TouchText(touch))
			if !ok || got != touch {
				t.Errorf("got %q, %t, want %q", got, ok, touch)
			}
		})
	}
	if _, ok := rows.ParseTouch(""); ok {
		t.Error("no touch is read as one")
	}
}

func TestWhatASaleIsWorthIsKeptOfSalesAlone(t *testing.T) {
	e := purchase()
	sold := rows.FromEvent(property, at, &e)
	e.Name = "view_content"
	seen := rows.FromEvent(property, at, &e)
	if diff := cmp.Diff([]int64{20000, 10000}, sold.ProductQuantities); diff != "" {
		t.Errorf("quantities of a sale (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]*int64{new(int64(250000)), new(int64(0))}, sold.ProductAmounts); diff != "" {
		t.Errorf("amounts of a sale (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int64{0, 0}, seen.ProductQuantities); diff != "" {
		t.Errorf("quantities of what is no sale (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]*int64{nil, nil}, seen.ProductAmounts); diff != "" {
		t.Errorf("amounts of what is no sale (-want +got):\n%s", diff)
	}
}

func TestARecordComesBackFromItsRow(t *testing.T) {
	want := stream.Record{
		Event: at, Platform: "meta", Status: stream.Retrying, Attempts: 3, Latency: 41 * time.Millisecond, Reason: "timeout", At: at.Time().Add(5 * time.Second),
	}
	row := rows.FromRecord(at+99, 2, &want, "purchase")
	if diff := cmp.Diff(want, row.Restore()); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
	if row.Entry != uint64(at+99) || row.Nth != 2 || row.Name != "purchase" {
		t.Errorf("the row is %+v", row)
	}
}
