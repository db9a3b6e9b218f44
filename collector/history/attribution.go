package history

import (
	"context"
	"maps"
	"math/big"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/history/rows"
	"github.com/weir-dev/weir/collector/stream"
)

// Attribution returns who the conversions of a range that the filter keeps are credited to.
func (e *Engine) Attribution(ctx context.Context, q analytics.AttributionQuery) (analytics.Attribution, error) {
	m, err := e.now(ctx)
	if err != nil {
		return analytics.Attribution{}, err
	}
	a := e.newAttribution(m, q)
	totals, err := a.totals(ctx)
	if err != nil {
		return analytics.Attribution{}, err
	}
	if a.hasOrigins() {
		err = a.creditOrigins(ctx)
	} else {
		err = a.creditJourneys(ctx)
	}
	if err != nil {
		return analytics.Attribution{}, err
	}
	if totals.CompleteFrom, err = e.completeFrom(ctx); err != nil {
		return analytics.Attribution{}, err
	}
	return a.credits.Attribution(totals, e.currency), nil
}

// attribution answers one query.
type attribution struct {
	engine *Engine
	query  analytics.AttributionQuery
	// converts is the condition that an event is a conversion, parameters what it and the statements have.
	converts   string
	parameters map[string]any
	credits    *analytics.Crediting
	// numbers are those of the touches that were met, by text. No touch is 0.
	numbers map[string]uint32
}

func (e *Engine) newAttribution(m moment, q analytics.AttributionQuery) *attribution {
	kept, parameters := m.filterSQL(q.Filter, q.Range)
	maps.Copy(parameters, m.bounds(q.Range))
	parameters["conversion"], parameters["currency"], parameters["lookback"] = q.ConversionEvent, e.currency, q.Lookback.Milliseconds()
	// Touches count from here on.
	parameters["begin"] = m.known
	if q.Lookback > 0 {
		parameters["begin"] = max(m.known, uint64(analytics.FirstAt(q.Range.From.Add(-q.Lookback))))
	}
	return &attribution{
		engine: e, query: q, converts: "class = 0 AND name = {conversion:String} AND " + inRange + " AND " + kept, parameters: parameters,
		credits: analytics.NewCrediting(q), numbers: map[string]uint32{"": 0},
	}
}

// reportedSQL is what an event is worth in the property's currency.
const reportedSQL = "if(currency = {currency:String}, ifNull(value, 0), 0)"

// conversionTotals are the conversions in a currency, "" for those without a value or a currency.
type conversionTotals struct {
	Currency string `ch:"money"`
	Count    uint64 `ch:"conversions"`
	// Nobodys is how many are of nobody.
	Nobodys uint64 `ch:"nobodys"`
	// Total is their value, OfNobody that of those which are of nobody.
	Total    big.Int `ch:"total"`
	OfNobody big.Int `ch:"of_nobody"`
}

// totals returns the figures of all conversions together, and credits those that are nobody's.
func (a *attribution) totals(ctx context.Context) (analytics.Attribution, error) {
	found, err := all[conversionTotals](ctx, a.engine, clickhouse.Query{
		SQL: `SELECT toString(if(isNull(value), '', currency)) AS money, count() AS conversions, countIf(` + visitorSQL + ` = 0) AS nobodys,
			sum(toInt128(ifNull(value, 0))) AS total, sumIf(toInt128(ifNull(value, 0)), ` + visitorSQL + ` = 0) AS of_nobody
			FROM events WHERE ` + a.converts + ` GROUP BY money ORDER BY money`,
		Parameters: a.parameters,
	})
	if err != nil {
		return analytics.Attribution{}, err
	}
	var totals analytics.Attribution
	for i := range found {
		row, ofNobody := &found[i], event.Sum{}
		totals.Conversions += int(row.Count)
		if row.Currency != "" {
			totals.RevenueByCurrency = append(totals.RevenueByCurrency, analytics.CurrencySum{Currency: row.Currency, Sum: event.SumOf(&row.Total)})
		}
		if row.Currency == a.engine.currency {
			totals.Revenue, ofNobody = event.SumOf(&row.Total), event.SumOf(&row.OfNobody)
		}
		if !a.hasOrigins() {
			a.credits.Whole(0, int(row.Nobodys), ofNobody)
		}
	}
	return totals, nil
}

// hasOrigins says that what is written with each conversion tells its touch: that is the latest one of [analytics.TouchLookback].
func (a *attribution) hasOrigins() bool {
	return a.query.Model == analytics.LastTouch && a.query.Lookback > 0 && a.query.Lookback <= analytics.TouchLookback
}

// origin are the conversions that come from a touch, "" for those that come from none.
type origin struct {
	Touch string  `ch:"from_touch"`
	Count uint64  `ch:"conversions"`
	Total big.Int `ch:"total"`
}

// creditOrigins credits each conversion to the touch that it comes from.
func (a *attribution) creditOrigins(ctx context.Context) error {
	found, err := all[origin](ctx, a.engine, clickhouse.Query{
		SQL: `SELECT toString(if(origin_age > {lookback:Int64}, '', ` + originSQL + `)) AS from_touch, count() AS conversions,
			sum(toInt128(` + reportedSQL + `)) AS total FROM events WHERE ` + a.converts + ` GROUP BY from_touch`,
		Parameters: a.parameters,
	})
	for i := range found {
		a.credits.Whole(a.number(found[i].Touch), int(found[i].Count), event.SumOf(&found[i].Total))
	}
	return err
}

// number returns the number of a touch.
func (a *attribution) number(text string) uint32 {
	number, known := a.numbers[text]
	if !known {
		if touch, ok := rows.ParseTouch(text); ok {
			number = a.credits.Touch(touch)
		}
		a.numbers[text] = number
	}
	return number
}

// journeyStep is a touch or a conversion of somebody with a conversion.
type journeyStep struct {
	Visitor  uint64 `ch:"visitor"`
	At       uint64 `ch:"at"`
	Touch    string `ch:"own_touch"`
	Converts uint8  `ch:"converts"`
	Value    int64  `ch:"worth"`
}

// creditJourneys follows each visitor who has a conversion, whose touches and conversions come in order: what is held is those
// of one visitor at a time. Of an event that is both the touch comes first.
func (a *attribution) creditJourneys(ctx context.Context) error {
	converts := a.converts + " AND visitor != 0 AND at >= {anonymous:UInt64}"
	query := clickhouse.Query{
		SQL: `SELECT visitor, at, own_touch, converts, worth FROM (
			SELECT visitor, at, touch AS own_touch, toUInt8(0) AS converts, toInt64(0) AS worth FROM events
			WHERE touch != '' AND visitor != 0 AND at >= {begin:UInt64} AND at < {to:UInt64} AND ` + notErased + ` AND visitor IN (SELECT visitor FROM events WHERE ` + converts + `)
			UNION ALL SELECT visitor, at, toLowCardinality('') AS own_touch, toUInt8(1) AS converts, toInt64(` + reportedSQL + `) AS worth
			FROM events WHERE ` + converts + `) ORDER BY visitor, at, converts`,
		Parameters: a.parameters,
	}
	var visitor uint64
	var journey []analytics.Step
	for row, err := range clickhouse.Rows[journeyStep](ctx, a.engine.client, a.engine.within(query)) {
		if err != nil {
			return failed(err)
		}
		if row.Visitor != visitor {
			if err := a.credits.Journey(ctx, journey); err != nil {
				return err
			}
			visitor, journey = row.Visitor, journey[:0]
		}
		journey = append(journey, analytics.Step{
			At: stream.Position(row.At), Touch: a.number(row.Touch), Converts: row.Converts == 1, Value: event.Amount(row.Value),
		})
	}
	return a.credits.Journey(ctx, journey)
}
