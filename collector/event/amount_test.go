package event_test

import (
	"errors"
	"math/big"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/weir-dev/weir/collector/event"
)

func TestParseAmount(t *testing.T) {
	tests := map[string]struct {
		text string
		want event.Amount
		err  error
	}{
		"a whole number":                       {"12", 120000, nil},
		"cents":                                {"12.50", 125000, nil},
		"leading zeros":                        {"0012.5", 125000, nil},
		"below zero":                           {"-3.25", -32500, nil},
		"minus zero":                           {"-0", 0, nil},
		"a positive exponent":                  {"1.25e2", 1250000, nil},
		"a negative exponent":                  {"125E-2", 12500, nil},
		"an explicit plus in the exponent":     {"1e+2", 1000000, nil},
		"a half rounds to the even below":      {"0.00025", 2, nil},
		"a half rounds to the even above":      {"0.00035", 4, nil},
		"a little more than a half rounds up":  {"0.000250001", 3, nil},
		"half of the smallest rounds to zero":  {"0.00005", 0, nil},
		"more than half of the smallest":       {"0.000051", 1, nil},
		"far below the smallest":               {"1e-400", 0, nil},
		"an exponent below every integer":      {"1e-99999999999999999999", 0, nil},
		"zero to an enormous power":            {"0e99999999999999999999", 0, nil},
		"the greatest":                         {"99999999999.9999", event.MaxAmount, nil},
		"the greatest with digits that vanish": {"99999999999.99994999", event.MaxAmount, nil},
		"the greatest rounded up":              {"99999999999.99995", 0, event.ErrAmountRange},
		"one too great":                        {"100000000000", 0, event.ErrAmountRange},
		"far too small":                        {"-1e400", 0, event.ErrAmountRange},
		"an exponent above every integer":      {"1e99999999999999999999", 0, event.ErrAmountRange},
		"nothing":                              {"", 0, event.ErrAmountSyntax},
		"a comma":                              {"12,5", 0, event.ErrAmountSyntax},
		"no digit before the point":            {".5", 0, event.ErrAmountSyntax},
		"no digit behind the point":            {"5.", 0, event.ErrAmountSyntax},
		"two points":                           {"1.2.3", 0, event.ErrAmountSyntax},
		"no exponent":                          {"1e", 0, event.ErrAmountSyntax},
		"a fraction in the exponent":           {"1e1.5", 0, event.ErrAmountSyntax},
		"hexadecimal":                          {"0x1A", 0, event.ErrAmountSyntax},
		"infinity":                             {"Inf", 0, event.ErrAmountSyntax},
		"two signs":                            {"--1", 0, event.ErrAmountSyntax},
		"white space":                          {" 1", 0, event.ErrAmountSyntax},
		"digits of another script":             {"١٢", 0, event.ErrAmountSyntax},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := event.ParseAmount(tt.text)
			if got != tt.want || !errors.Is(err, tt.err) {
				t.Errorf("ParseAmount(%q) = %d, %v, want %d, %v", tt.text, got, err, tt.want, tt.err)
			}
		})
	}
}

func TestAmountsReadAsTheirShortestDecimal(t *testing.T) {
	for want, amount := range map[string]event.Amount{
		"0": 0, "12.5": 125000, "0.0001": 1, "-0.5": -5000, "-3.0001": -30001, "100": 1000000, "99999999999.9999": event.MaxAmount,
	} {
		if got := amount.String(); got != want {
			t.Errorf("Amount(%d) reads %q, want %q", int64(amount), got, want)
		}
		if text, err := json.Marshal(amount); err != nil || string(text) != want {
			t.Errorf("Amount(%d) marshals to %s, %v, want %s", int64(amount), text, err, want)
		}
	}
}

func TestSumsAreExactBeyond64Bits(t *testing.T) {
	var sum, other event.Sum
	for range 10000 {
		sum.Add(event.MaxAmount)
		other.Add(-event.MaxAmount)
	}
	want := new(big.Int).Mul(big.NewInt(int64(event.MaxAmount)), big.NewInt(10000))
	if got := sum.Big(); got.Cmp(want) != 0 {
		t.Errorf("10,000 times the greatest amount is %s, want %s", got, want)
	}
	if got, want := sum.String(), "999999999999999"; got != want {
		t.Errorf("10,000 times the greatest amount reads %s, want %s", got, want)
	}
	if got := sum.Minus(other).Big(); got.Cmp(new(big.Int).Lsh(want, 1)) != 0 {
		t.Errorf("the sum less its opposite is %s, want twice %s", got, want)
	}
	if got := event.SumOf(other.Big()); got != other {
		t.Errorf("SumOf(Big()) is %v, want %v", got, other)
	}
	if sum.Merge(other); !sum.IsZero() {
		t.Errorf("the sum and its opposite come to %s, want 0", sum)
	}
}

func TestErrorsAreAnsweredFieldByField(t *testing.T) {
	var errs event.Errors
	errs.Add("b", "First.")
	errs.Add("a", "Second.")
	errs.Add("b", "Third.")
	text, err := json.Marshal(errs)
	want := `{"message":"First. (and 2 more errors)","errors":{"b":["First.","Third."],"a":["Second."]}}`
	if err != nil || string(text) != want {
		t.Errorf("the errors marshal to %s, %v, want %s", text, err, want)
	}
	for n, want := range []string{"", "First.", "First. (and 1 more error)"} {
		if got := errs[:n].Error(); got != want {
			t.Errorf("%d errors say %q, want %q", n, got, want)
		}
	}
}

func TestMinorUnit(t *testing.T) {
	for name, test := range map[string]struct {
		code string
		want string
	}{
		"the euro has cents":                        {"EUR", "0.01"},
		"the yen has nothing smaller":               {"JPY", "1"},
		"the krona of Iceland has nothing smaller":  {"ISK", "1"},
		"the dinar of Kuwait has thousandths":       {"KWD", "0.001"},
		"the dinar of Iraq has thousandths":         {"IQD", "0.001"},
		"the unidad de fomento has four decimals":   {"CLF", "0.0001"},
		"the unidad previsional has four decimals":  {"UYW", "0.0001"},
		"the forint has two, though nobody pays so": {"HUF", "0.01"},
		"gold has no minor unit and keeps it all":   {"XAU", "0.0001"},
		"what is no currency keeps it all":          {"QQQ", "0.0001"},
		"nothing keeps it all":                      {"", "0.0001"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := event.MinorUnit(test.code).String(); got != test.want {
				t.Errorf("%s: got %s, want %s", test.code, got, test.want)
			}
		})
	}
}

func TestAnAmountTimesAQuantity(t *testing.T) {
	const most = event.MaxAmount
	for name, test := range map[string]struct{ amount, quantity, want event.Amount }{
		"whole pieces":                   {12_5000, 3_0000, 37_5000},
		"a part of one":                  {10_0000, 2500, 2_5000},
		"a half goes to the even number": {5, 1000, 0},
		"and not always down":            {15, 1000, 2},
		"more than a half goes up":       {5, 1001, 1},
		"below zero all is the same":     {-15, 1000, -2},
		"as it is of negative pieces":    {15, -1000, -2},
		"nothing":                        {0, most, 0},
		"the largest of one piece":       {most, 1_0000, most},
		"more than the largest":          {most, 1_0001, most},
		"far more, below zero":           {-most, most, -most},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.amount.Times(test.quantity); got != test.want {
				t.Errorf("%s times %s is %s, want %s", test.amount, test.quantity, got, test.want)
			}
		})
	}
}

func TestSumsAreCompared(t *testing.T) {
	huge := new(big.Int).Lsh(big.NewInt(1), 100)
	ordered := []event.Sum{event.SumOf(new(big.Int).Neg(huge)), event.SumOf(big.NewInt(-2)), event.SumOf(big.NewInt(-1)), {}, event.SumOf(big.NewInt(1)), event.SumOf(huge)}
	for i, a := range ordered {
		for j, b := range ordered {
			if got := a.Compare(b); got < 0 != (i < j) || got > 0 != (i > j) {
				t.Errorf("%s compared with %s is %d", a, b, got)
			}
		}
	}
}
