package schema_test

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/clickhouse/clickhousetest"
	"github.com/weir-dev/weir/collector/history/rows"
	"github.com/weir-dev/weir/collector/history/schema"
)

// history is a database with its tables.
func history(t *testing.T) *clickhouse.Client {
	t.Helper()
	client, err := clickhouse.Dial(clickhousetest.Shared(t), clickhouse.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	if repaired, err := schema.Ensure(t.Context(), client); err != nil || len(repaired) > 0 {
		t.Fatalf("make the tables: %v, %v", repaired, err)
	}
	return client
}

func exec(t *testing.T, client *clickhouse.Client, sql string) {
	t.Helper()
	if err := client.Exec(t.Context(), clickhouse.Query{SQL: sql}); err != nil {
		t.Fatal(err)
	}
}

func TestWhatSomebodyHasDroppedComesBack(t *testing.T) {
	for name, damage := range map[string]string{
		"nothing":      "",
		"a table":      "DROP TABLE records",
		"a column":     "ALTER TABLE events DROP COLUMN entry",
		"a projection": "ALTER TABLE events DROP PROJECTION totals",
		"an index":     "ALTER TABLE events DROP INDEX event_ids",
	} {
		t.Run(name, func(t *testing.T) {
			client := history(t)
			if damage != "" {
				exec(t, client, damage)
			}
			if _, err := schema.Ensure(t.Context(), client); err != nil {
				t.Fatal(err)
			}
			if repaired, err := schema.Ensure(t.Context(), client); err != nil || len(repaired) > 0 {
				t.Errorf("after a repair there is more to do: %v, %v", repaired, err)
			}
			for _, table := range []string{schema.Events, schema.Records, schema.Gaps} {
				exec(t, client, "SELECT count() FROM "+table)
			}
		})
	}
}

func TestAColumnOfAnotherTypeIsNamed(t *testing.T) {
	client := history(t)
	exec(t, client, "ALTER TABLE events MODIFY COLUMN entry LowCardinality(String)")
	_, err := schema.Ensure(t.Context(), client)
	if err == nil || !strings.Contains(err.Error(), "column entry of table events has the type LowCardinality(String); it must be String") {
		t.Errorf("got %v", err)
	}
}

// TestRowsHaveTheColumnsOfTheirTable keeps the two apart packages together.
func TestRowsHaveTheColumnsOfTheirTable(t *testing.T) {
	client := history(t)
	for table, row := range map[string]reflect.Type{schema.Events: reflect.TypeFor[rows.Event](), schema.Records: reflect.TypeFor[rows.Record]()} {
		want, err := clickhouse.Select[string](t.Context(), client, clickhouse.Query{
			SQL:        "SELECT name FROM system.columns WHERE database = {database:String} AND table = {table:String} ORDER BY position",
			Parameters: map[string]any{"database": client.Database(), "table": table},
		})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for field := range row.Fields() {
			got = append(got, field.Tag.Get("ch"))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("columns of %s (-table +row):\n%s", table, diff)
		}
	}
}

// TestWhatIsPreparedFollowsItsRows: a block that is sent twice, and rows that are deleted, are in what is prepared as they are in
// the rows themselves.
func TestWhatIsPreparedFollowsItsRows(t *testing.T) {
	client := history(t)
	block := []rows.Event{{At: 1 << 40, Name: "purchase", Visitor: 1, Value: new(int64(5)), Currency: "EUR"}, {At: 1<<40 + 1, Name: "purchase", Visitor: 2}}
	for range 2 {
		if err := clickhouse.Insert(t.Context(), client, schema.Events, block, "first"); err != nil {
			t.Fatal(err)
		}
	}
	type totals struct {
		Events uint64 `ch:"events"`
		Values uint64 `ch:"values"`
	}
	ask := func(prepared bool) totals {
		t.Helper()
		sql := "SELECT count() AS events, count(value) AS values FROM events WHERE " + schema.Quarter + " >= 0"
		got, err := clickhouse.One[totals](t.Context(), client, clickhouse.Query{SQL: sql, Settings: clickhouse.Settings{
			"optimize_use_projections": prepared, "force_optimize_projection": prepared}})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	for _, step := range []struct {
		what, sql string
		want      totals
	}{
		{"sent twice", "", totals{2, 1}},
		{"one deleted", "ALTER TABLE events DELETE WHERE visitor = 1 SETTINGS mutations_sync = 2", totals{1, 0}},
		{"all merged", "OPTIMIZE TABLE events FINAL", totals{1, 0}},
	} {
		if step.sql != "" {
			exec(t, client, step.sql)
		}
		for _, prepared := range []bool{false, true} {
			if got := ask(prepared); got != step.want {
				t.Errorf("%s, prepared %t: %+v, want %+v", step.what, prepared, got, step.want)
			}
		}
	}
}

func TestNoTwoPropertiesShareAName(t *testing.T) {
	seen := map[string]string{}
	for _, property := range [][2]string{{"a", "b-c"}, {"a-b", "c"}, {"a", "b.c"}, {"a", "b"}} {
		for _, name := range []string{
			schema.Database(property[0], property[1]), schema.User(schema.Database(property[0], property[1]), "query"),
			schema.User(schema.Database(property[0], property[1]), "archive"),
		} {
			if other, taken := seen[name]; taken {
				t.Errorf("%v and %s share %s", property, other, name)
			}
			seen[name] = property[0] + "/" + property[1]
		}
	}
}

// TestTheTablesOfACluster holds the statements as they are sent: a table that has rows is replicated, and one stands for all shards.
func TestTheTablesOfACluster(t *testing.T) {
	columns := regexp.MustCompile(`\(.*\) ENGINE`)
	var got []string
	for _, statement := range schema.Creates("weir_a_shop", "main") {
		got = append(got, columns.ReplaceAllString(statement, "(…) ENGINE"))
	}
	local := func(table, tail string) string {
		return "CREATE TABLE IF NOT EXISTS `weir_a_shop`.`" + table + "_local` ON CLUSTER `main` (…) ENGINE = " +
			"ReplicatedMergeTree('/clickhouse/tables/{shard}/weir_a_shop/" + table + "', '{replica}') " + tail +
			" SETTINGS replicated_deduplication_window = 10000, replicated_deduplication_window_seconds = 604800"
	}
	all := func(table, shard string) string {
		return "CREATE TABLE IF NOT EXISTS `weir_a_shop`.`" + table + "` ON CLUSTER `main` AS `weir_a_shop`.`" + table + "_local` " +
			"ENGINE = Distributed(`main`, `weir_a_shop`, `" + table + "_local`, intHash64(" + shard + "))"
	}
	const month = "PARTITION BY toYYYYMM(toDateTime(intDiv(bitShiftRight("
	want := []string{
		local("events", month+"at, 20), 1000), 'UTC')) ORDER BY (at)"), all("events", "if(visitor = 0, at, visitor)"),
		local("records", month+"entry, 20), 1000), 'UTC')) ORDER BY (at, platform, entry, nth)"), all("records", "at"),
		local("gaps", "ORDER BY (begin)"), all("gaps", "begin"),
		local("erased", "ORDER BY (at)"), all("erased", "at"),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("statements (-want +got):\n%s", diff)
	}
}

// TestWhatAClusterLacksIsAddedToBothOfATable: the table that has rows first, with how it is compressed; the other has no files.
func TestWhatAClusterLacksIsAddedToBothOfATable(t *testing.T) {
	statements, err := schema.RepairsOn(schema.State{}, "main")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"ALTER TABLE `events_local` ON CLUSTER `main` ADD COLUMN IF NOT EXISTS `at` UInt64 CODEC(Delta(8), ZSTD(1)) FIRST",
		"ALTER TABLE `events` ON CLUSTER `main` ADD COLUMN IF NOT EXISTS `at` UInt64 FIRST",
		"ALTER TABLE `events_local` ON CLUSTER `main` MATERIALIZE PROJECTION `totals`",
		"ALTER TABLE `events_local` ON CLUSTER `main` ADD INDEX IF NOT EXISTS `order_ids` order_id TYPE bloom_filter(0.01) GRANULARITY 1",
		"ALTER TABLE `events_local` ON CLUSTER `main` MATERIALIZE INDEX `order_ids`",
	} {
		if !slices.Contains(statements, want) {
			t.Errorf("the repairs lack %s", want)
		}
	}
	for _, statement := range statements {
		if strings.HasPrefix(statement, "ALTER TABLE `events` ") && (regexp.MustCompile("CODEC|PROJECTION|INDEX").MatchString(statement)) {
			t.Errorf("%s: is for a table that has rows", statement)
		}
	}
}
