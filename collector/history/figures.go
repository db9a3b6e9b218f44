package history

import (
	"context"
	"maps"
	"math/bits"

	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/history/schema"
)

const (
	ofClass = "class = {class:UInt8}"
	// sums are the columns of [figuresSQL] behind what they are grouped by.
	sums = `count() AS events, count(value) AS amounts, sum(toInt128(ifNull(value, 0))) AS total, min(at) AS first, max(at) AS newest, `
)

// figuresSQL adds up the events of a class and a range that a condition keeps, by a text that each has, name and currency: of whole
// quarters of an hour from what is prepared. There are several rows for what is the same.
func figuresSQL(label, kept string) string {
	const by = " GROUP BY label, name, currency"
	return `SELECT ` + label + ` AS label, name, currency, ` + sums + schema.Buyers + ` AS buyers, toInt128(0) AS pieces
	FROM events WHERE ` + ofClass + ` AND ` + inQuarters + by + `
	UNION ALL SELECT ` + label + ` AS label, name, currency, ` + sums + buyersNow + ` AS buyers, toInt128(0) AS pieces
	FROM events WHERE ` + ofClass + ` AND ` + inEdges + ` AND ` + kept + by
}

// buyersNow are the visitors of purchases, without those that are nobody by now.
const buyersNow = "groupUniqArrayIf(visitor, visitor != 0 AND at >= {anonymous:UInt64} AND name = 'purchase')"

// labelledSQL are the events of [figuresSQL] one by one, with label and who.
func labelledSQL(label, kept string) string {
	return "SELECT " + label + " AS label, " + visitorSQL + " AS who FROM events WHERE " + ofClass + " AND " + inRange + " AND " + kept
}

// labelsAtOnce is for how many labels visitors are counted at once.
const labelsAtOnce = bits.UintSize

// visitorsOf counts the visitors of up to [labelsAtOnce] lists of labels, of events as [labelledSQL] has them. Each visitor's labels are
// gathered in one number, so that it takes one look-up an event and one number a visitor, and not a set of visitors for each label.
func (e *Engine) visitorsOf(ctx context.Context, labelled string, lists [][]string, parameters map[string]any) ([]uint64, error) {
	var labels []string
	var masks []uint64
	for i, list := range lists {
		for _, label := range list {
			labels, masks = append(labels, label), append(masks, 1<<i)
		}
	}
	if len(lists) == 0 {
		return nil, nil
	}
	parameters = maps.Clone(parameters)
	maps.Copy(parameters, map[string]any{"labels": labels, "masks": masks, "lists": len(lists)})
	counted, err := one[struct {
		Visitors []uint64 `ch:"by_list"`
	}](ctx, e, clickhouse.Query{
		SQL: `SELECT sumForEach(arrayMap(n -> toUInt64(bitTest(known, n)) * visitors, range({lists:UInt8}))) AS by_list FROM (
			SELECT known, count() AS visitors FROM (SELECT who, groupBitOr(mask) AS known FROM (
				SELECT who, transform(label, {labels:Array(String)}, {masks:Array(UInt64)}, toUInt64(0)) AS mask FROM (` + labelled + `)
			) WHERE who != 0 AND mask != 0 GROUP BY who) GROUP BY known)`,
		Parameters: parameters,
	})
	if err == nil && len(counted.Visitors) == 0 {
		return make([]uint64, len(lists)), nil // there is no such event
	}
	return counted.Visitors, err
}
