package stream

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/redisserver/redistest"
)

// held is a property with a platform whose group holds three events.
func held(t *testing.T) (*Stream, []Position) {
	t.Helper()
	s := dial(t, redistest.URL(t)).Stream("default", "shop")
	fill(t, s, 3)
	if _, err := s.EnsureGroup(t.Context(), "ads", GroupState{}); err != nil {
		t.Fatal(err)
	}
	deliveries, err := s.Read(t.Context(), "ads", "pod", 3, 0)
	if err != nil || len(deliveries) != 3 {
		t.Fatalf("read %d events: %v", len(deliveries), err)
	}
	return s, positionsOf(deliveries)
}

func settle(t *testing.T, s *Stream, settlements ...Settlement) {
	t.Helper()
	if err := s.Settle(t.Context(), "ads", settlements); err != nil {
		t.Fatal(err)
	}
}

func TestATicketIsKeptWithItsEvent(t *testing.T) {
	s, events := held(t)
	at := time.UnixMilli(1_795_500_000_000).UTC()
	ticket := Ticket{ID: "126365e1-16d0-4c81-9de9-f362711e250a", At: at}
	settle(t, s, Settlement{Record: Record{Event: events[0], Status: Retrying, Attempts: 2, Reason: "queued"}, RetryAt: at, Ticket: ticket})
	take := func(now time.Time) Delivery {
		t.Helper()
		taken, _, err := s.Due(t.Context(), "ads", now, time.Minute, 10)
		if err != nil || len(taken) != 1 {
			t.Fatalf("took %d events: %v", len(taken), err)
		}
		return taken[0]
	}
	got := take(at)
	if diff := cmp.Diff(ticket, got.Ticket); diff != "" || got.Attempts != 2 {
		t.Errorf("%d attempts, want 2; ticket (-want +got):\n%s", got.Attempts, diff)
	}
	if err := s.Postpone(t.Context(), "ads", []Delivery{got}, at.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if got := take(at.Add(time.Hour)); got.Ticket != ticket {
		t.Errorf("postponed, it has the ticket %v", got.Ticket)
	}
	older, err := s.redis.FCall(t.Context(), "weir_due", append([]string{s.keys.events()}, s.keys.retries("ads")...), 0, at.Add(3*time.Hour).UnixMilli(), at.Add(4*time.Hour).UnixMilli(), 10).Slice()
	if err != nil {
		t.Fatal(err)
	}
	list, _ := older[0].([]any)
	if entry, _ := list[0].([]any); len(entry) != 4 {
		t.Errorf("callers of an older version get %d fields, want 4", len(entry))
	}
	settle(t, s, Settlement{Record: Record{Event: events[0], Status: Retrying, Attempts: 3}, RetryAt: at})
	if got := take(at); !got.Ticket.IsZero() || got.Attempts != 3 {
		t.Errorf("sent again it has %d attempts and the ticket %v, want 3 and none", got.Attempts, got.Ticket)
	}
}

func TestSilentSettlementsLeaveNoRecord(t *testing.T) {
	s, events := held(t)
	settle(t, s, Settlement{Record: Record{Event: events[0], Status: Retrying, Reason: "queued"}, RetryAt: time.Now(), Silent: true})
	settle(t, s, Settlement{Record: Record{Event: events[0], Status: Retrying}, RetryAt: time.Now(), Silent: true},
		Settlement{Record: Record{Event: events[1], Status: Delivered, Attempts: 1}})
	records, err := s.ReadRecords(t.Context(), 0, 10, 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(records.Records) != 1 || records.Records[0].Event != events[1] {
		t.Errorf("got %+v, want one of the event that was delivered", records.Records)
	}
}

func TestRefundsOfAnOrder(t *testing.T) {
	s, events := held(t)
	key, value := OrderKey{ID: "A-1"}, int64(125_000)
	at := time.UnixMilli(1_795_500_000_000).UTC()
	purchase := func(state OrderState) *OrderChange {
		return &OrderChange{Key: key, Purchase: &Purchase{State: state, Value: &value, Currency: "EUR", At: at, Target: "1/7"}}
	}
	refund := func(event Position, amount int64, currency string) (Order, bool) {
		t.Helper()
		order, free, err := s.Refund(t.Context(), "ads", key, event, amount, currency, at, at.Add(time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		return order, free
	}
	if order, free := refund(events[1], 10_000, "EUR"); free || order.State != "" {
		t.Errorf("of an order that is not known: %+v, free %t", order, free)
	}
	settle(t, s, Settlement{Record: Record{Event: events[0], Status: Retrying, Reason: "queued"}, RetryAt: at, Ticket: Ticket{"t", at}, Order: purchase(OrderSent)})
	if order, free := refund(events[1], 10_000, "EUR"); free || order.State != OrderSent || order.Refunded != 10_000 {
		t.Errorf("of a purchase under way: %+v, free %t", order, free)
	}
	settle(t, s, Settlement{Record: Record{Event: events[0], Status: Delivered, Attempts: 1}, Order: purchase(OrderDelivered)})
	want := Order{Purchase: Purchase{State: OrderDelivered, Value: &value, Currency: "EUR", At: at, Target: "1/7"}, Refunded: 10_000}
	for range 2 {
		order, free := refund(events[1], 10_000, "EUR")
		if diff := cmp.Diff(want, order); diff != "" || !free {
			t.Errorf("free %t, want true; the order, however often it is said (-want +got):\n%s", free, diff)
		}
	}
	want.Refunded = 40_000
	if order, free := refund(events[2], 30_000, "EUR"); cmp.Diff(want, order) != "" || free {
		t.Errorf("a second refund while the first is under way: %+v, free %t", order, free)
	}
	if order, free := refund(events[2], 30_000, "CHF"); free || order.Refunded != 40_000 {
		t.Errorf("a refund in another currency: %+v, free %t", order, free)
	}
	settle(t, s, Settlement{Record: Record{Event: events[1], Status: Delivered, Attempts: 1}, Order: &OrderChange{Key: key}})
	if _, free := refund(events[2], 30_000, "EUR"); !free {
		t.Error("the second refund may not go when the first has")
	}
	// Another purchase of the order that is refused takes nothing away.
	settle(t, s, Settlement{Record: Record{Event: events[2], Status: Failed, Attempts: 2}, Order: purchase(OrderFailed)})
	orders, err := s.Orders(t.Context(), "ads", []OrderKey{key, {ID: "A-2"}, {ID: "A-1", IDSpace: 3}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Order{want, {}, {}}, orders); diff != "" {
		t.Errorf("orders (-want +got):\n%s", diff)
	}
	left, err := s.redis.PTTL(t.Context(), s.keys.prefix+"order:ads:"+hexOf(key)).Result()
	if err != nil || left <= 59*24*time.Hour || left > 60*24*time.Hour {
		t.Errorf("it is kept for %s, %v, want 60 days", left, err)
	}
}

func TestAnErasureRemovesWhatIsKnownOfOrders(t *testing.T) {
	s, events := held(t)
	value := int64(1)
	for i, id := range []string{"A-1", "A-2"} {
		settle(t, s, Settlement{Record: Record{Event: events[i], Status: Delivered, Attempts: 1}, Order: &OrderChange{
			Key: OrderKey{ID: id}, Purchase: &Purchase{State: OrderDelivered, Value: &value, Currency: "EUR", At: time.Now()},
		}})
	}
	if err := s.EraseEvents(t.Context(), []ErasedEvent{{Position: events[0], EventID: "e", OrderID: "A-1", Erasures: []string{"4-1"}}}); err != nil {
		t.Fatal(err)
	}
	known := func() (states []OrderState) {
		t.Helper()
		orders, err := s.Orders(t.Context(), "ads", []OrderKey{{ID: "A-1"}, {ID: "A-2"}})
		if err != nil {
			t.Fatal(err)
		}
		for _, order := range orders {
			states = append(states, order.State)
		}
		return states
	}
	if diff := cmp.Diff([]OrderState{"", OrderDelivered}, known()); diff != "" {
		t.Errorf("what is known of both (-want +got):\n%s", diff)
	}
	if err := s.ForgetOrders(t.Context(), []string{"ads", "other"}, []OrderKey{{ID: "A-2"}}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]OrderState{"", ""}, known()); diff != "" {
		t.Errorf("what is known then (-want +got):\n%s", diff)
	}
	// What comes too late settles nothing and leaves nothing.
	settle(t, s, Settlement{Record: Record{Event: events[0], Status: Delivered}, Order: &OrderChange{
		Key: OrderKey{ID: "A-1"}, Purchase: &Purchase{State: OrderDelivered, Value: &value, Currency: "EUR", At: time.Now()},
	}})
	if diff := cmp.Diff([]OrderState{"", ""}, known()); diff != "" {
		t.Errorf("what is known in the end (-want +got):\n%s", diff)
	}
}

func hexOf(key OrderKey) string {
	const digits = "0123456789abcdef"
	var text []byte
	for _, b := range key.digest() {
		text = append(text, digits[b>>4], digits[b&15])
	}
	return string(text)
}

func TestARefundIsNotedWhateverHasBecomeOfItsPurchase(t *testing.T) {
	s, events := held(t)
	key, value, at := OrderKey{ID: "A-1"}, int64(125_000), time.Now()
	purchase := func(state OrderState, currency string) *OrderChange {
		return &OrderChange{Key: key, Purchase: &Purchase{State: state, Value: &value, Currency: currency, At: at, Target: "1/7"}}
	}
	refunded := func() int64 {
		t.Helper()
		orders, err := s.Orders(t.Context(), "ads", []OrderKey{key})
		if err != nil {
			t.Fatal(err)
		}
		return orders[0].Refunded
	}
	settle(t, s, Settlement{Record: Record{Event: events[0], Status: Failed, Attempts: 1}, Order: purchase(OrderFailed, "EUR")})
	if _, free, err := s.Refund(t.Context(), "ads", key, events[1], 10_000, "EUR", at, at.Add(time.Minute)); err != nil || free || refunded() != 10_000 {
		t.Errorf("of a purchase that failed: free %t, %v, refunded %d", free, err, refunded())
	}
	settle(t, s, Settlement{Record: Record{Event: events[1], Status: Delivered, Attempts: 1}, Order: purchase(OrderDelivered, "EUR")})
	if got := refunded(); got != 10_000 {
		t.Errorf("delivered, it has refunds of %d, want 10000", got)
	}
	settle(t, s, Settlement{Record: Record{Event: events[2], Status: Delivered, Attempts: 1}, Order: purchase(OrderDelivered, "CHF")})
	if got := refunded(); got != 0 {
		t.Errorf("a purchase in another currency has refunds of %d, want none", got)
	}
}
