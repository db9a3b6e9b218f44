package history

import (
	"context"
	"maps"
	"math/bits"
	"strings"

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

const (
	// labelsAtOnce is of how many groups of labels visitors are counted at once, and labelBytes about how many bytes these may have: a
	// parameter has room for four times as much (see [clickhouse.Query]), as where all has to be escaped.
	labelsAtOnce = bits.UintSize
	labelBytes   = 24 << 10
)

// visitorsOf counts the visitors of groups of labels, of events as [labelledSQL] has them.
func (e *Engine) visitorsOf(ctx context.Context, labelled string, groups [][]string, parameters map[string]any) (visitors []uint64, err error) {
	for len(visitors) < len(groups) && err == nil {
		some, bytes := 0, 0
		for _, labels := range groups[len(visitors):] {
			if bytes += len(strings.Join(labels, "")); some == labelsAtOnce || some > 0 && bytes > labelBytes {
				break
			}
			some++
		}
		var found []uint64
		found, err = e.visitorsAtOnce(ctx, labelled, groups[len(visitors):len(visitors)+some], parameters)
		visitors = append(visitors, found...)
	}
	return visitors, err
}

// visitorsAtOnce gathers each visitor's labels in one number, so that it takes one look-up an event and one number a visitor, and not a
// set of visitors for each group.
func (e *Engine) visitorsAtOnce(ctx context.Context, labelled string, groups [][]string, parameters map[string]any) ([]uint64, error) {
	var labels []string
	var masks []uint64
	for i, list := range groups {
		for _, label := range list {
			labels, masks = append(labels, label), append(masks, 1<<i)
		}
	}
	parameters = maps.Clone(parameters)
	maps.Copy(parameters, map[string]any{"labels": labels, "masks": masks, "groups": len(groups)})
	counted, err := one[struct {
		Visitors []uint64 `ch:"by_group"`
	}](ctx, e, clickhouse.Query{
		SQL: `SELECT sumForEach(arrayMap(n -> toUInt64(bitTest(known, n)) * visitors, range({groups:UInt8}))) AS by_group FROM (
			SELECT known, count() AS visitors FROM (SELECT who, groupBitOr(mask) AS known FROM (
				SELECT who, transform(label, {labels:Array(String)}, {masks:Array(UInt64)}, toUInt64(0)) AS mask FROM (` + labelled + `)
			) WHERE who != 0 AND mask != 0 GROUP BY who) GROUP BY known)`,
		Parameters: parameters,
	})
	if err != nil || len(counted.Visitors) > 0 {
		return counted.Visitors, err
	}
	return make([]uint64, len(groups)), nil // there is no such event
}
