package quality

import (
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// mostNames is how many events of a Property are counted by their names at a time, beside those that Weir gives a meaning
	// to: names are the senders', and a page's visitor may make up any number of them.
	mostNames = 64
	// nameKept is for how long a name that does not come any more keeps its place.
	nameKept = 24 * time.Hour
	// mostCurrencies is how many currencies of an event are told apart in an hour.
	mostCurrencies = 12
	// mostWaiting is how many counters wait at most where nobody takes them: those that are new are left out then.
	mostWaiting = 20_000
)

// OtherEvents stands for all events beyond those that are counted by their names. No event has this name.
const OtherEvents = "\x00"

// wellKnown are the events that shops send, which always have a place.
var wellKnown = [...]string{
	"purchase", "refund", "add_to_cart", "pageview", "begin_checkout", "add_payment_info", "add_shipping_info", "view_item",
	"view_item_list", "view_cart", "remove_from_cart", "search", "sign_up", "login", "generate_lead", "subscribe", "",
}

// WellKnown says whether an event is one of those that always have a place.
func WellKnown(event string) bool { return slices.Contains(wellKnown[:], event) }

// Traits are what is counted of an event that is stored.
type Traits struct {
	Client, Email, Click bool
	// Currency is "" where it has none.
	Currency string
}

// Observed is what is counted of an event, once it is known what has become of it. It keeps nothing of a request.
type Observed struct {
	event  string
	traits Traits
}

// Increment is what is to be added to a counter.
type Increment struct {
	// Slot is when the slot begins.
	Slot time.Time
	// Counter is the counter's name; [ReadPeriod] reads it.
	Counter string
	Count   int64
}

// HourCounter is the name of the counter for the slot's hour: there it is told apart how many are stored in each quarter.
func (i *Increment) HourCounter() string {
	if i.Counter[0] != kindStored {
		return i.Counter
	}
	const minutes = 15
	return string(kindQuarter+byte(i.Slot.UTC().Minute()/minutes)) + i.Counter[1:]
}

// Place is what a counter needs to be kept: one of Most places that all of a group share, in each slot and hour and whoever counts.
// Where its member has none and there is none left the counter is called Instead, behind its first byte.
type Place struct {
	Group, Member, Instead string
	Most                   int
}

// The groups: names that senders make up, and the currencies of an event, which has its name behind it.
const namesGroup, currenciesGroup = "n", "$"

// Place returns what the counter needs to be kept. Those of the usual events need none.
func (i *Increment) Place() (place Place, needed bool) {
	switch kind, event := i.Counter[0], i.Counter[1:]; {
	case kind == kindCurrency && event[:currencyLength] != otherCurrencyCode:
		code, event := event[:currencyLength], event[currencyLength:]
		return Place{currenciesGroup + event, code, otherCurrencyCode + event, mostCurrencies}, true
	case kind == kindCurrency, kind == kindLost, kind == kindPresent, event == OtherEvents, WellKnown(event):
		return Place{}, false
	default:
		return Place{namesGroup, event, OtherEvents, mostNames}, true
	}
}

const (
	// hourKinds is how many counters an event has in an hour, beside those of its currencies.
	hourKinds = quarters + 5
	// MostFields is how many fields the counts of an hour have at most, whoever counts and whatever is sent: those of the usual events
	// and of all others; of each other name one more that tells of its place, and of each currency; how many places are taken; that
	// somebody was there, and what was lost.
	MostFields = (len(wellKnown)+1)*hourKinds + mostNames*(hourKinds+1) + 1 + len(wellKnown)*(2*mostCurrencies+2) + 2
)

// Tally counts a Property's events until somebody takes the counts. It keeps nothing of an event but its name and its currency, and
// is safe for concurrent use.
type Tally struct {
	mu     sync.Mutex
	names  map[string]named
	counts map[counter]int64
	// currencies are those of an event in the hour that is counted now.
	currencies map[string][]string
	hour       time.Time
}

// named is a name that has a place, and when it came last; zero for those that always have one.
type named struct {
	name string
	last time.Time
}

// counter is one counter of one slot.
type counter struct {
	slot     int64
	kind     byte
	currency string
	event    string
}

// NewTally returns a tally that has counted nothing.
func NewTally() *Tally {
	t := &Tally{names: map[string]named{}, counts: map[counter]int64{}, currencies: map[string][]string{}}
	for _, name := range wellKnown {
		t.names[name] = named{name: name}
	}
	return t
}

// Observe returns what is to be counted of an event.
func (t *Tally) Observe(at time.Time, event string, traits Traits) Observed {
	t.mu.Lock()
	defer t.mu.Unlock()
	event = t.name(at, event)
	switch {
	case traits.Currency == "":
	case WellKnown(event):
		traits.Currency = t.currency(at, event, traits.Currency)
	default: // names times currencies would be too many counters
		traits.Currency = ""
	}
	return Observed{event, traits}
}

// Stored counts an event that was stored at a time.
func (t *Tally) Stored(at time.Time, of Observed) {
	t.mu.Lock()
	defer t.mu.Unlock()
	event, traits := of.event, of.traits
	t.count(at, kindStored, "", event, 1)
	if traits.Client {
		t.count(at, kindClient, "", event, 1)
	}
	if traits.Email {
		t.count(at, kindEmail, "", event, 1)
	}
	if traits.Click {
		t.count(at, kindClick, "", event, 1)
	}
	if traits.Currency != "" {
		t.count(at, kindCurrency, traits.Currency, event, 1)
	}
}

// Duplicate counts an event that was known already.
func (t *Tally) Duplicate(at time.Time, of Observed) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.count(at, kindDuplicate, "", of.event, 1)
}

// Refused counts an event that was refused for what it holds; its name is "" where it has no valid one.
func (t *Tally) Refused(at time.Time, event string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.count(at, kindRefused, "", t.name(at, event), 1)
}

// Lost counts events that could not be stored because Redis was away.
func (t *Tally) Lost(at time.Time, events int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.count(at, kindLost, "", "", int64(events))
}

// Present notes that somebody counts, so that no event in a slot is none and not unknown.
func (t *Tally) Present(at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts[counter{slot: at.Truncate(SlotLength).UnixMilli(), kind: kindPresent}] = 1
}

func (t *Tally) count(at time.Time, kind byte, currency, event string, count int64) {
	key := counter{at.Truncate(SlotLength).UnixMilli(), kind, currency, event}
	if _, known := t.counts[key]; !known && len(t.counts) >= mostWaiting {
		return
	}
	t.counts[key] += count
}

// name returns what an event is counted under: its name where that has a place or gets one.
func (t *Tally) name(at time.Time, event string) string {
	known, found := t.names[event]
	switch {
	case found && known.last.IsZero():
		return known.name
	case !found:
		if len(t.names) >= mostNames+len(wellKnown) {
			t.dropNames(at)
		}
		if len(t.names) >= mostNames+len(wellKnown) {
			return OtherEvents
		}
		known.name = strings.Clone(event) // which must not hold the request's body
	}
	known.last = at
	t.names[known.name] = known
	return known.name
}

// dropNames lets go of the names that have not come for long.
func (t *Tally) dropNames(now time.Time) {
	for name, known := range t.names {
		if !known.last.IsZero() && now.Sub(known.last) > nameKept {
			delete(t.names, name)
		}
	}
}

// currency returns what a currency of an event is counted under.
func (t *Tally) currency(at time.Time, event, code string) string {
	if len(code) != currencyLength {
		return otherCurrencyCode
	}
	if hour := at.Truncate(time.Hour); !hour.Equal(t.hour) {
		t.hour = hour
		clear(t.currencies)
	}
	for _, known := range t.currencies[event] {
		if known == code {
			return known
		}
	}
	if len(t.currencies[event]) >= mostCurrencies {
		return otherCurrencyCode
	}
	code = strings.Clone(code)
	t.currencies[event] = append(t.currencies[event], code)
	return code
}

// otherCurrencyCode is [OtherCurrency] as long as other codes are.
const otherCurrencyCode = OtherCurrency + "  "

// Take returns what was counted since it was called last, and begins anew.
func (t *Tally) Take() []Increment {
	t.mu.Lock()
	defer t.mu.Unlock()
	taken := make([]Increment, 0, len(t.counts))
	for key, count := range t.counts {
		taken = append(taken, Increment{time.UnixMilli(key.slot).UTC(), string(key.kind) + key.currency + key.event, count})
	}
	clear(t.counts)
	return taken
}

// Drop lets go of what was taken of which nobody knows whether it was kept: it would count twice if it was given back. The events in
// it are lost, so that a slot of which much is missing is not taken for one in which little came.
func (t *Tally) Drop(increments []Increment) {
	t.mu.Lock()
	defer t.mu.Unlock()
	type events struct {
		slot int64
		name string
	}
	lost := map[events]int64{} // an event has several counters
	for _, i := range increments {
		name := i.Counter[1:]
		switch i.Counter[0] {
		case kindStored, kindClient, kindEmail, kindClick:
		case kindCurrency:
			name = name[currencyLength:]
		case kindLost:
			t.count(i.Slot, kindLost, "", "", i.Count)
			continue
		default:
			continue
		}
		of := events{i.Slot.UnixMilli(), name}
		lost[of] = max(lost[of], i.Count)
	}
	for of, count := range lost {
		t.count(time.UnixMilli(of.slot), kindLost, "", "", count)
	}
}

// Return gives back what was taken and was not kept. That somebody was there is told anew, or not at all.
func (t *Tally) Return(increments []Increment) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, i := range increments {
		key := counter{slot: i.Slot.UnixMilli(), kind: i.Counter[0], event: i.Counter[1:]}
		switch key.kind {
		case kindPresent:
			continue
		case kindCurrency:
			key.currency, key.event = key.event[:currencyLength], key.event[currencyLength:]
		}
		if _, known := t.counts[key]; !known && len(t.counts) >= mostWaiting {
			continue
		}
		t.counts[key] += i.Count
	}
}
