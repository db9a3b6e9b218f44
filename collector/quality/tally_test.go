package quality

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var slotStart = time.Date(2026, 3, 31, 9, 40, 0, 0, time.UTC)

// read makes periods of what a tally has counted: of its slots, and of its hours.
func read(increments []Increment) (slot, hour Period) {
	inSlot, inHour := map[string]int64{}, map[string]int64{}
	for i := range increments {
		inSlot[increments[i].Counter] += increments[i].Count
		inHour[increments[i].HourCounter()] += increments[i].Count
	}
	return ReadPeriod(inSlot), ReadPeriod(inHour)
}

func TestWhatIsTalliedIsReadBack(t *testing.T) {
	t.Parallel()
	tally := NewTally()
	for range 3 {
		tally.Stored(slotStart, tally.Observe(slotStart, "purchase", Traits{Client: true, Email: true, Currency: "EUR"}))
	}
	tally.Stored(slotStart, tally.Observe(slotStart, "purchase", Traits{Click: true, Currency: "CHF"}))
	tally.Stored(slotStart, tally.Observe(slotStart, "a name: 😀", Traits{}))
	tally.Duplicate(slotStart, tally.Observe(slotStart, "purchase", Traits{Email: true}))
	tally.Refused(slotStart, "purchase")
	tally.Refused(slotStart, "")
	tally.Lost(slotStart, 2)
	tally.Present(slotStart)
	taken := tally.Take()
	want := Period{Counted: true, Lost: 2, Events: map[string]*Counts{
		"purchase":  {Stored: 4, Client: 3, Email: 3, Click: 1, Duplicates: 1, Refused: 1, Currencies: []CurrencyCount{{"CHF", 1}, {"EUR", 3}}},
		"a name: 😀": {Stored: 1},
		"":          {Refused: 1},
	}}
	slot, hour := read(taken)
	if diff := cmp.Diff(want, slot); diff != "" {
		t.Errorf("slot (-want +got):\n%s", diff)
	}
	want.Events["purchase"].Quarters, want.Events["a name: 😀"].Quarters = [4]int64{2: 4}, [4]int64{2: 1}
	if diff := cmp.Diff(want, hour); diff != "" {
		t.Errorf("hour (-want +got):\n%s", diff)
	}
	if again := tally.Take(); len(again) > 0 {
		t.Errorf("%v is counted twice", again)
	}
	tally.Return(taken)
	returned, _ := read(tally.Take())
	want.Counted = false // nobody says later that somebody was there
	for _, c := range want.Events {
		c.Quarters = [4]int64{}
	}
	if diff := cmp.Diff(want, returned); diff != "" {
		t.Errorf("returned (-want +got):\n%s", diff)
	}
}

// TestNamesThatSendersMakeUpAreBounded has a page's visitor make up names and currencies before a shop's own events come.
func TestNamesThatSendersMakeUpAreBounded(t *testing.T) {
	t.Parallel()
	tally := NewTally()
	for i := range 10_000 {
		tally.Stored(slotStart, tally.Observe(slotStart, fmt.Sprintf("made up %d", i), Traits{}))
		currency := string([]byte{'A' + byte(i%26), 'A' + byte(i/26%26), 'A'})
		tally.Stored(slotStart, tally.Observe(slotStart, "purchase", Traits{Currency: currency}))
	}
	tally.Stored(slotStart, tally.Observe(slotStart, "begin_checkout", Traits{}))
	slot, _ := read(tally.Take())
	if got := len(slot.Events); got != mostNames+3 {
		t.Errorf("%d events are told apart, want %d", got, mostNames+3)
	}
	if got := slot.Events[OtherEvents].Stored; got != 10_000-mostNames {
		t.Errorf("%d are others, want %d", got, 10_000-mostNames)
	}
	if got := len(slot.Events["purchase"].Currencies); got != mostCurrencies+1 {
		t.Errorf("%d currencies are told apart, want %d and the others", got, mostCurrencies)
	}
	if slot.Events["begin_checkout"] == nil {
		t.Error("an event that Weir knows has lost its place")
	}
	tomorrow := slotStart.Add(nameKept + time.Hour)
	tally.Stored(tomorrow, tally.Observe(tomorrow, "our own", Traits{}))
	if slot, _ = read(tally.Take()); slot.Events["our own"] == nil {
		t.Error("names that do not come any more keep their places")
	}
}

// TestCurrenciesAreBoundedInAnHour has a page's visitor send other currencies in each slot of an hour.
func TestCurrenciesAreBoundedInAnHour(t *testing.T) {
	t.Parallel()
	tally, hour := NewTally(), slotStart.Truncate(time.Hour)
	for i := range 144 {
		at := hour.Add(time.Duration(i%12) * SlotLength)
		for _, event := range []string{"add_to_cart", "our own"} {
			tally.Stored(at, tally.Observe(at, event, Traits{Currency: fmt.Sprintf("C%02d", i%100)}))
		}
	}
	_, period := read(tally.Take())
	if got := len(period.Events["add_to_cart"].Currencies); got != mostCurrencies+1 {
		t.Errorf("%d currencies are told apart, want %d and the others", got, mostCurrencies)
	}
	if got := period.Events["our own"].Currencies; got != nil {
		t.Errorf("names that senders make up have the currencies %v", got)
	}
}

// TestFurtherNamesAndCurrenciesAreReadAsOthers reads what somebody has written who has a collector's password, again and again: it must
// not hang on the order of a map.
func TestFurtherNamesAndCurrenciesAreReadAsOthers(t *testing.T) {
	t.Parallel()
	counters := map[string]int64{"0purchase": 1, "1refund": 1}
	for i := range 1000 {
		counters[fmt.Sprintf("0made up %03d", i)] = int64(2 + i/100)
	}
	for i := range 100 {
		counters[fmt.Sprintf("$C%02dpurchase", i)] = int64(1 + i/50)
	}
	want := ReadPeriod(counters)
	if len(want.Events) != mostNames+3 || want.Events["purchase"] == nil || want.Events["refund"] == nil {
		t.Errorf("%d events are told apart, want %d", len(want.Events), mostNames+3)
	}
	if want.Events["made up 900"] == nil || want.Events["made up 000"] != nil {
		t.Error("the rarest names are not those that are added up")
	}
	sum := int64(0)
	for name, counts := range want.Events {
		if !WellKnown(name) {
			sum += counts.Stored
		}
	}
	if sum != 6500 || want.Events[OtherEvents].Quarters[0] != want.Events[OtherEvents].Stored {
		t.Errorf("%d events, want 6500; others %+v", sum, want.Events[OtherEvents])
	}
	if got := want.Events["purchase"].Currencies; len(got) != mostCurrencies+1 || got[0].Code != OtherCurrency || got[1].Code != "C50" {
		t.Errorf("the currencies are %v", got)
	}
	for range 20 {
		if diff := cmp.Diff(want, ReadPeriod(counters)); diff != "" {
			t.Fatalf("read again (-first +again):\n%s", diff)
		}
	}
}

func TestWhatIsDroppedIsLostOnce(t *testing.T) {
	t.Parallel()
	tally := NewTally()
	for range 3 {
		tally.Stored(slotStart, tally.Observe(slotStart, "purchase", Traits{Client: true, Email: true, Currency: "EUR"}))
	}
	tally.Stored(slotStart, tally.Observe(slotStart, "our own", Traits{Client: true}))
	tally.Duplicate(slotStart, tally.Observe(slotStart, "purchase", Traits{}))
	tally.Lost(slotStart, 2)
	tally.Present(slotStart)
	tally.Drop(tally.Take())
	slot, _ := read(tally.Take())
	if diff := cmp.Diff(Period{Lost: 6, Events: map[string]*Counts{}}, slot); diff != "" {
		t.Errorf("dropped (-want +got):\n%s", diff)
	}
}

func TestCountersOfOthersArePassedOver(t *testing.T) {
	t.Parallel()
	got := ReadPeriod(map[string]int64{"": 1, "$EU": 1, "x": 1, "?purchase": 1, "spurchase": -1, "$EURpurchase": 2})
	want := Period{Events: map[string]*Counts{"purchase": {Currencies: []CurrencyCount{{"EUR", 2}}}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
