// Package schema says what a property's history looks like in ClickHouse: the names, the tables, and how they are made and kept.
//
// Positions are those of the property's streams, in one number: milliseconds since 1970 shifted left by 20, and a sequence
// number. Money and quantities are ten-thousandths, as everywhere in Weir.
package schema

import (
	"fmt"
	"strings"
)

// The tables.
const (
	// Events has a row for each event.
	Events = "events"
	// Records has a row for each record of what became of an event on a platform. Which of several counts is decided by who reads.
	Records = "records"
	// Gaps has a row for each range of positions of which events may be missing.
	Gaps = "gaps"
	// Erased has the positions of events that are to go, until no file has them any more: no answer has them.
	Erased = "erased"
)

// Imported is set in the positions of rows that were imported: no stream gives one that high.
const Imported = 1 << 19

// Database is the name of a property's database. Neither namespaces nor names have a "_", so no two properties share one.
func Database(namespace, name string) string { return "weir_" + namespace + "_" + name }

// User is the name of the user that a role of a property has.
func User(database, role string) string { return database + "_" + role }

// Quote returns a name as it stands in a statement.
func Quote(name string) string {
	return "`" + strings.NewReplacer(`\`, `\\`, "`", "\\`").Replace(name) + "`"
}

// What is prepared, as SQL. A question that says the same in the same words is answered from there.
const (
	// Quarter is the quarter of an hour of a position, counted since 1970.
	Quarter = "intDiv(bitShiftRight(at, 20), 900000)"
	// Before is the quarter of an hour in which an event's visitor had the one before it, 0 where that is not known.
	Before = "if(since = 0, 0, intDiv(bitShiftRight(at, 20) - since + 1, 900000))"
	// Arrivals are the visitors of events that are, for all that is known, the first of their visitor in a quarter of an hour.
	Arrivals = "groupArrayIf(visitor, visitor != 0 AND " + Before + " != " + Quarter + ")"
	// Buyers are the visitors of purchases, each as often as there are.
	Buyers = "groupArrayIf(visitor, visitor != 0 AND name = 'purchase')"
	// Figures are what events add up to: how many there are, how many have an amount, and what these come to.
	Figures = "count(), count(value), sum(toInt128(ifNull(value, 0))), min(at), max(at), " + Buyers
	// Took is how long a successful delivery took in milliseconds, -1 for others and for those without an attempt. Longer ones count
	// as those of columns.MaxLatency.
	Took = "if(status = 2 AND attempts > 0, toInt64(least(latency, 33554431)), toInt64(-1))"
)

// EventID is the SQL of an event's id, as it is shown and looked up: that of its delivery where nobody has given it one. There is an
// index of it, which is looked into where a question says it with these words: empty() is what ClickHouse makes of a comparison with ”.
const EventID = "if(empty(event_id), " + DeliveryID + ", event_id)"

// DeliveryID is an event's delivery id as a text, as SQL.
const DeliveryID = "UUIDNumToString(toFixedString(concat(reverse(reinterpretAsFixedString(delivery_high + bitShiftLeft(bitShiftRight(at, 20), 16))), " +
	"reverse(reinterpretAsFixedString(delivery_low))), 16))"

// table describes one.
type table struct {
	name        string
	columns     []column
	projections []projection
	indexes     []index
	// partition, order and shard are SQL: partition is "" for none, shard the number that tells on which shard of a cluster a row lies.
	partition, order, shard string
}

type column struct{ name, kind string }

// projection is prepared from a table's own rows, within each part: what changes these changes it.
type projection struct{ name, query string }

// grouped is a projection that adds rows up by keys.
func grouped(name, keys, sums string) projection {
	return projection{name, "SELECT " + keys + ", " + sums + " GROUP BY " + keys}
}

// index tells of 8,192 rows at a time, within each part, which values of an expression are not among them, so that those are not read. Its
// kind is ClickHouse's, and how many marks of the table one of it is for.
type index struct{ name, expression, kind string }

// definition is the index as it stands behind INDEX in a statement.
func (i *index) definition() string {
	return Quote(i.name) + " " + i.expression + " TYPE " + i.kind
}

// byValue is the kind of an index by which a few values are found out of many that are all different: it takes 10 bits for each of these,
// and of a hundred times that a value is not there it says once that it may be.
const byValue = "bloom_filter(0.01) GRANULARITY 1"

// monthOf is the partition of a position: so a block that lies in one month is one part, there wholly or not at all.
func monthOf(position string) string {
	return "toYYYYMM(toDateTime(intDiv(bitShiftRight(" + position + ", 20), 1000), 'UTC'))"
}

// tables are all of a property's. The base of each is enough for every answer.
func tables() []table {
	return []table{
		{
			// A visitor's events lie on one shard, and those of nobody on all.
			name: Events, partition: monthOf("at"), order: "at", shard: "if(visitor = 0, at, visitor)",
			columns: []column{
				{"at", "UInt64 CODEC(Delta(8), ZSTD(1))"},
				{"name", "LowCardinality(String)"},
				{"class", "UInt8"},    // an event.Class
				{"visitor", "UInt64"}, // 0 is nobody
				{"client_id", "String CODEC(ZSTD(1))"},
				{"value", "Nullable(Int64) CODEC(T64, ZSTD(1))"},
				{"currency", "LowCardinality(String)"},
				{"order_id", "String CODEC(ZSTD(1))"},
				{"delivery_high", "UInt64 CODEC(T64, ZSTD(1))"},     // less the milliseconds of the position, see rows.SplitDeliveryID
				{"delivery_low", "UInt64 CODEC(NONE)"},              // that cannot be compressed
				{"event_id", "String CODEC(ZSTD(1))"},               // "" where it is the delivery's
				{"touch", "LowCardinality(String) CODEC(ZSTD(1))"},  // the event's own, "" for none
				{"origin", "LowCardinality(String) CODEC(ZSTD(1))"}, // the touch that its visitor comes from, at most 30 days before
				{"origin_age", "UInt32 CODEC(ZSTD(1))"},             // milliseconds from that touch to the event
				{"since", "UInt32 CODEC(ZSTD(1))"},                  // 1 + milliseconds from an earlier event of its visitor; 0 for not known or none
				{"page", "LowCardinality(String)"},
				{"products.id", "Array(LowCardinality(String)) CODEC(ZSTD(1))"},
				{"products.amount", "Array(Nullable(Int64)) CODEC(ZSTD(1))"},
				{"products.quantity", "Array(Int64) CODEC(ZSTD(1))"},
				{"platforms", "LowCardinality(String)"},         // names with commas between
				{"identifiers", "Array(UInt64) CODEC(ZSTD(1))"}, // others than the visitor; 0 first where that is none of them
				{"entry", "String CODEC(ZSTD(3))"},              // what else was sent, as fields of weir.stream.v1.Entry
				{"identity", "String CODEC(ZSTD(3))"},           // and of it what tells whose it is
			},
			projections: []projection{
				grouped("totals", Quarter+", class, name, currency, platforms", Figures),
				grouped("pages", Quarter+", class, name, currency, page", Figures),
				grouped("origins", Quarter+", class, name, currency, origin", Figures),
				grouped("visits", Before+", "+Quarter, Arrivals), // in this order what came before a range lies together
				{"visitors", "SELECT visitor, at, name, class, value, currency, touch, origin, page ORDER BY visitor, at"},
			},
			indexes: []index{{"event_ids", EventID, byValue}, {"order_ids", "order_id", byValue}},
		},
		{
			name: Records, partition: monthOf("entry"), order: "at, platform, entry, nth", shard: "at",
			columns: []column{
				{"at", "UInt64 CODEC(Delta(8), ZSTD(1))"},    // the event's position
				{"entry", "UInt64 CODEC(Delta(8), ZSTD(1))"}, // the position in the deliveries stream
				{"nth", "UInt16"},                            // which record of that entry
				{"platform", "LowCardinality(String)"},
				{"status", "UInt8 CODEC(ZSTD(1))"}, // a stream.Status
				{"attempts", "UInt16 CODEC(ZSTD(1))"},
				{"latency", "UInt32 CODEC(ZSTD(1))"}, // milliseconds
				{"reason", "LowCardinality(String) CODEC(ZSTD(1))"},
				{"decided", "Int64 CODEC(T64, ZSTD(1))"},          // milliseconds from the entry to when it was decided, mostly a few below 0
				{"name", "LowCardinality(String) CODEC(ZSTD(1))"}, // the event's
				{"again", "UInt8"},                                // 1 where the event has an earlier record of the platform
			},
			projections: []projection{grouped("outcomes", Quarter+", platform, name, status, reason, again, "+Took, "count()")},
		},
		{name: Gaps, order: "begin", shard: "begin", columns: []column{{"begin", "UInt64"}, {"end", "UInt64"}}},
		{name: Erased, order: "at", shard: "at", columns: []column{{"at", "UInt64"}, {"batch", "UInt32"}}}, // those of one batch go together
	}
}

// create is the statement that makes a table which has rows, where there is none. Rows are deleted by ALTER TABLE … DELETE, which makes
// the projections of each part anew. ClickHouse refuses DELETE FROM on tables with projections, unless it is told to make them anew;
// told so, engine 26.5 left the deleted rows in them.
func (t *table) create(database string, c Cluster) string {
	var b strings.Builder
	fmt.Fprintf(&b, "CREATE TABLE IF NOT EXISTS %s%s (", c.in(database, c.Local(t.name)), c.on())
	for i, c := range t.columns {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(Quote(c.name) + " " + c.kind)
	}
	for _, p := range t.projections {
		fmt.Fprintf(&b, ", PROJECTION %s (%s)", Quote(p.name), p.query)
	}
	for i := range t.indexes {
		b.WriteString(", INDEX " + t.indexes[i].definition())
	}
	b.WriteString(") ENGINE = " + c.engine(database, t.name) + " ")
	if t.partition != "" {
		b.WriteString("PARTITION BY " + t.partition + " ")
	}
	fmt.Fprintf(&b, "ORDER BY (%s) SETTINGS %s", t.order, c.settings())
	return b.String()
}

// Creates are the statements that make the tables of a database where they are missing, in their order.
func Creates(database string, c Cluster) (statements []string) {
	list := tables()
	for i := range list {
		statements = append(statements, list[i].create(database, c))
		if c != "" {
			statements = append(statements, c.spread(database, &list[i]))
		}
	}
	return statements
}
