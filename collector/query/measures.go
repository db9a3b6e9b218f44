package query

import (
	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/event"
)

// measures are the figures of some events, in each answer that has them.
type measures struct {
	Events            int             `json:"events"`
	UniqueVisitors    int             `json:"unique_visitors"`
	Purchases         int             `json:"purchases"`
	AddToCarts        int             `json:"add_to_carts"`
	Pageviews         int             `json:"pageviews"`
	Refunds           int             `json:"refunds"`
	Revenue           event.Sum       `json:"revenue"`
	GrossRevenue      event.Sum       `json:"gross_revenue"`
	Refunded          event.Sum       `json:"refunded"`
	AverageOrderValue event.Amount    `json:"average_order_value"`
	ConversionRate    analytics.Rate  `json:"conversion_rate"`
	RevenueByCurrency moneyByCurrency `json:"revenue_by_currency"`
}

func measuresOf(t *analytics.Totals) measures {
	return measures{
		Events:            t.Events,
		UniqueVisitors:    t.UniqueVisitors,
		Purchases:         t.Purchases,
		AddToCarts:        t.AddToCarts,
		Pageviews:         t.Pageviews,
		Refunds:           t.Refunds,
		Revenue:           t.Revenue,
		GrossRevenue:      t.GrossRevenue,
		Refunded:          t.Refunded,
		AverageOrderValue: t.AverageOrderValue,
		ConversionRate:    t.ConversionRate,
		RevenueByCurrency: revenueByCurrency(t.RevenueByCurrency),
	}
}

// changes are those of the measures that are numbers, null where there was nothing before.
type changes struct {
	Events            *analytics.Change `json:"events"`
	UniqueVisitors    *analytics.Change `json:"unique_visitors"`
	Purchases         *analytics.Change `json:"purchases"`
	AddToCarts        *analytics.Change `json:"add_to_carts"`
	Pageviews         *analytics.Change `json:"pageviews"`
	Refunds           *analytics.Change `json:"refunds"`
	Revenue           *analytics.Change `json:"revenue"`
	GrossRevenue      *analytics.Change `json:"gross_revenue"`
	Refunded          *analytics.Change `json:"refunded"`
	AverageOrderValue *analytics.Change `json:"average_order_value"`
	ConversionRate    *analytics.Change `json:"conversion_rate"`
}

func changesSince(before, now *analytics.Totals) *changes {
	return &changes{
		Events:            analytics.ChangeOf(now.Events, before.Events),
		UniqueVisitors:    analytics.ChangeOf(now.UniqueVisitors, before.UniqueVisitors),
		Purchases:         analytics.ChangeOf(now.Purchases, before.Purchases),
		AddToCarts:        analytics.ChangeOf(now.AddToCarts, before.AddToCarts),
		Pageviews:         analytics.ChangeOf(now.Pageviews, before.Pageviews),
		Refunds:           analytics.ChangeOf(now.Refunds, before.Refunds),
		Revenue:           analytics.ChangeOfSum(now.Revenue, before.Revenue),
		GrossRevenue:      analytics.ChangeOfSum(now.GrossRevenue, before.GrossRevenue),
		Refunded:          analytics.ChangeOfSum(now.Refunded, before.Refunded),
		AverageOrderValue: analytics.ChangeOf(now.AverageOrderValue, before.AverageOrderValue),
		ConversionRate:    analytics.ChangeOf(now.ConversionRate, before.ConversionRate),
	}
}
