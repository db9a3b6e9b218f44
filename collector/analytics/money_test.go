package analytics

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/event"
)

func TestAverageOrderValue(t *testing.T) {
	for sentence, scene := range map[string]struct {
		currency string
		tale     []string
		want     string
	}{
		"is rounded to the cent":                        {"EUR", []string{"0h a purchase 10 EUR", "0h a purchase 0 EUR", "0h b purchase 0 EUR"}, "3.33"},
		"of half a cent goes to the even one":           {"EUR", []string{"0h a purchase 0.02 EUR", "0h a purchase 0.03 EUR"}, "0.02"},
		"is rounded to whole yen":                       {"JPY", []string{"0h a purchase 1000 JPY", "0h a purchase 1 JPY", "0h a purchase 1 JPY"}, "334"},
		"is rounded to whole yen where they had parts":  {"JPY", []string{"0h a purchase 10.4 JPY"}, "10"},
		"is rounded to the fils":                        {"KWD", []string{"0h a purchase 1 KWD", "0h a purchase 0 KWD", "0h a purchase 0 KWD"}, "0.333"},
		"is rounded to the last of four decimals":       {"CLF", []string{"0h a purchase 2 CLF", "0h a purchase 0 CLF", "0h a purchase 0 CLF"}, "0.6667"},
		"leaves purchases in other currencies out":      {"EUR", []string{"0h a purchase 10 EUR", "0h b purchase 7 USD", "0h c purchase 700 JPY"}, "10"},
		"is nothing where all were in other currencies": {"EUR", []string{"0h a purchase 10 USD"}, "0"},
		"leaves refunds out":                            {"EUR", []string{"0h a purchase 10 EUR", "0h a refund 10 EUR"}, "10"},
		"leaves lookalikes of purchases out":            {"EUR", []string{"0h a purchase 10 EUR", "0h a Purchase 90 EUR", "0h a PURCHASE 90 EUR", "0h a ｐｕｒｃｈａｓｅ 90 EUR", "0h a pur\u200bchase 90 EUR", "0h a checkout 90 EUR"}, "10"},
		"is nothing without purchases":                  {"EUR", []string{"0h a refund 10 EUR"}, "0"},
		"counts a purchase of nothing":                  {"EUR", []string{"0h a purchase 10 EUR", "0h a purchase 0 EUR"}, "5"},
	} {
		t.Run(sentence, func(t *testing.T) {
			s, err := taleIn(t, scene.currency, scene.tale...).Summary(t.Context(), afternoon(), nil)
			mustNot(t, err)
			if got := s.AverageOrderValue.String(); got != scene.want {
				t.Errorf("got %s, want %s", got, scene.want)
			}
		})
	}
}

func TestCreditGoesByTheMinorUnit(t *testing.T) {
	three := func(purchase string) []string {
		return []string{"0h a x from:s1", "1h a x from:s2", "2h a x from:s3", "3h a " + purchase}
	}
	for sentence, scene := range map[string]struct {
		currency string
		tale     []string
		want     string
	}{
		"euros are shared by the cent":               {"EUR", three("purchase 100 EUR"), "33.34 33.33 33.33"},
		"yen are shared whole":                       {"JPY", three("purchase 100 JPY"), "34 33 33"},
		"two yen for three leave one with nothing":   {"JPY", three("purchase 2 JPY"), "1 1 0"},
		"dinars are shared by the fils":              {"KWD", three("purchase 100 KWD"), "33.334 33.333 33.333"},
		"a dinar that ends in a fils stays in fils":  {"KWD", three("purchase 0.001 KWD"), "0.001 0 0"},
		"units of four decimals are shared by these": {"CLF", three("purchase 1 CLF"), "0.3334 0.3333 0.3333"},
		"what is not paid in cents is shared finer":  {"EUR", three("purchase 100.005 EUR"), "33.335 33.335 33.335"},
		"and no finer than it takes":                 {"EUR", three("purchase 0.001 EUR"), "0.001 0 0"},
		"parts of yen add up as well":                {"JPY", three("purchase 0.5 JPY"), "0.2 0.2 0.1"},
		"other currencies are no credit":             {"EUR", three("purchase 100 JPY"), "0 0 0"},
	} {
		t.Run(sentence, func(t *testing.T) {
			a, err := taleIn(t, scene.currency, scene.tale...).Attribution(t.Context(), AttributionQuery{
				Range: afternoon(), Model: Linear, ConversionEvent: "purchase", GroupBy: BySource,
			})
			mustNot(t, err)
			var got []string
			for _, r := range a.Results {
				got = append(got, r.Revenue.String())
			}
			if strings.Join(got, " ") != scene.want {
				t.Errorf("got %q, want %q", got, scene.want)
			}
		})
	}
}

func TestShareComesFromExactCredit(t *testing.T) {
	// Of a conversion that 3999 touches share each has earned 0.00025006…, which is credited to some of them as 0.00025 and to
	// others as 0.000251. Of the former 0.0002 would be made, though all have earned the same.
	const parts = 3999
	equal := make([]namedCredit, parts)
	for n := range equal {
		equal[n] = namedCredit{fmt.Sprintf("s%04d", n), exactCredit{big.NewInt(1), new(big.Int)}}
	}
	credited := map[string]int{}
	for _, r := range resultsOf(equal, big.NewInt(parts), Attribution{Conversions: 1}, 100) {
		credited[r.Conversions.String()+" "+r.Share.String()]++
	}
	want := map[string]int{"0.00025 0.0003": parts - 250, "0.000251 0.0003": 250}
	if diff := cmp.Diff(want, credited); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheShareOfOthersComesFromExactCredit(t *testing.T) {
	var lines []string
	for n := range 7 {
		lines = append(lines, fmt.Sprintf("%dm a x from:s%d", n, n))
	}
	a, err := taleIn(t, "EUR", append(lines, "30m a purchase 1 EUR")...).Attribution(t.Context(), AttributionQuery{
		Range: afternoon(), Model: Linear, ConversionEvent: "purchase", GroupBy: BySource, Limit: 1,
	})
	mustNot(t, err)
	if got, want := a.Others.Share.String(), "0.8571"; got != want {
		t.Errorf("six of seven sources have the share %s, want %s", got, want)
	}
}

// wantExactCredits holds that credits add up to the totals, and that money is in whole units of what it is rounded to.
func wantExactCredits(t testing.TB, a Attribution, decimals int) {
	t.Helper()
	var conversions Credit
	var revenue event.Sum
	unit := int64(tenThousandths(decimals))
	for ; new(big.Int).Mod(a.Revenue.Big(), big.NewInt(unit)).Sign() != 0; unit /= 10 {
		continue
	}
	for i, r := range a.Results {
		conversions += r.Conversions
		revenue.Merge(r.Revenue)
		if new(big.Int).Mod(r.Revenue.Big(), big.NewInt(unit)).Sign() != 0 {
			t.Errorf("%s is credited with %s of %s, which is not in whole %s", r.Name, r.Revenue, a.Revenue, event.Amount(unit))
		}
		if i > 0 && a.Results[i-1].Conversions < r.Conversions {
			t.Errorf("%s comes behind %s, which has less", r.Name, a.Results[i-1].Name)
		}
	}
	if a.Others != nil {
		conversions += a.Others.Conversions
		revenue.Merge(a.Others.Revenue)
	}
	if conversions != Credit(a.Conversions)*creditUnit {
		t.Errorf("the credits add up to %s conversions, want %d", conversions, a.Conversions)
	}
	if revenue != a.Revenue {
		t.Errorf("the credits add up to a revenue of %s, want %s", revenue, a.Revenue)
	}
}

func TestCreditsAddUpWhateverTheCents(t *testing.T) {
	const journeys = 80 // with as many touches as their number, so that linear shares by every number up to it
	random := rand.New(rand.NewPCG(23, 7))
	for _, currency := range []string{"JPY", "EUR", "KWD", "CLF"} {
		o := oracle{currency: currency}
		for _, grain := range []int{o.decimals(), 4} { // as people pay, and as some callers send
			var lines []string
			for touches := 1; touches <= journeys; touches++ {
				for n := range touches {
					lines = append(lines, fmt.Sprintf("%ds v%d x from:s%d", len(lines), touches, n))
				}
				for _, paidIn := range []string{currency, currency, "USD"} {
					value := event.Amount(random.Int64N(1_000_000)) * event.Amount(tenThousandths(grain))
					lines = append(lines, fmt.Sprintf("%ds v%d purchase %s %s", len(lines), touches, value, paidIn))
				}
			}
			v := taleIn(t, currency, lines...)
			for _, model := range []Model{FirstTouch, LastTouch, Linear} {
				for _, by := range []Dimension{ByChannel, BySource, ByMedium, ByCampaign} {
					t.Run(fmt.Sprintf("%s with %d decimals by %s for each %s", currency, grain, model, by), func(t *testing.T) {
						a, err := v.Attribution(t.Context(), AttributionQuery{
							Range: afternoon(), Model: model, ConversionEvent: "purchase", GroupBy: by,
						})
						mustNot(t, err)
						if a.Conversions != 3*journeys || a.Revenue.IsZero() || len(a.RevenueByCurrency) != 2 {
							t.Fatalf("got %+v", a)
						}
						wantExactCredits(t, a, o.decimals())
					})
				}
			}
		}
	}
}
