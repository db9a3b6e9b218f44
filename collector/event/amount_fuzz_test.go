package event_test

import (
	"encoding/json"
	"errors"
	"math/big"
	"strings"
	"testing"

	"github.com/weir-dev/weir/collector/event"
)

// FuzzParseAmount checks every number against rational arithmetic.
func FuzzParseAmount(f *testing.F) {
	for _, text := range []string{"0", "-0.00005", "12.50", "1e2", "0.00015", "99999999999.99995", "1e-400", "1E+15", "0e999", "x", "1."} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := event.ParseAmount(text)
		if errors.Is(err, event.ErrAmountSyntax) {
			if json.Valid([]byte(text)) && strings.Trim(text, "-+.eE0123456789") == "" && text != "" {
				t.Errorf("ParseAmount(%q) fails with %v, but it is a JSON number", text, err)
			}
			return
		}
		if _, exponent, _ := strings.Cut(strings.ToLower(text), "e"); len(exponent) > 4 {
			return // big.Rat would work out its digits
		}
		exact, ok := new(big.Rat).SetString(text)
		if !ok {
			t.Fatalf("ParseAmount(%q) = %v, %v, but it is no number", text, got, err)
		}
		want := roundHalfEven(exact.Mul(exact, big.NewRat(10000, 1)))
		inRange := want.CmpAbs(big.NewInt(int64(event.MaxAmount))) <= 0
		switch {
		case inRange != (err == nil):
			t.Errorf("ParseAmount(%q) fails with %v, but the amount is %s", text, err, want)
		case inRange && want.Cmp(big.NewInt(int64(got))) != 0:
			t.Errorf("ParseAmount(%q) = %d, want %s", text, got, want)
		}
	})
}

// roundHalfEven rounds a rational number to an integer.
func roundHalfEven(r *big.Rat) *big.Int {
	floor, rest := new(big.Int).DivMod(r.Num(), r.Denom(), new(big.Int))
	twice := rest.Lsh(rest, 1).Cmp(r.Denom())
	if twice > 0 || (twice == 0 && floor.Bit(0) == 1) {
		floor.Add(floor, big.NewInt(1))
	}
	return floor
}
