package analytics

import (
	"context"

	"github.com/weir-dev/weir/collector/analytics/columns"
	"github.com/weir-dev/weir/collector/event"
)

// journeys are the conversions and the touches of those who had a conversion, each customer's in stream order. Rows
// are told by how many rows of a range lie before them.
type journeys struct {
	// numbers has the customers' numbers by visitor, 0 for who is none. members has a bit for each visitor, set for
	// customers: most touches are of others, and the bits stay in the processor's cache where the numbers do not.
	numbers []uint32
	members bitset
	// customers and conversions begin with one that is nobody's, so that 0 can stand for none.
	customers   []customer
	conversions []conversion
	// touches are ordered by customer once sort has been called; before that they stand as they came, in the blocks of
	// chosen, which never have to move for more to come.
	touches []touchpoint
	chosen  [][]chosenTouch
	// reservation pays for the touches.
	reservation *reservation
}

// customer is a visitor with a conversion.
type customer struct {
	// first and last are the numbers of the customer's conversions.
	first, last uint32
	// end is the count of the touches while they are added, then where they end.
	end uint32
}

// conversion is one of a customer's, or of nobody.
type conversion struct {
	// value is in the property's currency.
	value event.Amount
	// at is the conversion's row, oldest the first that is not too old for one of its touches.
	at, oldest uint32
	// visitor is whose it is. next is the number of the customer's next conversion, 0 for none.
	visitor, next uint32
}

// touchpoint is a touch of a customer: its row and the touch's number.
type touchpoint struct{ at, touch uint32 }

// chosenTouch is a touchpoint of the customer with a number.
type chosenTouch struct {
	customer uint32
	touchpoint
}

// chosenBlock is how many touches a block of chosen has room for, those of several chunks.
const chosenBlock = 8 * columns.ChunkRows

// newJourneys makes room for visitors with numbers below limit and for a number of conversions.
func newJourneys(limit, conversions int) *journeys {
	return &journeys{
		numbers: make([]uint32, limit), members: newBitset(limit),
		customers: make([]customer, 1, 1+min(conversions, limit)), conversions: make([]conversion, 1, 1+conversions),
	}
}

// convert adds a conversion of a customer. Conversions are added in stream order.
func (j *journeys) convert(c conversion) {
	number, visitor := uint32(len(j.conversions)), c.visitor
	j.conversions = append(j.conversions, c)
	if known := j.numbers[visitor]; known != 0 {
		who := &j.customers[known]
		j.conversions[who.last].next = number
		who.last = number
		return
	}
	j.numbers[visitor] = uint32(len(j.customers))
	j.members.add(visitor)
	j.customers = append(j.customers, customer{first: number, last: number})
}

// choose adds a run of touches in stream order, of those who are customers; their rows follow offset.
func (j *journeys) choose(t *columns.TouchRows, offset uint32) {
	last := len(j.chosen) - 1
	if last < 0 || cap(j.chosen[last])-len(j.chosen[last]) < len(t.Visitors) {
		// A touch stands in a block and then in touches. Where this fails the query ends with this chunk.
		_ = j.reservation.growFor(max(chosenBlock, len(t.Visitors)), 12+8)
		j.chosen = append(j.chosen, make([]chosenTouch, 0, max(chosenBlock, len(t.Visitors))))
		last++
	}
	block := j.chosen[last]
	for i, visitor := range t.Visitors {
		if j.members.bit(visitor) == 0 {
			continue
		}
		number := j.numbers[visitor]
		block = append(block, chosenTouch{number, touchpoint{offset + uint32(t.Rows[i]), t.Touches[i]}})
		j.customers[number].end++
	}
	j.chosen[last] = block
}

// sort orders the touches by customer; afterwards of may be called.
func (j *journeys) sort(ctx context.Context) error {
	from := uint32(0)
	for i := range j.customers {
		count := j.customers[i].end
		j.customers[i].end = from
		from += count
	}
	j.touches = make([]touchpoint, from)
	for _, block := range j.chosen {
		if err := ctx.Err(); err != nil {
			return err
		}
		for i := range block {
			end := &j.customers[block[i].customer].end
			j.touches[*end] = block[i].touchpoint
			*end++
		}
	}
	j.chosen = nil
	return nil
}

// of returns the touches of the customer with a number.
func (j *journeys) of(number int) []touchpoint {
	return j.touches[j.customers[number-1].end:j.customers[number].end]
}
