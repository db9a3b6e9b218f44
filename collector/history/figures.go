package history

import (
	"context"
	"fmt"
	"maps"
	"math/bits"
	"slices"
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
	// wordGroups is of how many groups of labels one number tells, and wordBytes about how many bytes these have: a parameter has room for
	// four times as much (see [clickhouse.Query]), as where all has to be escaped.
	wordGroups = bits.UintSize
	wordBytes  = 24 << 10
	// wordsAtOnce is how many numbers a statement has of each visitor at most.
	wordsAtOnce = 4
)

// visitorsOf counts the visitors of groups of labels, of events as [labelledSQL] has them.
func (e *Engine) visitorsOf(ctx context.Context, labelled string, groups [][]string, parameters map[string]any) (visitors []uint64, err error) {
	for words := range slices.Chunk(wordsOf(groups), wordsAtOnce) {
		found, err := e.visitorsAtOnce(ctx, labelled, words, parameters)
		if err != nil {
			return nil, err
		}
		visitors = append(visitors, found...)
	}
	return visitors, nil
}

// wordsOf parts groups of labels into those that one number tells of.
func wordsOf(groups [][]string) (words [][][]string) {
	bytes := 0
	for _, labels := range groups {
		length := len(strings.Join(labels, ""))
		if last := len(words) - 1; last < 0 || len(words[last]) == wordGroups || bytes+length > wordBytes {
			words, bytes = append(words, nil), 0
		}
		bytes += length
		words[len(words)-1] = append(words[len(words)-1], labels)
	}
	return words
}

// visitorsAtOnce gathers each visitor's labels in a few numbers, a bit for each group, so that it takes one look-up an event and these
// numbers a visitor, and not a set of visitors for each group.
func (e *Engine) visitorsAtOnce(ctx context.Context, labelled string, words [][][]string, parameters map[string]any) (visitors []uint64, err error) {
	parameters = maps.Clone(parameters)
	parameters["groups"] = wordGroups
	masks, marked, known, numbered := make([]string, len(words)), make([]string, len(words)), make([]string, len(words)), make([]string, len(words))
	for i, groups := range words {
		var labels []string
		var values []uint64
		for n, list := range groups {
			for _, label := range list {
				labels, values = append(labels, label), append(values, 1<<n)
			}
		}
		parameters[fmt.Sprint("labels_", i)], parameters[fmt.Sprint("bits_", i)] = labels, values
		masks[i] = fmt.Sprintf("transform(label, {labels_%[1]d:Array(String)}, {bits_%[1]d:Array(UInt64)}, toUInt64(0)) AS mask_%[1]d", i)
		marked[i] = fmt.Sprint("mask_", i, " != 0")
		known[i] = fmt.Sprintf("groupBitOr(mask_%[1]d) AS known_%[1]d", i)
		numbered[i] = fmt.Sprintf("(toUInt8(%[1]d), known_%[1]d)", i)
		visitors = append(visitors, make([]uint64, len(groups))...)
	}
	counted, err := all[struct {
		Word     uint8    `ch:"place"`
		Visitors []uint64 `ch:"by_group"`
	}](ctx, e, clickhouse.Query{
		SQL: `SELECT word.1 AS place, sumForEach(arrayMap(n -> toUInt64(bitTest(word.2, n)) * visitors, range({groups:UInt8}))) AS by_group FROM (
			SELECT word, count() AS visitors FROM (SELECT arrayJoin([` + strings.Join(numbered, ", ") + `]) AS word FROM (
				SELECT who, ` + strings.Join(known, ", ") + ` FROM (SELECT who, ` + strings.Join(masks, ", ") + ` FROM (` + labelled + `))
				WHERE who != 0 AND (` + strings.Join(marked, " OR ") + `) GROUP BY who)) WHERE word.2 != 0 GROUP BY word) GROUP BY word.1`,
		Parameters: parameters,
	})
	for _, row := range counted {
		before := 0
		for i := range row.Word {
			before += len(words[i])
		}
		copy(visitors[before:before+len(words[row.Word])], row.Visitors)
	}
	return visitors, err
}
