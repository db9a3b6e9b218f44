package event

import (
	"cmp"
	"errors"
	"math"
	"math/big"
	"math/bits"
	"strconv"
	"strings"
)

// Amount is money as a count of ten-thousandths of a currency's unit, so that 12.5 is 125000. Money never
// passes through a binary float.
type Amount int64

// amountDigits is the number of fraction digits an [Amount] carries.
const amountDigits = 4

// MaxAmount is the largest amount an event may carry: 15 digits, 4 of them behind the point.
const MaxAmount Amount = 999_999_999_999_999

// Errors of [ParseAmount].
var (
	// ErrAmountSyntax says that the text is no decimal number.
	ErrAmountSyntax = errors.New("not a decimal number")
	// ErrAmountRange says that the number's magnitude is above [MaxAmount].
	ErrAmountRange = errors.New("number out of range")
)

// ParseAmount reads a JSON number or a plain decimal ("12.50", "-3", "1e2") and rounds it half to even to
// four fraction digits. It fails with [ErrAmountSyntax] or [ErrAmountRange], and its cost is bounded by the
// length of the text whatever exponent that names.
func ParseAmount(text string) (Amount, error) {
	if amount, ok := parsePlainAmount(text); ok {
		return amount, nil
	}
	return parseAmount(text)
}

// parsePlainAmount reads most of the amounts that there are, at a tenth of the cost: digits and, behind a point, no more
// of them than an [Amount] carries.
func parsePlainAmount(text string) (Amount, bool) {
	if len(text) > len("99999999999.9999") {
		return 0, false
	}
	var amount Amount
	point := len(text)
	for i := range len(text) {
		switch c := text[i]; {
		case c >= '0' && c <= '9':
			amount = 10*amount + Amount(c-'0')
		case c == '.' && i > 0 && point == len(text):
			point = i
		default:
			return 0, false
		}
	}
	fraction := max(len(text)-point-1, 0)
	// More digits before the point are out of range, or zeros to be passed over: and could overflow.
	if text == "" || point == len(text)-1 || point > len("99999999999") || fraction > amountDigits {
		return 0, false
	}
	for range amountDigits - fraction {
		amount *= 10
	}
	return amount, amount <= MaxAmount
}

func parseAmount(text string) (Amount, error) {
	mantissa, exponent, err := splitExponent(text)
	if err != nil {
		return 0, err
	}
	negative := strings.HasPrefix(mantissa, "-")
	whole, fraction, hasPoint := strings.Cut(strings.TrimPrefix(mantissa, "-"), ".")
	if whole == "" || !allDigits(whole) || (hasPoint && (fraction == "" || !allDigits(fraction))) {
		return 0, ErrAmountSyntax
	}

	digits := strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return 0, nil
	}
	// The value is digits × 10^-scale; keep says how many of the digits count whole ten-thousandths.
	scale := len(fraction) - exponent
	keep := len(digits) - scale + amountDigits
	if keep > 15 {
		return 0, ErrAmountRange
	}
	amount := roundHalfEven(digits, keep)
	if amount > MaxAmount {
		return 0, ErrAmountRange
	}
	if negative {
		return -amount, nil
	}
	return amount, nil
}

// splitExponent parts "1.5e3" into "1.5" and 3. An exponent beyond what a body could outweigh is clamped: it
// decides between zero and out of range all the same.
func splitExponent(text string) (mantissa string, exponent int, err error) {
	at := strings.IndexAny(text, "eE")
	if at < 0 {
		return text, 0, nil
	}
	exponent, err = strconv.Atoi(text[at+1:])
	const clamp = 1 << 30
	switch {
	case errors.Is(err, strconv.ErrRange):
		if strings.HasPrefix(text[at+1:], "-") {
			exponent = -clamp
		} else {
			exponent = clamp
		}
	case err != nil:
		return "", 0, ErrAmountSyntax
	}
	return text[:at], min(max(exponent, -clamp), clamp), nil
}

// roundHalfEven returns the integer that the first keep digits spell (padded with zeros where there are
// fewer), rounded by the digits behind them. keep is at most 15.
func roundHalfEven(digits string, keep int) Amount {
	if keep < 0 {
		return 0
	}
	head, tail := digits, ""
	if keep < len(digits) {
		head, tail = digits[:keep], digits[keep:]
	}
	var n Amount
	for i := range keep {
		n *= 10
		if i < len(head) {
			n += Amount(head[i] - '0')
		}
	}
	if tail == "" {
		return n
	}
	rest := strings.TrimRight(tail[1:], "0")
	if tail[0] > '5' || (tail[0] == '5' && (rest != "" || n%2 == 1)) {
		n++
	}
	return n
}

func allDigits(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' }) < 0
}

// Whole returns the units, and whether there is no fraction of one.
func (a Amount) Whole() (int64, bool) {
	const unit = 1_0000
	return int64(a) / unit, a%unit == 0
}

// Times returns the amount for a quantity, in ten-thousandths too, rounded half to even; where that is more than [MaxAmount],
// which no event is worth, it is that.
func (a Amount) Times(quantity Amount) Amount {
	const unit = 1_0000
	high, low := bits.Mul64(magnitude(a), magnitude(quantity))
	product := MaxAmount
	if high < unit {
		whole, rest := bits.Div64(high, low, unit)
		if rest > unit/2 || rest == unit/2 && whole%2 == 1 {
			whole++
		}
		product = Amount(min(whole, uint64(MaxAmount)))
	}
	if (a < 0) != (quantity < 0) {
		return -product
	}
	return product
}

func magnitude(a Amount) uint64 {
	if a < 0 {
		return -uint64(a)
	}
	return uint64(a)
}

// String returns the shortest decimal text of the amount: "12.5", "0", "-3.0001".
func (a Amount) String() string { return string(a.append(nil)) }

// MarshalJSON renders the amount as a JSON number with its exact decimals.
func (a Amount) MarshalJSON() ([]byte, error) { return a.append(nil), nil }

func (a Amount) append(b []byte) []byte {
	if a < 0 {
		b = append(b, '-')
	}
	return appendDecimal(b, strconv.AppendUint(nil, magnitude(a), 10))
}

// appendDecimal appends a count of ten-thousandths, given as digits, as a decimal without trailing zeros.
func appendDecimal(b, digits []byte) []byte {
	for len(digits) <= amountDigits {
		digits = append([]byte{'0'}, digits...)
	}
	point := len(digits) - amountDigits
	b = append(b, digits[:point]...)
	if fraction := strings.TrimRight(string(digits[point:]), "0"); fraction != "" {
		b = append(append(b, '.'), fraction...)
	}
	return b
}

// Sum adds up amounts exactly: it holds 128 bits, so no number of events can overflow it. The zero value is
// an empty sum.
type Sum struct {
	hi int64
	lo uint64
}

// Add adds one amount.
func (s *Sum) Add(a Amount) {
	var carry uint64
	s.lo, carry = bits.Add64(s.lo, uint64(a), 0)
	s.hi += int64(a>>63) + int64(carry)
}

// Merge adds another sum.
func (s *Sum) Merge(o Sum) {
	var carry uint64
	s.lo, carry = bits.Add64(s.lo, o.lo, 0)
	s.hi += o.hi + int64(carry)
}

// Minus returns s less o.
func (s Sum) Minus(o Sum) Sum {
	var borrow uint64
	s.lo, borrow = bits.Sub64(s.lo, o.lo, 0)
	s.hi -= o.hi + int64(borrow)
	return s
}

// Compare is negative where s is less than o, positive where it is more, and 0 where they are equal.
func (s Sum) Compare(o Sum) int { return cmp.Or(cmp.Compare(s.hi, o.hi), cmp.Compare(s.lo, o.lo)) }

// IsZero says whether the sum is zero.
func (s Sum) IsZero() bool { return s == Sum{} }

// Big returns the sum in ten-thousandths.
func (s Sum) Big() *big.Int {
	n := new(big.Int).Lsh(big.NewInt(s.hi), 64)
	return n.Add(n, new(big.Int).SetUint64(s.lo))
}

// SumOf returns a count of ten-thousandths as a sum. It panics where the count needs more than 127 bits,
// which no sum of amounts does.
func SumOf(n *big.Int) Sum {
	if n.BitLen() > 127 {
		panic("event: sum needs more than 127 bits")
	}
	lo := new(big.Int).And(n, new(big.Int).SetUint64(math.MaxUint64))
	return Sum{hi: new(big.Int).Rsh(n, 64).Int64(), lo: lo.Uint64()}
}

// String returns the shortest decimal text of the sum.
func (s Sum) String() string {
	n := s.Big()
	var b []byte
	if n.Sign() < 0 {
		b = append(b, '-')
	}
	return string(appendDecimal(b, n.Abs(n).Append(nil, 10)))
}

// MarshalJSON renders the sum as a JSON number with its exact decimals.
func (s Sum) MarshalJSON() ([]byte, error) { return []byte(s.String()), nil }
