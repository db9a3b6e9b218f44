package analytics

import (
	"slices"
	"strings"

	"github.com/weir-dev/weir/collector/analytics/columns"
)

// byCode returns sums in the order of their currencies' codes.
func byCode(sums columns.Sums, codes []string) []CurrencySum {
	var list []CurrencySum
	for _, s := range sums {
		list = append(list, CurrencySum{codes[s.Currency], s.Total})
	}
	slices.SortFunc(list, func(a, b CurrencySum) int { return strings.Compare(a.Currency, b.Currency) })
	return list
}
