package history

import (
	"fmt"
	"strings"
	"time"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/clickhouse"
)

// funnelSQL writes the statement that answers a funnel. Each visitor's events are gathered in arrays, and the steps are folded:
// what is done for one of them goes over whole arrays, so that a million events of one visitor cost what a million events of
// many cost. A fold over the events would be as exact, but takes them one by one; and a SELECT for each step around that of
// the step before takes ClickHouse longer to understand than to answer.
//
// Without a window the best attempt is the first: it comes to a step by the earliest later event that fills it. It is at once an
// upper bound for those with a window. Whom it takes as far within the window is settled; for the others, of whom there are
// few, the way of [analytics.View] is taken: how far any attempt comes, and when one first comes that far, is found by keeping for
// each event the latest beginning of the attempts that have come to a step by then. Of two attempts that are within their
// windows the one that began earlier is never behind, so that the best attempt begins at the earliest beginning within a window
// before that moment, and ends at that step.
type funnelSQL struct {
	steps    int
	windowed bool
	// kept is the condition that the filter puts on an event.
	kept string
}

// projectedFrom is for how long a range the events are read in the order of visitors, in which they need not be gathered in
// memory. Those of whole months are read there, where of a shorter range less is read in the order of time.
const projectedFrom = 14 * 24 * time.Hour

// byVisitor are the settings of a statement that gathers the events of each visitor of a range.
func byVisitor(r analytics.Range) clickhouse.Settings {
	settings := clickhouse.Settings{"optimize_aggregation_in_order": true}
	if r.To.Sub(r.From) >= projectedFrom {
		settings["preferred_optimize_projection_name"] = "visitors"
	}
	return settings
}

// String returns the statement.
func (f *funnelSQL) String() string {
	sql := f.firstAttempt()
	if f.windowed {
		sql = f.bestAttempt(sql)
	}
	visitors, medians := make([]string, f.steps), make([]string, f.steps-1)
	for step := range f.steps {
		visitors[step] = fmt.Sprintf("countIf(length(attempt) > %d)", step)
		if step > 0 {
			medians[step-1] = fmt.Sprintf("quantileExactInclusiveIf(0.5)(%s - %s, length(attempt) > %d)",
				milliseconds(fmt.Sprintf("attempt[%d]", step+1)), milliseconds(fmt.Sprintf("attempt[%d]", step)), step)
		}
	}
	return "SELECT [" + strings.Join(visitors, ", ") + "] AS visitors, CAST([" + strings.Join(medians, ", ") + "] AS Array(Float64)) AS medians FROM (" + sql + ")"
}

// milliseconds is the SQL of when a position is.
func milliseconds(position string) string { return "bitShiftRight(" + position + ", 20)" }

// never is a position behind all others.
const never = "18446744073709551615"

// nextSQL is the event by which an attempt comes to step k: the earliest behind the one by which it came to the step before.
func nextSQL(attempt, positions, masks string) string {
	return fmt.Sprintf("arrayMin((a, m, behind) -> if(a > behind AND bitTest(m, k), a, %s), %s, %s, arrayWithConstant(length(%[2]s), %[4]s[-1]))",
		never, positions, masks, attempt)
}

// mask is the type of a set of steps.
func (f *funnelSQL) mask() string {
	for _, bits := range []int{8, 16, 32} {
		if f.steps <= bits {
			return fmt.Sprint("UInt", bits)
		}
	}
	return "UInt64"
}

// gathered has for each visitor the first event that fills the first step, and in no order the positions and masks of those that
// fill later ones; with a window also the positions of those that fill the first alone.
func (f *funnelSQL) gathered() string {
	begins := ""
	if f.windowed {
		begins = "groupArrayIf(at, mask = 1) AS begins, "
	}
	return fmt.Sprintf("SELECT minIf(at, bitTest(mask, 0)) AS start, %[4]sgroupArrayIf(at, mask > 1) AS later, groupArrayIf(mask, mask > 1) AS masks FROM ("+
		"SELECT visitor, at, to%[1]s(transform(name, {names:Array(String)}, {masks:Array(%[1]s)}, to%[1]s(0))) AS mask FROM events "+
		"WHERE class = 0 AND visitor != 0 AND has({names:Array(String)}, name) AND %[2]s AND %[3]s) GROUP BY visitor HAVING start != 0",
		f.mask(), inRange, f.kept, begins)
}

// firstAttempt has for each visitor the events by which the first attempt comes to steps.
func (f *funnelSQL) firstAttempt() string {
	all := ""
	if f.windowed {
		all = "begins, later, masks, "
	}
	return fmt.Sprintf("SELECT %sarrayFilter(a -> a != %s, arrayFold((attempt, k) -> arrayPushBack(attempt, %s), if(empty(later), [], range(1, %d)), [start])) AS attempt FROM (%s)",
		all, never, nextSQL("attempt", "later", "masks"), f.steps, f.gathered())
}

// bestAttempt has for each visitor the events by which the best attempt comes to steps; sql has the first attempt.
func (f *funnelSQL) bestAttempt(sql string) string {
	// times and fills are all events in order, of those whose first attempt takes longer than the window; and of the others, none.
	sql = fmt.Sprintf("SELECT attempt AS first, %s - %s <= {window:UInt64} AS settled, arrayConcat(begins, later) AS positions, "+
		"if(settled, [], arraySort(positions)) AS times, "+
		"if(settled, [], arraySort((m, a) -> a, arrayConcat(arrayMap(a -> to%[3]s(1), begins), masks), positions)) AS fills FROM (%[4]s)",
		milliseconds("attempt[-1]"), milliseconds("attempt[1]"), f.mask(), sql)
	// begun has for each event the latest beginning of the attempts that have come to a step by it, 0 for none; reached the events
	// by which one first comes to each of the steps behind the first.
	began := fmt.Sprintf("arrayMap((a, m, b) -> if(bitTest(m, k) AND b != 0 AND %s - %s <= {window:UInt64}, b, 0), times, fills, arrayShiftRight(known.1, 1))",
		milliseconds("a"), milliseconds("b"))
	sql = fmt.Sprintf("SELECT first, settled, times, fills, arrayFilter(a -> a != 0, arrayFold((known, k) -> "+
		"(arrayFill(b -> b != 0, %s), arrayPushBack(known.2, arrayFirst((a, b) -> b != 0, times, %[1]s))), if(settled, [], range(1, %[2]d)), "+
		"(arrayFill(b -> b != 0, arrayMap((a, m) -> if(bitTest(m, 0), a, 0), times, fills)), emptyArrayUInt64())).2) AS reached FROM (%[3]s)",
		began, f.steps, sql)
	sql = fmt.Sprintf("SELECT first, settled, times, fills, reached, if(empty(reached), 0, %s) AS came, "+
		"bitShiftLeft(if(came > {window:UInt64}, came - {window:UInt64}, 0), 20) AS earliest FROM (%s)", milliseconds("reached[-1]"), sql)
	return fmt.Sprintf("SELECT if(settled, first, arrayFold((attempt, k) -> arrayPushBack(attempt, %s), range(1, if(settled, 1, length(reached) + 1)), "+
		"[arrayFirst((a, m) -> bitTest(m, 0) AND a >= earliest, times, fills)])) AS attempt FROM (%s)", nextSQL("attempt", "times", "fills"), sql)
}
