package analytics

import (
	"math/big"
	"testing"

	"github.com/weir-dev/weir/collector/event"
)

func TestChangeIsAFractionOfTheFigureBefore(t *testing.T) {
	huge := event.SumOf(new(big.Int).Lsh(big.NewInt(1), 100))
	for name, test := range map[string]struct {
		got  *Change
		want string
	}{
		"half as much again":                    {ChangeOf(150, 100), "0.5"},
		"a quarter less":                        {ChangeOf(75, 100), "-0.25"},
		"all gone":                              {ChangeOf(0, 7), "-1"},
		"the same":                              {ChangeOf(7, 7), "0"},
		"a third is rounded to four decimals":   {ChangeOf(4, 3), "0.3333"},
		"half of a ten-thousandth goes to even": {ChangeOf(20_001, 20_000), "0"},
		"and up where that is even":             {ChangeOf(20_003, 20_000), "0.0002"},
		"less than nothing now":                 {ChangeOfSum(event.SumOf(big.NewInt(-5)), event.SumOf(big.NewInt(10))), "-1.5"},
		"more than 64 bits hold":                {ChangeOfSum(huge, event.SumOf(big.NewInt(1))), "1267650600228229401496703205375"},
		"a rate":                                {ChangeOf(Rate(300), Rate(200)), "0.5"},
		"of nothing":                            {ChangeOf(7, 0), "none"},
		"of less than nothing":                  {ChangeOfSum(huge, event.SumOf(big.NewInt(-1))), "none"},
	} {
		t.Run(name, func(t *testing.T) {
			got := "none"
			if test.got != nil {
				got = test.got.String()
			}
			if got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
