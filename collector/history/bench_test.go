package history_test

import (
	"flag"
	"testing"
	"time"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/clickhouse/clickhousetest"
	"github.com/weir-dev/weir/collector/history"
	"github.com/weir-dev/weir/collector/history/schema"
)

var (
	benchEvents  = flag.Int("events", 100_000, "how many events the benchmarks' history has")
	benchHistory = flag.String("history", "", "the URL of a database that the benchmarks ask instead, made by them before; it stays as it is")
)

// benchDays is how long the benchmarks' events took to come; questions are about all of them.
const benchDays = 60

// madeUp inserts what a shop might have: visitors who come and go, of whom some have many events and most have few.
const madeUp = `INSERT INTO events (at, name, class, visitor, client_id, value, currency, touch, origin, page)
WITH sipHash64(number, 1) AS r1, sipHash64(number, 2) AS r2, sipHash64(number, 3) AS r3, sipHash64(number, 4) AS r4,
	toUInt64(pow(r1 / 18446744073709551616., 2) * 60000) + intDiv(number, 200000) * 40000 AS who
SELECT bitShiftLeft({begin:UInt64} + toUInt64(number * {length:UInt64} / {events:UInt64}), 20) + number % 4 AS at,
	multiIf(r2 % 100 < 70, 'pageview', r2 % 100 < 80, 'view_content', r2 % 100 < 88, 'add_to_cart', r2 % 100 < 92, 'checkout',
		r2 % 100 < 95, 'purchase', r2 % 100 < 96, 'refund', 'lead') AS name,
	if(r3 % 50 = 0, 1, 0) AS class, if(class = 0 AND r3 % 20 != 1, sipHash64(who), 0) AS visitor, if(visitor = 0, '', hex(visitor)) AS client_id,
	if(name IN ('purchase', 'refund'), toInt64(r4 % 2000000), NULL) AS value, if(isNull(value), '', if(r4 % 10 = 0, 'USD', 'EUR')) AS currency,
	if(r4 % 5 = 0, ['google\x1fcpc\x1fspring\x1fPaid Search', 'google\x1forganic\x1f\x1fOrganic Search', 'facebook.com\x1fsocial\x1f\x1fOrganic Social',
		'newsletter\x1femail\x1fmay\x1fEmail', 'partner.example\x1freferral\x1f\x1fReferral'][1 + r3 % 5], '') AS touch,
	if(visitor = 0, '', touch) AS origin, concat('/', toString(r1 % 200)) AS page
FROM numbers({events:UInt64})`

// benchmarked is the benchmarks' history.
func benchmarked(b *testing.B) *clickhouse.Client {
	b.Helper()
	address := *benchHistory
	if address == "" {
		address = clickhousetest.Shared(b)
	}
	client, err := clickhouse.Dial(address, clickhouse.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(client.Close)
	if *benchHistory != "" {
		return client
	}
	if _, err := schema.Ensure(b.Context(), client); err != nil {
		b.Fatal(err)
	}
	if err := client.Exec(b.Context(), clickhouse.Query{SQL: madeUp, Parameters: map[string]any{
		"events": *benchEvents, "begin": begin.UnixMilli(), "length": int64(benchDays * 24 * time.Hour / time.Millisecond),
	}}); err != nil {
		b.Fatal(err)
	}
	return client
}

var whole = analytics.Range{From: begin.AddDate(0, 0, -1), To: begin.AddDate(0, 0, benchDays+1)}

func BenchmarkFunnel(b *testing.B) {
	client := benchmarked(b)
	engine := history.New(history.Options{Client: client, Currency: "EUR"})
	steps := [][]string{{"pageview"}, {"add_to_cart"}, {"purchase"}}
	for name, window := range map[string]time.Duration{"without a window": 0, "within a day": 24 * time.Hour} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := engine.Funnel(b.Context(), analytics.FunnelQuery{Range: whole, Steps: steps, Window: window}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	// What ClickHouse has for it, which is wrong where steps repeat, and knows nothing of how long visitors take.
	plain(b, client, "windowFunnel", `SELECT countIf(steps >= 1), countIf(steps >= 2), countIf(steps >= 3) FROM (
		SELECT windowFunnel(90596966400000, 'strict_once')(at, name = 'pageview', name = 'add_to_cart', name = 'purchase') AS steps
		FROM events WHERE class = 0 AND visitor != 0 AND name IN ('pageview', 'add_to_cart', 'purchase') GROUP BY visitor)`)
}

func BenchmarkAttribution(b *testing.B) {
	client := benchmarked(b)
	engine := history.New(history.Options{Client: client, Currency: "EUR"})
	for name, q := range map[string]analytics.AttributionQuery{
		"last touch of 30 days": {Model: analytics.LastTouch, Lookback: analytics.TouchLookback},
		"first touch of all":    {Model: analytics.FirstTouch},
		"linear, 30 days":       {Model: analytics.Linear, Lookback: analytics.TouchLookback},
		"linear, all pageviews": {Model: analytics.Linear, Lookback: analytics.TouchLookback, ConversionEvent: "pageview"},
		"last touch of 90 days": {Model: analytics.LastTouch, Lookback: 3 * analytics.TouchLookback},
	} {
		q.Range, q.GroupBy = whole, analytics.ByChannel
		if q.ConversionEvent == "" {
			q.ConversionEvent = "purchase"
		}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := engine.Attribution(b.Context(), q); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	// The touches up to each purchase, in floating-point numbers and without a lookback.
	plain(b, client, "linear, in SQL", `SELECT part.1 AS touch, sum(part.2), sum(part.3) FROM (
		SELECT arraySort(event -> event.1, groupArray((at, toString(touch), name = 'purchase', toFloat64(ifNull(value, 0))))) AS events,
			arrayCumSum(event -> event.2 != '', events) AS touches,
			arrayMap((event, count) -> if(event.3 AND count > 0, 1 / count, 0.), events, touches) AS shares,
			arrayMap((event, share) -> event.4 * share, events, shares) AS money,
			arrayJoin(arrayFilter(p -> p.1 != '', arrayMap((event, s, m) -> (event.2, s, m), events, arrayReverse(arrayCumSum(arrayReverse(shares))),
				arrayReverse(arrayCumSum(arrayReverse(money)))))) AS part
		FROM events WHERE class = 0 AND visitor != 0 AND (name = 'purchase' OR touch != '')
			AND visitor IN (SELECT visitor FROM events WHERE class = 0 AND visitor != 0 AND name = 'purchase') GROUP BY visitor) GROUP BY touch`)
}

// plain measures a statement that is as short as can be.
func plain(b *testing.B, client *clickhouse.Client, name, sql string) {
	b.Run(name, func(b *testing.B) {
		for b.Loop() {
			if err := client.Exec(b.Context(), clickhouse.Query{SQL: sql}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
