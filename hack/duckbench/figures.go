package main

import (
	"fmt"
	"math"
	"strings"
)

// object and list read decoded JSON; what is missing is empty.
func object(data any) map[string]any {
	o, _ := data.(map[string]any)
	return o
}

func list(data any) []any {
	l, _ := data.([]any)
	return l
}

func number(data any) float64 {
	n, _ := data.(float64)
	return n
}

// table takes a label and a number from each element of a list.
func table(elements []any, label, figure string) map[string]float64 {
	figures := map[string]float64{}
	for _, element := range elements {
		o := object(element)
		figures[fmt.Sprint(o[label])] = number(o[figure])
	}
	return figures
}

func summaryFigures(data any) map[string]float64 {
	kpis, figures := object(object(data)["kpis"]), map[string]float64{}
	for _, name := range []string{"purchases", "add_to_carts", "pageviews", "refunds", "gross_revenue", "refunded", "average_order_value", "unique_visitors", "conversion_rate"} {
		figures[name] = number(kpis[name])
	}
	return figures
}

func dailyFigures(data any) map[string]float64 { return table(list(data), "date", "unique_visitors") }

func statsFigures(data any) map[string]float64 { return table(list(data), "event", "unique_visitors") }

func funnelFigures(data any) map[string]float64 {
	return table(list(object(data)["steps"]), "step", "visitors")
}

func listingFigures(data any) map[string]float64 { return table(list(data), "event_id", "value") }

func attributionFigures(data any) map[string]float64 {
	return table(list(object(data)["results"]), "channel", "conversions")
}

// differences compares the API's figures with DuckDB's. Sums of fractions may differ in the ninth digit, and a
// rate and an average in their last.
func differences(api, duck map[string]float64) error {
	var found []string
	for label, want := range duck {
		tolerance := math.Max(math.Abs(want)*1e-9, 2e-6)
		switch label {
		case "conversion_rate":
			tolerance = 1e-4
		case "average_order_value":
			tolerance = 0.01
		}
		if got, ok := api[label]; math.Abs(got-want) > tolerance || !ok && want != 0 {
			found = append(found, fmt.Sprintf("%s is %v, DuckDB says %v", label, got, want))
		}
	}
	for label, got := range api {
		if _, known := duck[label]; !known && got != 0 {
			found = append(found, fmt.Sprintf("%s is %v, DuckDB does not know it", label, got))
		}
	}
	if len(found) > 0 {
		return fmt.Errorf("answers differ: %s", strings.Join(found, "; "))
	}
	return nil
}
