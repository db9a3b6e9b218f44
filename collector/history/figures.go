package history

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/history/schema"
)

const (
	ofClass = "class = {class:UInt8}"
	// sums are what events add up to, in the words of [schema.Figures], and times the first and the last of them.
	sums  = "count() AS events, count(value) AS amounts, sum(toInt128(ifNull(value, 0))) AS total"
	times = "min(at) AS first, max(at) AS newest"
)

// figuresSQL adds up the events of a class and a range that a condition keeps, by a text that each has, name and currency: of whole
// quarters of an hour from what is prepared. There are several rows for what is the same.
func figuresSQL(label, kept string) string {
	const by = " GROUP BY label, name, currency"
	return `SELECT ` + label + ` AS label, name, currency, ` + sums + `, ` + times + `, ` + schema.Buyers + ` AS buyers, toInt128(0) AS pieces
	FROM events WHERE ` + ofClass + ` AND ` + inQuarters + by + `
	UNION ALL SELECT ` + label + ` AS label, name, currency, ` + sums + `, ` + times + `, ` + buyersNow + ` AS buyers, toInt128(0) AS pieces
	FROM events WHERE ` + ofClass + ` AND ` + inEdges + ` AND ` + kept + by
}

// buyersNow are the visitors of purchases, without those that are nobody by now.
const buyersNow = "groupUniqArrayIf(visitor, visitor != 0 AND at >= {anonymous:UInt64} AND name = 'purchase')"

// labelledSQL are the events of [figuresSQL] one by one, with label and who.
func labelledSQL(label, kept string) string {
	return "SELECT " + label + " AS label, " + visitorSQL + " AS who FROM events WHERE " + ofClass + " AND " + inRange + " AND " + kept
}

const (
	// wordGroups is of how many groups of labels one word tells, and wordBytes about how many bytes these have: a parameter has room for
	// four times as much (see [clickhouse.Query]), as where all has to be escaped.
	wordGroups = 64
	wordBytes  = 24 << 10
	// wordsAtOnce is how many words a statement has of each visitor at most.
	wordsAtOnce = 4
)

// word is a number that a visitor has, in which a bit says of each of some groups whether the visitor is in it.
type word struct {
	groups int
	// labels are those of all groups, and bits the group's bit for each.
	labels []string
	bits   []uint64
}

// wordsOf parts groups of labels into words.
func wordsOf(groups [][]string) (words []word) {
	bytes := 0
	for _, labels := range groups {
		length := len(strings.Join(labels, ""))
		if last := len(words) - 1; last < 0 || words[last].groups == wordGroups || bytes+length > wordBytes {
			words, bytes = append(words, word{}), 0
		}
		bytes += length
		w := &words[len(words)-1]
		for _, label := range labels {
			w.labels, w.bits = append(w.labels, label), append(w.bits, 1<<w.groups)
		}
		w.groups++
	}
	return words
}

// visitorsOf counts the visitors of groups of labels, of events as [labelledSQL] has them. A visitor's words take one look-up an event and
// some bytes a visitor, where a set of visitors for each group would take twice the time.
func (e *Engine) visitorsOf(ctx context.Context, labelled string, groups [][]string, parameters map[string]any) (visitors []uint64, err error) {
	for words := range slices.Chunk(wordsOf(groups), wordsAtOnce) {
		parameters := maps.Clone(parameters)
		for i := range words {
			parameters[fmt.Sprint("labels_", i)], parameters[fmt.Sprint("bits_", i)] = words[i].labels, words[i].bits
		}
		parameters["groups"] = wordGroups
		found, err := all[wordRow](ctx, e, clickhouse.Query{SQL: wordsSQL(labelled, len(words)), Parameters: parameters})
		if err != nil {
			return nil, err
		}
		for i := range words {
			counted := make([]uint64, words[i].groups) // none where no visitor is in any of them
			for _, row := range found {
				if int(row.Word) == i {
					copy(counted, row.Visitors)
				}
			}
			visitors = append(visitors, counted...)
		}
	}
	return visitors, nil
}

// wordRow is how many visitors each group of a word has.
type wordRow struct {
	Word     uint8    `ch:"number"`
	Visitors []uint64 `ch:"by_group"`
}

// wordsSQL counts the visitors of the groups of so many words.
func wordsSQL(labelled string, words int) string {
	each := func(format, between string) string {
		list := make([]string, words)
		for i := range list {
			list[i] = fmt.Sprintf(format, i)
		}
		return strings.Join(list, between)
	}
	return `SELECT word.1 AS number, sumForEach(arrayMap(n -> toUInt64(bitTest(word.2, n)) * visitors, range({groups:UInt8}))) AS by_group FROM (
		SELECT word, count() AS visitors FROM (SELECT arrayJoin([` + each("(toUInt8(%[1]d), word_%[1]d)", ", ") + `]) AS word FROM (
			SELECT who, ` + each("groupBitOr(bit_%[1]d) AS word_%[1]d", ", ") + ` FROM (
				SELECT who, ` + each("transform(label, {labels_%[1]d:Array(String)}, {bits_%[1]d:Array(UInt64)}, toUInt64(0)) AS bit_%[1]d", ", ") + ` FROM (` + labelled + `)
			) WHERE who != 0 AND (` + each("bit_%d != 0", " OR ") + `) GROUP BY who)
		) WHERE word.2 != 0 GROUP BY word) GROUP BY word.1`
}
