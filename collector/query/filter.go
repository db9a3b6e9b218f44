package query

import (
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/weir-dev/weir/collector/analytics"
)

// maxFilterValues is how many values a filter may have in a dimension.
const maxFilterValues = 100

// customProperty is what a dimension begins with that is an event's own property.
const customProperty = "properties."

// dimensionChoices are the dimensions by their names in parameters and answers, groupByChoices those that a touch has.
var (
	dimensionChoices = slices.Concat(
		[]choice[analytics.Dimension]{{"event", analytics.ByEvent}}, groupByChoices,
		[]choice[analytics.Dimension]{{"page", analytics.ByPage}, {"product", analytics.ByProduct}},
	)
	groupByChoices = []choice[analytics.Dimension]{
		{"channel", analytics.ByChannel}, {"source", analytics.BySource}, {"medium", analytics.ByMedium}, {"campaign", analytics.ByCampaign},
	}
)

// withFilters returns all parameters of a call that takes a period and filters, and knows some of its own.
func withFilters(own ...parameter) []parameter {
	all := slices.Concat(periodParameters, own)
	for _, dimension := range dimensionChoices {
		all = append(all, parameter{name: dimension.text, isList: true, isFilter: true})
	}
	return all
}

// filter reads which events are kept.
func (q *request) filter() analytics.Filter {
	filter := analytics.Filter{}
	for _, dimension := range dimensionChoices {
		var values []string
		if dimension.value == analytics.ByEvent {
			values = q.names(dimension.text, maxFilterValues)
		} else {
			values = q.values(dimension.text)
		}
		if len(values) > 0 {
			filter[dimension.value] = values
		}
	}
	return filter
}

// values returns the values of a dimension that is no event's name.
func (q *request) values(name string) []string {
	values := q.verbatimTexts(name, maxFilterValues)
	for i, value := range values {
		if field := fmt.Sprintf("%s.%d", name, i); !utf8.ValidString(value) {
			q.errs.Add(field, fmt.Sprintf("The %s field format is invalid.", field))
		}
	}
	return values
}

// reachOf returns from when on events have a say in the figures of a period that begins at start: for those by where visitors come
// from, their touches before it do too.
func reachOf(start time.Time, filter analytics.Filter, by ...analytics.Dimension) time.Time {
	for _, dimension := range groupByChoices {
		if len(filter[dimension.value]) > 0 || slices.Contains(by, dimension.value) {
			return start.Add(-analytics.TouchLookback)
		}
	}
	return start
}
