package history

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/history/rows"
)

// What an event is taken for at the moment of an answer, as SQL. Of events that are nobody's by now there is neither a visitor
// nor where they came from; and a touch that has become nobody's, or is gone, credits no later event.
const (
	visitorSQL = "if(at < {anonymous:UInt64}, 0, visitor)"
	originSQL  = "if(at - bitShiftLeft(toUInt64(origin_age), 20) < {known:UInt64}, '', origin)"
	// Positions in erased are of persons who are erased and whose rows have still to go.
	notErased = "at NOT IN (SELECT at FROM erased)"
	inRange   = "at >= {from:UInt64} AND at < {to:UInt64} AND " + notErased
)

// touchParts are the places of what a touch has, from 1.
var touchParts = map[analytics.Dimension]int{analytics.BySource: 1, analytics.ByMedium: 2, analytics.ByCampaign: 3, analytics.ByChannel: 4}

// everything is the condition that keeps all events.
const everything = "1"

// none is what is said of an event that lacks something.
const none = "(none)"

// lacking is what is said in a dimension of an event that has nothing there. A touch without a medium or a campaign has none; it always
// has a source and a channel.
func lacking(by analytics.Dimension) string {
	switch by {
	case analytics.BySource:
		return "(direct)"
	case analytics.ByChannel:
		return analytics.Direct
	default:
		return none
	}
}

// labelSQL is what an event has in a dimension, as SQL, given that of the touch that it comes from; "" is nothing. Of products, of which
// an event may have several, there is none. ClickHouse computes these texts once for each that differs, not for each row.
func labelSQL(by analytics.Dimension, origin string) string {
	switch by {
	case analytics.ByEvent:
		return "name"
	case analytics.ByPage:
		return "page"
	}
	return fmt.Sprintf("substringIndex(substringIndex(%[1]s, '%[2]s', %[3]d), '%[2]s', -1)", origin, rows.TouchSeparator, touchParts[by])
}

// originIn is the touch that an event of a range comes from: as it stands there, unless there may be touches that credit none.
func (m moment) originIn(r analytics.Range) string {
	if m.touchesAreKnown(r) {
		return "origin"
	}
	return originSQL
}

// filterSQL is the condition that a filter puts on an event of a range, [everything] for none, and its parameters.
func (m moment) filterSQL(filter analytics.Filter, r analytics.Range) (string, map[string]any) {
	conditions, parameters := []string{}, map[string]any{}
	for _, by := range slices.Sorted(maps.Keys(filter)) {
		values := filter[by]
		if len(values) == 0 {
			continue
		}
		name := "filter_" + string(by)
		if by == analytics.ByProduct {
			condition := fmt.Sprintf("arrayExists(id -> has({%s:Array(String)}, toString(id)), products.id)", name)
			if slices.Contains(values, none) {
				condition = "(empty(products.id) OR " + condition + ")"
			}
			conditions = append(conditions, condition)
		} else {
			conditions = append(conditions, fmt.Sprintf("has({%s:Array(String)}, %s)", name, labelSQL(by, m.originIn(r))))
			values = labels(by, values)
		}
		parameters[name] = values
	}
	if len(conditions) == 0 {
		return everything, parameters
	}
	return strings.Join(conditions, " AND "), parameters
}

// labels are the texts that [labelSQL] has for values of a dimension. No event has an empty value.
func labels(by analytics.Dimension, values []string) []string {
	list := []string{}
	for _, value := range values {
		switch _, isTouch := touchParts[by]; {
		case value == "":
		case isTouch:
			list = append(list, rows.TouchPart(value))
		default:
			list = append(list, value)
		}
		if value == lacking(by) {
			list = append(list, "")
		}
	}
	return list
}
