package deliver

import (
	"fmt"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/deliver/fakes"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/stream"
)

// refund accepts a refund of the n-th purchase of a site.
func (s *site) refund(n int, value string) stream.Position {
	s.t.Helper()
	return s.accept(fmt.Sprintf(`{"event":"refund","client_id":%q,"user":{"email":%q},"data":{"value":%s,"currency":"EUR","order_id":"order-%d"}}`,
		clientID, rawEmail, value, n))
}

// values are the amounts with which the fake has taken an order, in turn.
func (s *site) values(order int) []string {
	var list []string
	for _, receipt := range s.fake.Receipts() {
		for _, e := range receipt.Events {
			if e.ID == fmt.Sprintf("order-%d", order) && e.Refusal == "" {
				list = append(list, e.Value)
			}
		}
	}
	return list
}

// wantsValues holds these amounts against those.
func (s *site) wantsValues(order int, want ...string) {
	s.t.Helper()
	if diff := cmp.Diff(want, s.values(order)); diff != "" {
		s.t.Errorf("the order's values (-want +got):\n%s", diff)
	}
}

func TestRefundsRestateTheirPurchase(t *testing.T) {
	t.Parallel()
	s := newSite(t, platforms.TypeGoogle)
	s.launch()
	purchase, _ := s.purchase("")
	s.wants("the purchase is delivered", map[stream.Position]record{purchase: isDelivered})
	first := s.refund(1, "2.5")
	s.wants("a refund is delivered", map[stream.Position]record{first: isDelivered})
	s.fake.Process(fakes.Processing{Unknown: true})
	second := s.refund(1, "4")
	s.wants("a second one is delivered, though it is sent twice", map[stream.Position]record{second: isDelivered})
	third := s.refund(1, "100")
	s.wants("one of more than is left is delivered", map[stream.Position]record{third: isDelivered})
	s.wantsValues(1, "12.5", "10", "6", "6", "0")
	for _, receipt := range s.fake.Receipts() {
		for _, e := range receipt.Events {
			if e.Name != "77" {
				t.Errorf("conversion action %s, want that of the purchase", e.Name)
			}
		}
	}
}

func TestARefundWaitsForThePurchaseThatIsUnderWay(t *testing.T) {
	t.Parallel()
	s := newSite(t, platforms.TypeGoogle)
	s.fake.Process(fakes.Processing{Looks: 2})
	s.launch()
	purchase, _ := s.purchase("")
	s.wants("the purchase is queued", map[stream.Position]record{purchase: isQueued})
	refund := s.refund(1, "2.5")
	waits := map[stream.Position]record{refund: {Status: "retrying", Reason: "awaiting_purchase"}}
	s.wants("the refund waits", waits)
	s.wants("the purchase is delivered", map[stream.Position]record{purchase: isDelivered})
	s.wants("the refund still waits", waits)
	s.advance(2 * time.Minute)
	s.wants("the refund is delivered", map[stream.Position]record{refund: isDelivered})
	s.wantsValues(1, "12.5", "10")
}

func TestARefundWaitsForTheOneBeforeIt(t *testing.T) {
	t.Parallel()
	s := newSite(t, platforms.TypeGoogle)
	s.launch()
	purchase, _ := s.purchase("")
	s.wants("the purchase is delivered", map[stream.Position]record{purchase: isDelivered})
	s.fake.Process(fakes.Processing{Looks: 2})
	first := s.refund(1, "2.5")
	s.wants("the first refund is queued", map[stream.Position]record{first: isQueued})
	second := s.refund(1, "4")
	s.wants("the second one waits", map[stream.Position]record{second: {Status: "retrying", Reason: "awaiting_refund"}})
	s.wants("the first one is delivered", map[stream.Position]record{first: isDelivered})
	s.advance(2 * time.Minute)
	s.wants("the second one is delivered", map[stream.Position]record{second: isDelivered})
	s.wantsValues(1, "12.5", "10", "6")
}

func TestARefundIsNeverANewConversion(t *testing.T) {
	for name, test := range map[string]struct {
		// purchase says whether there is one, refused why Google refuses it.
		purchase bool
		refused  string
		refund   string
		later    time.Duration
		want     record
	}{
		"of an order that nobody has sent": {refund: `{"value":1,"currency":"EUR","order_id":"order-1"}`, later: 25 * time.Hour, want: record{Status: "skipped", Reason: "transaction_unknown"}},
		"of an order that Google has refused": {
			purchase: true, refused: "INVALID_EVENT", refund: `{"value":1,"currency":"EUR","order_id":"order-1"}`, want: record{Status: "skipped", Reason: "transaction_unknown"},
		},
		"of an order whose click another order has had": {
			purchase: true, refused: "DUPLICATE_GCLID", refund: `{"value":1,"currency":"EUR","order_id":"order-1"}`, want: record{Status: "skipped", Reason: "transaction_unknown"},
		},
		"in another currency": {
			purchase: true, refund: `{"value":1,"currency":"CHF","order_id":"order-1"}`, want: record{Status: "skipped", Reason: "other_currency"},
		},
		"of no order": {purchase: true, refund: `{"value":1,"currency":"EUR"}`, want: record{Status: "skipped", Reason: "no_order_id"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, platforms.TypeGoogle)
			if test.refused != "" {
				s.fake.RefuseLater("PROCESSING_ERROR_REASON_"+test.refused, "order-1")
			}
			s.launch()
			sent := 0
			if test.purchase {
				position, _ := s.purchase("")
				s.await("the purchase is settled", func() string {
					if status := s.records("p")[position].Status; status != "delivered" && status != "failed" {
						return "it is " + status
					}
					return ""
				})
				sent = 1
			}
			refund := s.accept(fmt.Sprintf(`{"event":"refund","client_id":"1.2","user":{"email":%q},"data":%s}`, rawEmail, test.refund))
			if test.later > 0 {
				s.wants("the refund waits", map[stream.Position]record{refund: {Status: "retrying", Reason: "awaiting_purchase"}})
				s.advance(test.later)
			}
			s.wants(name, map[stream.Position]record{refund: test.want})
			taken := 0
			for _, n := range s.fake.Taken() {
				taken += n
			}
			if taken != sent {
				t.Errorf("Google has taken %v, want %d", s.fake.Taken(), sent)
			}
		})
	}
}

func TestARefundThatGoogleTakesForARepeatHasFailed(t *testing.T) {
	t.Parallel()
	s := newSite(t, platforms.TypeGoogle)
	s.launch()
	purchase, _ := s.purchase("")
	s.wants("the purchase is delivered", map[stream.Position]record{purchase: isDelivered})
	s.fake.RefuseLater("PROCESSING_ERROR_REASON_DUPLICATE_TRANSACTION_ID", "order-1")
	refund := s.refund(1, "2.5")
	s.wants("its value was not taken", map[stream.Position]record{refund: {Status: "failed", Reason: "duplicate_transaction_id"}})
}

var stamp = regexp.MustCompile(`"lastUpdatedTimestamp":"([^"]*)"`)

func TestTheLaterRestatementIsStampedLater(t *testing.T) {
	t.Parallel()
	s := newSite(t, platforms.TypeGoogle)
	s.launch()
	purchase, _ := s.purchase("")
	s.wants("the purchase is delivered", map[stream.Position]record{purchase: isDelivered})
	for _, ago := range []time.Duration{0, time.Hour} {
		refund := s.accept(fmt.Sprintf(
			`{"event":"refund","timestamp":%q,"client_id":%q,"user":{"email":%q},"data":{"value":2.5,"currency":"EUR","order_id":"order-1"}}`,
			time.Now().Add(-ago).UTC().Format(time.RFC3339), clientID, rawEmail))
		s.wants("the refund is delivered", map[stream.Position]record{refund: isDelivered})
	}
	s.wantsValues(1, "12.5", "10", "7.5")
	s.mu.Lock()
	defer s.mu.Unlock()
	var stamps []string
	for _, found := range stamp.FindAllStringSubmatch(s.wire.String(), -1) {
		stamps = append(stamps, found[1])
	}
	if len(stamps) != 2 || !slices.IsSorted(stamps) || stamps[0] == stamps[1] {
		t.Errorf("the restatements are stamped %v, want each later than the one before", stamps)
	}
}

func TestARefundChangesNoPurchaseThatWasOnlyChecked(t *testing.T) {
	t.Parallel()
	s := newSite(t, platforms.TypeGoogle)
	live := s.property.Platforms[0].Google
	s.property.Platforms[0].Google = &platforms.Google{AccountID: live.AccountID, Test: true}
	checking := s.launch()
	purchase, _ := s.purchase("")
	s.wants("the purchase is checked", map[stream.Position]record{purchase: isDelivered})
	first := s.refund(1, "2.5")
	s.wants("its refund is checked", map[stream.Position]record{first: isDelivered})
	checking.stop()
	s.property.Platforms[0].Google = live
	s.launch()
	second := s.refund(1, "4")
	s.wants("Google has no purchase that it could change", map[stream.Position]record{second: {Status: "skipped", Reason: "transaction_unknown"}})
}

// replay puts back what has failed.
func (s *site) replay() {
	s.t.Helper()
	n, err := s.stream.Replay(s.t.Context(), stream.ReplayRequest{
		Platform: "p", From: s.now().Add(-time.Hour), To: s.now().Add(time.Hour), Statuses: []stream.Status{stream.Failed}, Now: s.now(),
	})
	if err != nil || n != 1 {
		s.t.Fatalf("%d were replayed, %v; want 1", n, err)
	}
}

func TestAPurchaseThatGoesAgainGoesWithTheValueThatIsLeft(t *testing.T) {
	t.Parallel()
	s := newSite(t, platforms.TypeGoogle)
	s.fake.RefuseLater("PROCESSING_ERROR_REASON_INVALID_EVENT", "order-1")
	s.launch()
	purchase, _ := s.purchase("")
	s.wants("the purchase has failed", map[stream.Position]record{purchase: {Status: "failed", Reason: "invalid_event"}})
	first := s.refund(1, "2.5")
	s.wants("its refund has nothing to change", map[stream.Position]record{first: {Status: "skipped", Reason: "transaction_unknown"}})
	s.fake.RefuseLater("", "order-1")
	s.replay()
	s.await("the purchase is delivered", func() string { return cmp.Diff("delivered", s.last("p", purchase).Status) })
	second := s.refund(1, "4")
	s.await("another refund is delivered", func() string { return cmp.Diff("delivered", s.last("p", second).Status) })
	s.wantsValues(1, "12.5", "10", "6")
}

func TestASecondPurchaseOfAnOrderCountsInPlaceOfTheFirst(t *testing.T) {
	t.Parallel()
	s := newSite(t, platforms.TypeGoogle)
	s.launch()
	first, _ := s.purchase("")
	s.wants("the purchase is delivered", map[stream.Position]record{first: isDelivered})
	refund := s.refund(1, "2.5")
	s.wants("its refund is delivered", map[stream.Position]record{refund: isDelivered})
	second := s.accept(fmt.Sprintf(
		`{"event":"purchase","client_id":%q,"user":{"email":%q},"data":{"value":20,"currency":"EUR","order_id":"order-1"}}`, clientID, rawEmail))
	s.wants("the second purchase is delivered", map[stream.Position]record{second: isDelivered})
	refund = s.refund(1, "1")
	s.wants("another refund is delivered", map[stream.Position]record{refund: isDelivered})
	s.wantsValues(1, "12.5", "10", "17.5", "16.5")
}
