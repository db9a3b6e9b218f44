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

// touchParts are the places of what a touch has, from 1, and what is said of an event without a touch.
var touchParts = map[analytics.Dimension]struct {
	place  int
	direct string
}{
	analytics.BySource: {1, "(direct)"}, analytics.ByMedium: {2, none}, analytics.ByCampaign: {3, none}, analytics.ByChannel: {4, analytics.Direct},
}

// everything is the condition that keeps all events.
const everything = "1"

// none is what is said of an event that lacks something.
const none = "(none)"

// groupSQL is what an event has in a dimension, as SQL. Of products, of which it may have several, there is none.
func groupSQL(by analytics.Dimension) string {
	switch by {
	case analytics.ByEvent:
		return "toString(name)"
	case analytics.ByPage:
		return "if(page = '', '" + none + "', toString(page))"
	}
	part := touchParts[by]
	// A touch without a medium or a campaign has none; it always has a source and a channel.
	return fmt.Sprintf("multiIf(%[1]s = '', '%[2]s', splitByChar('%[3]s', toString(origin))[%[4]d] = '', '%[5]s', splitByChar('%[3]s', toString(origin))[%[4]d])",
		originSQL, part.direct, rows.TouchSeparator, part.place, none)
}

// filterSQL is the condition that a filter puts on an event, [everything] for none, and its parameters.
func filterSQL(filter analytics.Filter) (string, map[string]any) {
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
			conditions = append(conditions, fmt.Sprintf("has({%s:Array(String)}, %s)", name, groupSQL(by)))
		}
		if _, isTouch := touchParts[by]; isTouch {
			values = slices.Clone(values)
			for i := range values {
				values[i] = rows.TouchPart(values[i])
			}
		}
		parameters[name] = values
	}
	if len(conditions) == 0 {
		return everything, parameters
	}
	return strings.Join(conditions, " AND "), parameters
}
