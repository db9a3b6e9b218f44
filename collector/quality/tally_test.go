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

func TestCountersOfOthersArePassedOver(t *testing.T) {
	t.Parallel()
	got := ReadPeriod(map[string]int64{"": 1, "$EU": 1, "x": 1, "?purchase": 1, "spurchase": -1, "$EURpurchase": 2})
	want := Period{Events: map[string]*Counts{"purchase": {Currencies: []CurrencyCount{{"EUR", 2}}}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
