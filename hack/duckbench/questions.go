package main

import (
	"fmt"
	"net/url"
	"time"
)

// question is one of the read API's, and the same for DuckDB.
type question struct {
	name string
	// path is below the property, with its query.
	path string
	sql  string
	// figures takes from the API's answer what DuckDB's rows say: label and number.
	figures func(data any) map[string]float64
}

// week and day are windows, lookback is a lookback; they are in milliseconds.
const (
	day      = 24 * 3600 * 1000
	lookback = 30 * day
)

// questions are what is asked; DuckDB's constants stand in the statements, since bound parameters would keep it
// from skipping what lies outside of the period.
func (p *past) questions() []question {
	from, to := p.from.UnixMilli(), p.to.UnixMilli()
	period := url.Values{"from": {p.from.Format(time.RFC3339)}, "to": {p.to.Format(time.RFC3339)}}.Encode()
	in := fmt.Sprintf("ms >= %d AND ms < %d", from, to)
	steps := "&steps[]=pageview&steps[]=add_to_cart&steps[]=purchase"
	questions := []question{
		{"summary", "analytics/summary?" + period, summarySQL(in), summaryFigures},
		{"daily", "analytics/daily?" + period, dailySQL(in, from), dailyFigures},
		{"statistics", "events/stats?" + period, statsSQL(in), statsFigures},
		{"funnel", "analytics/funnel?window=none&" + period + steps, funnelSQL(in), funnelFigures},
		{"funnel within 24h", "analytics/funnel?window=24h&" + period + steps, windowedSQL(in, day), funnelFigures},
		{"funnel within 7d", "analytics/funnel?window=7d&" + period + steps, windowedSQL(in, 7*day), funnelFigures},
		{"newest 100", "events?limit=100&" + period, listingSQL(in), listingFigures},
	}
	for _, model := range []struct{ name, sql string }{
		{"first_touch", firstTouchSQL(in, from, to)}, {"last_touch", lastTouchSQL(in, from, to)}, {"linear", linearSQL(in, from, to)},
	} {
		questions = append(questions, question{
			"attribution " + model.name, "analytics/attribution?lookback=30d&model=" + model.name + "&" + period, model.sql, attributionFigures,
		})
	}
	return questions
}

func summarySQL(in string) string {
	return `SELECT label, n FROM (UNPIVOT (SELECT
	count(*) FILTER (name = 'purchase')::DOUBLE AS purchases, count(*) FILTER (name = 'add_to_cart')::DOUBLE AS add_to_carts,
	count(*) FILTER (name = 'pageview')::DOUBLE AS pageviews, count(*) FILTER (name = 'refund')::DOUBLE AS refunds,
	coalesce(sum(value) FILTER (name = 'purchase' AND currency = 'EUR'), 0)::DOUBLE / 10000 AS gross_revenue,
	coalesce(sum(value) FILTER (name = 'refund' AND currency = 'EUR'), 0)::DOUBLE / 10000 AS refunded,
	coalesce(round(avg(value) FILTER (name = 'purchase' AND currency = 'EUR') / 10000, 2), 0)::DOUBLE AS average_order_value,
	count(DISTINCT visitor) FILTER (visitor <> 0)::DOUBLE AS unique_visitors,
	round(count(DISTINCT visitor) FILTER (visitor <> 0 AND name = 'purchase') / count(DISTINCT visitor) FILTER (visitor <> 0), 4)::DOUBLE AS conversion_rate
	FROM events WHERE ` + in + `) ON COLUMNS(*) INTO NAME label VALUE n)`
}

func dailySQL(in string, from int64) string {
	return fmt.Sprintf(`SELECT strftime(make_timestamp(%d * 1000 + d * 86400000000), '%%Y-%%m-%%d') AS label, visitors::DOUBLE AS n,
	purchases, add_to_carts, pageviews, refunds, events, revenue FROM (SELECT (ms - %d) // 86400000 AS d,
	count(DISTINCT visitor) FILTER (visitor <> 0) AS visitors, count(*) AS events,
	count(*) FILTER (name = 'purchase') AS purchases, count(*) FILTER (name = 'add_to_cart') AS add_to_carts,
	count(*) FILTER (name = 'pageview') AS pageviews, count(*) FILTER (name = 'refund') AS refunds,
	coalesce(sum(CASE WHEN name = 'purchase' THEN value WHEN name = 'refund' THEN -value END) FILTER (currency = 'EUR'), 0) AS revenue
	FROM events WHERE %s GROUP BY d)`, from, from, in)
}

func statsSQL(in string) string {
	return `SELECT name::VARCHAR AS label, e.visitors::DOUBLE AS n, e.*, d.* EXCLUDE (name) FROM (SELECT name, count(*) AS events,
	count(DISTINCT visitor) FILTER (visitor <> 0) AS visitors, sum(value) FILTER (currency = 'EUR') AS value, min(ms) AS first, max(ms) AS last
	FROM events WHERE ` + in + ` GROUP BY name) e LEFT JOIN (SELECT name, count(*) FILTER (platform = 'meta' AND status = 2) AS meta_delivered,
	count(*) FILTER (platform = 'meta' AND status = 3) AS meta_failed, count(*) FILTER (platform = 'meta' AND status = 4) AS meta_skipped,
	count(*) FILTER (platform = 'meta' AND status = 5) AS meta_expired, count(*) FILTER (platform = 'console' AND status = 2) AS console_delivered,
	quantile_disc(latency, [0.5, 0.95]) FILTER (platform = 'meta' AND status = 2 AND attempts > 0) AS meta_latency,
	quantile_disc(latency, [0.5, 0.95]) FILTER (platform = 'console' AND status = 2 AND attempts > 0) AS console_latency
	FROM deliveries WHERE ` + in + ` GROUP BY name) d USING (name)`
}

// step is the visitors' events of one name.
func step(name, in string) string {
	return fmt.Sprintf("(SELECT visitor, pos, ms FROM events WHERE name = '%s' AND visitor <> 0 AND %s)", name, in)
}

// DuckDB is not asked for the medians that the API answers with.
func funnelSQL(in string) string {
	return `WITH a AS (SELECT visitor, min(pos) AS pos FROM ` + step("pageview", in) + ` GROUP BY visitor),
	b AS (SELECT e.visitor, min(e.pos) AS pos FROM ` + step("add_to_cart", in) + ` e JOIN a ON e.visitor = a.visitor AND e.pos > a.pos GROUP BY e.visitor),
	c AS (SELECT e.visitor, min(e.pos) AS pos FROM ` + step("purchase", in) + ` e JOIN b ON e.visitor = b.visitor AND e.pos > b.pos GROUP BY e.visitor)
	SELECT '1' AS label, count(*)::DOUBLE AS n FROM a UNION ALL SELECT '2', count(*) FROM b UNION ALL SELECT '3', count(*) FROM c`
}

func windowedSQL(in string, window int) string {
	return fmt.Sprintf(`WITH ab AS (SELECT a.visitor, a.ms, b.pos AS p2, b.ms AS m2 FROM %s a ASOF LEFT JOIN %s b ON a.visitor = b.visitor AND a.pos < b.pos),
	abc AS (SELECT ab.visitor, ab.ms, ab.m2, c.ms AS m3 FROM ab ASOF LEFT JOIN %s c ON ab.visitor = c.visitor AND ab.p2 < c.pos),
	depth AS (SELECT visitor, max(CASE WHEN m3 - ms <= %[4]d THEN 3 WHEN m2 - ms <= %[4]d THEN 2 ELSE 1 END) AS d FROM abc GROUP BY visitor)
	SELECT '1' AS label, count(*)::DOUBLE AS n FROM depth UNION ALL SELECT '2', count(*) FILTER (d >= 2) FROM depth
	UNION ALL SELECT '3', count(*) FILTER (d >= 3) FROM depth`, step("pageview", in), step("add_to_cart", in), step("purchase", in), window)
}

func listingSQL(in string) string {
	return `WITH page AS (SELECT * FROM events WHERE ` + in + ` ORDER BY pos DESC LIMIT 100)
	SELECT event_id AS label, coalesce(value, 0)::DOUBLE / 10000 AS n, page.*, (SELECT list(d) FROM deliveries d WHERE d.pos = page.pos) AS deliveries FROM page`
}

// touchesAndConversions are the tables that the attribution models are computed from.
func touchesAndConversions(in string, from, to int64) string {
	return fmt.Sprintf(`conversions AS (SELECT visitor, pos, ms, CASE WHEN currency = 'EUR' THEN coalesce(value, 0) ELSE 0 END AS value FROM events
	WHERE name = 'purchase' AND %s),
	touches AS (SELECT visitor, pos, ms, touch, channel FROM events WHERE touch <> 0 AND visitor <> 0 AND ms >= %d AND ms < %d
	AND visitor IN (SELECT visitor FROM conversions))`, in, from-lookback, to)
}

func lastTouchSQL(in string, from, to int64) string {
	return fmt.Sprintf(`WITH %s SELECT CASE WHEN t.ms >= c.ms - %d THEN t.channel::VARCHAR ELSE 'Direct' END AS label, count(*)::DOUBLE AS n, sum(c.value)
	FROM conversions c ASOF LEFT JOIN touches t ON c.visitor = t.visitor AND c.pos >= t.pos GROUP BY 1`, touchesAndConversions(in, from, to), lookback)
}

func firstTouchSQL(in string, from, to int64) string {
	return fmt.Sprintf(`WITH %s SELECT CASE WHEN t.pos <= c.pos THEN t.channel::VARCHAR ELSE 'Direct' END AS label, count(*)::DOUBLE AS n, sum(c.value)
	FROM (SELECT *, (ms - %d)::UBIGINT << 20 AS since FROM conversions) c ASOF LEFT JOIN touches t ON c.visitor = t.visitor AND c.since <= t.pos GROUP BY 1`,
		touchesAndConversions(in, from, to), lookback)
}

// linearSQL gives a merged touch what the sum of shares of its visitor's conversions has grown by since before it.
// That is right where no lookback cuts, as here: the past is no longer than the lookback.
func linearSQL(in string, from, to int64) string {
	return fmt.Sprintf(`WITH %s,
	runs AS (SELECT *, lag(touch) OVER (PARTITION BY visitor ORDER BY pos) AS before FROM touches),
	merged AS (SELECT visitor, pos, channel, row_number() OVER (PARTITION BY visitor ORDER BY pos) AS n FROM runs WHERE before IS NULL OR before <> touch),
	shared AS (SELECT c.visitor, c.pos, c.value, m.n AS parts FROM conversions c ASOF LEFT JOIN merged m ON c.visitor = m.visitor AND c.pos >= m.pos),
	sums AS (SELECT visitor, pos, sum(1.0::DOUBLE / parts) OVER (PARTITION BY visitor ORDER BY pos) AS n, sum(value::DOUBLE / parts) OVER (PARTITION BY visitor ORDER BY pos) AS value
	FROM shared WHERE parts IS NOT NULL),
	totals AS (SELECT visitor, max(n) AS n, max(value) AS value FROM sums GROUP BY visitor)
	SELECT channel::VARCHAR AS label, sum(t.n - coalesce(s.n, 0)) AS n, sum(t.value - coalesce(s.value, 0))
	FROM merged m JOIN totals t USING (visitor) ASOF LEFT JOIN sums s ON m.visitor = s.visitor AND m.pos > s.pos GROUP BY 1
	UNION ALL SELECT 'Direct', count(*)::DOUBLE, sum(value) FROM shared WHERE parts IS NULL`, touchesAndConversions(in, from, to))
}
