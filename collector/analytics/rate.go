package analytics

import (
	"math/big"
	"strconv"
	"strings"

	"github.com/weir-dev/weir/collector/event"
)

// Rate is a fraction in ten-thousandths, so that 0.25 is 2500.
type Rate int64

// RateOf returns part by whole, half to even; of nothing it is 0.
func RateOf(part, whole int64) Rate {
	if whole == 0 {
		return 0
	}
	return exactRate(big.NewInt(part), big.NewInt(whole))
}

// exactRate is [RateOf] for numbers of any size; whole is positive.
func exactRate(part, whole *big.Int) Rate {
	return Rate(divideHalfEven(new(big.Int).Mul(part, big.NewInt(10_000)), whole).Int64())
}

// String returns the shortest decimal text: "0.25".
func (r Rate) String() string { return event.Amount(r).String() }

// MarshalJSON renders the rate as a JSON number.
func (r Rate) MarshalJSON() ([]byte, error) { return []byte(r.String()), nil }

// Credit is a number of conversions in millionths, so that a third is 333333.
type Credit int64

// creditUnit is one conversion.
const creditUnit = 1_000_000

// String returns the shortest decimal text: "0.333333", "2". A credit is never negative.
func (c Credit) String() string {
	whole := strconv.FormatInt(int64(c)/creditUnit, 10)
	fraction := strconv.FormatInt(int64(c)%creditUnit+creditUnit, 10)[1:]
	return strings.TrimSuffix(whole+"."+strings.TrimRight(fraction, "0"), ".")
}

// MarshalJSON renders the credit as a JSON number.
func (c Credit) MarshalJSON() ([]byte, error) { return []byte(c.String()), nil }

// divideHalfEven returns n/d rounded half to even. d is positive.
func divideHalfEven(n, d *big.Int) *big.Int {
	quotient, remainder := new(big.Int).QuoRem(n, d, new(big.Int))
	switch remainder.Abs(remainder).Lsh(remainder, 1).Cmp(d) {
	case 1:
		quotient.Add(quotient, big.NewInt(int64(n.Sign())))
	case 0:
		quotient.Add(quotient, big.NewInt(int64(n.Sign())*int64(quotient.Bit(0))))
	}
	return quotient
}
