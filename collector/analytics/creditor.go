package analytics

import (
	"context"
	"math/big"

	"github.com/weir-dev/weir/collector/event"
)

// creditor keeps who conversions are credited to.
type creditor struct {
	// groups numbers what credit is given to.
	groups groups
	// direct is the group of conversions without a touch.
	direct uint32
	// ledger has the credits of whole conversions and of those that are shared into few parts; wide has those that
	// are shared into more.
	ledger ledger
	wide   wideLedger
}

func newCreditor(by Dimension) creditor {
	c := creditor{groups: groups{numbers: map[string]uint32{}}}
	c.direct = c.groups.number(directGroup(by))
	return c
}

// groups numbers names from 0 on, in the order in which they are first asked for.
type groups struct {
	numbers map[string]uint32
	names   []string
}

func (g *groups) number(name string) uint32 {
	number, known := g.numbers[name]
	if !known {
		number = uint32(len(g.names))
		g.numbers[name] = number
		g.names = append(g.names, name)
	}
	return number
}

// ledgerFor returns a ledger for conversions of which one is shared into most parts.
func (c *creditor) ledgerFor(most int) sharedLedger {
	if most <= fewParts {
		return &c.ledger
	}
	return &c.wide
}

// follow shares each of a customer's conversions, the first of which is told by its number, among the touches in its window.
func (c *creditor) follow(ctx context.Context, touches []touchpoint, conversions []conversion, first uint32, group func(touch uint32) uint32) error {
	window := lookbackWindow{touches: touches}
	most := len(touches)
	if most > fewParts {
		most = window.mostParts(conversions, first)
	}
	window.restart(c.ledgerFor(most), group)
	for n, count := first, 0; n != 0; count++ {
		if count%1024 == 1023 && ctx.Err() != nil {
			return ctx.Err()
		}
		one := &conversions[n]
		window.reach(one)
		if window.parts > 0 {
			window.ledger.share(window.parts, one.value)
		} else {
			c.ledger.give(c.direct, one.value)
		}
		n = one.next
	}
	window.empty()
	return nil
}

// result rounds the credits and returns them in order, together with the totals, at most limit of them; 0 for all.
func (c *creditor) result(totals Attribution, limit int, minorUnit event.Amount) Attribution {
	credits, whole := c.credits()
	totals.keep(resultsOf(credits, whole, totals, minorUnit), limit, whole.Mul(whole, big.NewInt(int64(totals.Conversions))))
	return totals
}

// credits returns the credit of each group, in parts of whole.
func (c *creditor) credits() (credits []namedCredit, whole *big.Int) {
	for group, name := range c.groups.names {
		credit := exactCredit{new(big.Int), new(big.Int)}
		if group < len(c.ledger.credits) {
			known := &c.ledger.credits[group]
			credit.conversions.Lsh(known.conversions.big(), guardBits)
			credit.revenue.Lsh(known.revenue.big(), guardBits)
		}
		if group < len(c.wide.credits) {
			known := &c.wide.credits[group]
			credit.conversions.Add(credit.conversions, known.conversions.exact())
			credit.revenue.Add(credit.revenue, known.revenue.exact())
		}
		if credit.conversions.Sign() != 0 {
			credits = append(credits, namedCredit{name, credit})
		}
	}
	return credits, new(big.Int).Lsh(big.NewInt(wholeUnits), guardBits)
}
