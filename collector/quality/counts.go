// Package quality finds numbers that go wrong quietly: events that become fewer, that lose what tells whose they are, that
// are repeated or refused more than they used to be, or that come in other currencies. It compares what was counted lately
// with what was counted at the same time of the week, for four weeks, in the Property's time zone.
//
// Nothing in it does I/O: collectors count with a [Tally], somebody keeps the counts, and a [Judge] reads them back by way of
// a [Source]. docs/internals/decisions/data-quality.md has the statistics.
package quality

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// SlotLength is for how long what was counted newest is kept apart, and how often it is judged.
const SlotLength = 5 * time.Minute

// Counts are of one event, in a slot or in an hour. Only events that count for humans are in them.
type Counts struct {
	// Stored are the events that were stored; of these Client have a client id, Email the hash of an e-mail address, and Click
	// a click id.
	Stored, Client, Email, Click int64
	// Duplicates are events that were known already, Refused those that were refused for what they hold. Neither is stored.
	Duplicates, Refused int64
	// Quarters are those stored in each quarter of an hour; of a slot it is not said.
	Quarters [quarters]int64
	// Currencies are how many of those stored are in each; those without a currency are in none.
	Currencies []CurrencyCount
}

// quarters is how many there are in an hour.
const quarters = 4

// CurrencyCount is how many events are in a currency.
type CurrencyCount struct {
	// Code is an ISO 4217 code, or [OtherCurrency].
	Code  string
	Count int64
}

// OtherCurrency stands for all currencies of an event beyond those that are told apart.
const OtherCurrency = "*"

// Sent is how many events were sent, whatever became of them.
func (c *Counts) Sent() int64 { return c.Stored + c.Duplicates + c.Refused }

// In is how many events are in a currency; in "" are those that have none.
func (c *Counts) In(code string) int64 {
	rest := c.Stored
	for _, currency := range c.Currencies {
		if currency.Code == code {
			return currency.Count
		}
		rest -= currency.Count
	}
	if code != "" {
		return 0
	}
	return max(rest, 0)
}

// addTimes adds what was counted elsewhere, so many times. Of quarters it is not said any more.
func (c *Counts) addTimes(more *Counts, times int64) {
	c.Stored += times * more.Stored
	c.Client += times * more.Client
	c.Email += times * more.Email
	c.Click += times * more.Click
	c.Duplicates += times * more.Duplicates
	c.Refused += times * more.Refused
	for _, currency := range more.Currencies {
		c.addCurrency(currency.Code, times*currency.Count)
	}
}

func (c *Counts) addCurrency(code string, count int64) {
	at := slices.IndexFunc(c.Currencies, func(known CurrencyCount) bool { return known.Code == code })
	if at < 0 {
		c.Currencies = append(c.Currencies, CurrencyCount{code, count})
		return
	}
	c.Currencies[at].Count += count
}

// Period is what was counted in a slot or in an hour.
type Period struct {
	// Counted says that a collector was there to count. What nobody has counted is not zero but unknown.
	Counted bool
	// Lost is how many events could not be stored because Redis was away. Their senders were told so, and send them again.
	Lost int64
	// Events are the counts by the event's name; "" is what was refused without one.
	Events map[string]*Counts
}

// known says that the period's counts tell how much was sent. While Redis was away they do not, and other alerts speak.
func (p *Period) known() bool {
	if !p.Counted || p.Lost == 0 {
		return p.Counted
	}
	sent := p.Lost
	for _, c := range p.Events {
		sent += c.Stored
	}
	const mostLost = 50 // one in so many
	return p.Lost*mostLost <= sent
}

// of returns the counts of an event.
func (p *Period) of(event string) *Counts {
	if c := p.Events[event]; c != nil {
		return c
	}
	return &Counts{}
}

// The kinds of counters: the first byte of a counter's name, which ends in the event's. In between stands a currency, of three
// bytes, for those that count one.
const (
	kindStored    = 's'
	kindClient    = 'c'
	kindEmail     = 'e'
	kindClick     = 'k'
	kindDuplicate = 'd'
	kindRefused   = 'r'
	kindCurrency  = '$'
	kindLost      = '!'
	kindPresent   = '+'
	// kindQuarter and the three behind it count what is stored in a quarter of an hour.
	kindQuarter = '0'
)

const currencyLength = 3

// ReadPeriod makes a period of counters by their names, as a [Tally] gives them. What is none of them is passed over. It has no more
// names and currencies than a tally tells apart: further ones, as somebody may have written who has a collector's password, are
// added to what stands for the others, the rarest first, so that everybody who reads them sees the same.
func ReadPeriod(counters map[string]int64) Period {
	p := Period{Events: map[string]*Counts{}}
	for name, count := range counters {
		if name == "" || count < 0 {
			continue
		}
		p.read(name[0], name[1:], count)
	}
	p.bound()
	for _, c := range p.Events { // what comes out of a map comes in any order
		c.bound()
		slices.SortFunc(c.Currencies, func(a, b CurrencyCount) int { return strings.Compare(a.Code, b.Code) })
	}
	return p
}

// bound adds the names that are too many to all others. The usual events always stay.
func (p *Period) bound() {
	var names []string
	for name := range p.Events {
		if name != OtherEvents && !WellKnown(name) {
			names = append(names, name)
		}
	}
	if len(names) <= mostNames {
		return
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(p.Events[b].Sent(), p.Events[a].Sent()), strings.Compare(a, b))
	})
	others := p.Events[OtherEvents]
	if others == nil {
		others = &Counts{}
		p.Events[OtherEvents] = others
	}
	for _, name := range names[mostNames:] {
		others.addTimes(p.Events[name], 1)
		for i, stored := range p.Events[name].Quarters {
			others.Quarters[i] += stored
		}
		delete(p.Events, name)
	}
}

// bound adds the currencies that are too many to all others.
func (c *Counts) bound() {
	if len(c.Currencies) <= mostCurrencies {
		return
	}
	slices.SortFunc(c.Currencies, func(a, b CurrencyCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Code, b.Code))
	})
	told := c.Currencies
	c.Currencies = make([]CurrencyCount, 0, mostCurrencies+1)
	places, others := mostCurrencies, int64(0)
	for _, currency := range told {
		if currency.Code == OtherCurrency || places == 0 {
			others += currency.Count
			continue
		}
		c.Currencies = append(c.Currencies, currency)
		places--
	}
	if others > 0 {
		c.addCurrency(OtherCurrency, others)
	}
}

func (p *Period) read(kind byte, event string, count int64) {
	switch kind {
	case kindPresent:
		p.Counted = true
		return
	case kindLost:
		p.Lost += count
		return
	case kindCurrency:
		if len(event) < currencyLength {
			return
		}
	case kindStored, kindClient, kindEmail, kindClick, kindDuplicate, kindRefused, kindQuarter, kindQuarter + 1, kindQuarter + 2, kindQuarter + 3:
	default:
		return
	}
	code := ""
	if kind == kindCurrency {
		code, event = strings.TrimSpace(event[:currencyLength]), event[currencyLength:]
	}
	c := p.Events[event]
	if c == nil {
		c = &Counts{}
		p.Events[strings.Clone(event)] = c
	}
	c.read(kind, code, count)
}

func (c *Counts) read(kind byte, code string, count int64) {
	switch kind {
	case kindStored:
		c.Stored += count
	case kindClient:
		c.Client += count
	case kindEmail:
		c.Email += count
	case kindClick:
		c.Click += count
	case kindDuplicate:
		c.Duplicates += count
	case kindRefused:
		c.Refused += count
	case kindCurrency:
		c.addCurrency(strings.Clone(code), count)
	default: // a quarter
		c.Stored += count
		c.Quarters[kind-kindQuarter] += count
	}
}
