package history

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/clickhouse/clickhousetest"
	"github.com/weir-dev/weir/collector/history/rows"
	"github.com/weir-dev/weir/collector/history/schema"
)

// TestQuestionsAreAnsweredFromWhatIsPrepared: where a statement no longer says what a projection says it is as right as before, and
// reads every row.
func TestQuestionsAreAnsweredFromWhatIsPrepared(t *testing.T) {
	client, err := clickhouse.Dial(clickhousetest.Shared(t), clickhouse.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	if _, err := schema.Ensure(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	const hour = 4 * quarter
	var events []rows.Event
	var records []rows.Record
	for n := range uint64(20_000) {
		at := 1_000_000*quarter + n*hour/2000
		events = append(events, rows.Event{At: at, Name: "purchase", Visitor: 1 + n%700, Since: uint32(n % 3), Page: fmt.Sprint("/", n%9), Platforms: "crm"})
		records = append(records, rows.Record{At: at, Entry: at, Platform: "crm", Status: 2, Attempts: 1, Latency: uint32(n % 50), Name: "purchase"})
	}
	if err := clickhouse.Insert(t.Context(), client, schema.Events, events, ""); err != nil {
		t.Fatal(err)
	}
	if err := clickhouse.Insert(t.Context(), client, schema.Records, records, ""); err != nil {
		t.Fatal(err)
	}
	m := moment{first: events[0].At, last: events[len(events)-1].At, count: uint64(len(events)), records: records[len(records)-1].Entry, whole: true}
	one := buckets{begins: []uint64{m.first + 1}, end: m.last}
	several := buckets{begins: []uint64{m.first + 1}, end: m.last}
	for n := range uint64(9) {
		several.begins = append(several.begins, m.first+(n+1)*hour)
	}
	byName := func(string) string { return "toString(name)" }
	byBucket := func(at string) string { return "toString(" + several.key(at) + ")" }
	by := func(dimension analytics.Dimension) string {
		return newBreakdown(m, analytics.BreakdownQuery{By: dimension, Limit: 10}, "EUR").String()
	}
	for name, test := range map[string]struct{ sql, projection string }{
		"a range's totals are added up by quarter":       {totalsSQL(&one), "totals"},
		"the totals of days are added up by quarter":     {totalsSQL(&several), "totals"},
		"a range's visitors are those who arrived":       {visitorsSQL(&one), "visits"},
		"the visitors of days are those who arrived":     {visitorsSQL(&several), "visits"},
		"a range's buyers are found beside the totals":   {buyersSQL(&one), "totals"},
		"the buyers of days are found beside the totals": {buyersSQL(&several), "totals"},
		"events are added up by name":                    {by(analytics.ByEvent), "totals"},
		"by page":                                        {by(analytics.ByPage), "pages"},
		"by the channel that their visitor comes from":   {by(analytics.ByChannel), "origins"},
		"what names platforms is counted by name":        {namedSQL(byName, everything), "totals"},
		"what names platforms is counted by day":         {namedSQL(byBucket, everything), "totals"},
		"what became of deliveries is counted by name":   {deliveriesSQL(byName, "has({names:Array(String)}, name)"), "outcomes"},
		"what became of deliveries is counted by day":    {deliveriesSQL(byBucket, everything), "outcomes"},
	} {
		t.Run(name, func(t *testing.T) {
			parameters := several.parameters(m)
			maps.Copy(parameters, m.recordBounds())
			parameters["class"], parameters["currency"], parameters["limit"], parameters["names"] = 0, "EUR", 10, []string{"purchase"}
			plan, err := clickhouse.Select[string](t.Context(), client, clickhouse.Query{SQL: "EXPLAIN " + test.sql, Parameters: parameters})
			if err != nil {
				t.Fatal(err)
			}
			if text := strings.Join(plan, "\n"); !strings.Contains(text, "ReadFromMergeTree ("+test.projection+")") {
				t.Errorf("the projection %s is not read:\n%s", test.projection, text)
			}
		})
	}
}
