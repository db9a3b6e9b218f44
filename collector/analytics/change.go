package analytics

import (
	"math/big"

	"github.com/weir-dev/weir/collector/event"
)

// Change is how much a figure has grown, as a fraction of what it was before, rounded half to even to 4 decimals: -0.25 says that
// a quarter is gone.
type Change struct{ fraction event.Sum }

// ChangeOf compares a figure with the one before. It is nil where that was not more than 0, of which nothing is a fraction.
func ChangeOf[N int | event.Amount | Rate](now, before N) *Change {
	return changeOf(big.NewInt(int64(now)), big.NewInt(int64(before)))
}

// ChangeOfSum is [ChangeOf] for sums.
func ChangeOfSum(now, before event.Sum) *Change { return changeOf(now.Big(), before.Big()) }

func changeOf(now, before *big.Int) *Change {
	if before.Sign() <= 0 {
		return nil
	}
	grown := new(big.Int).Sub(now, before)
	return &Change{event.SumOf(divideHalfEven(grown.Mul(grown, big.NewInt(10_000)), before))}
}

// String returns the shortest decimal text: "-0.25".
func (c Change) String() string { return c.fraction.String() }

// MarshalJSON renders the change as a JSON number.
func (c Change) MarshalJSON() ([]byte, error) { return c.fraction.MarshalJSON() }
