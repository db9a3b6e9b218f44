package history_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/clickhouse/clickhousetest"
	"github.com/weir-dev/weir/collector/clickhouseserver"
	"github.com/weir-dev/weir/collector/history"
	"github.com/weir-dev/weir/collector/history/schema"
	"github.com/weir-dev/weir/collector/stream"
)

// shards are clusters of the test server: of "three" each shard is the server itself, of "broken" one is away.
const shards = `<remote_servers>
	<three><shard><replica><host>127.0.0.1</host><port>9000</port></replica></shard>
		<shard><replica><host>127.0.0.1</host><port>9000</port></replica></shard>
		<shard><replica><host>127.0.0.1</host><port>9000</port></replica></shard></three>
	<broken><shard><replica><host>127.0.0.1</host><port>9000</port></replica></shard>
		<shard><replica><host>127.0.0.2</host><port>9000</port></replica></shard></broken>
</remote_servers>`

// dial reaches a database of a server, the way a pod of a property with a history in a cluster does.
func dial(t *testing.T, address string, cluster schema.Cluster) *clickhouse.Client {
	t.Helper()
	settings := maps.Clone(cluster.Settings())
	if settings == nil {
		settings = clickhouse.Settings{}
	}
	settings["prefer_localhost_replica"] = true // the test server is all shards, and has no port at which others could ask it
	client, err := clickhouse.Dial(address, clickhouse.Options{Settings: settings})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// distributed finds in a statement the table that it spreads, and the number that tells on which shard a row lies.
var distributed = regexp.MustCompile("`(\\w+)`(?: ON CLUSTER `\\w+`)? AS .* ENGINE = Distributed\\(.*, intHash64\\((.*)\\)\\)$")

// spread makes a database whose tables are those of a cluster over the rows of another database. One server plays all shards: what a
// shard has is what the schema would have put there of the rows, by the number of the shard that is asked.
func spread(t *testing.T, server *clickhousetest.Server, cluster schema.Cluster, shards int, rows string) *clickhouse.Client {
	t.Helper()
	address := server.Database(t)
	parsed, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range schema.Creates(strings.Trim(parsed.Path, "/"), cluster) {
		placed := distributed.FindStringSubmatch(statement)
		if placed == nil {
			continue
		}
		table, shard := placed[1], placed[2]
		clickhousetest.Exec(t, address, fmt.Sprintf("CREATE VIEW %s AS SELECT * FROM %s.%s WHERE intHash64(%s) %% %d + 1 = shardNum()",
			schema.Quote(cluster.Local(table)), schema.Quote(rows), schema.Quote(table), shard, shards))
		clickhousetest.Exec(t, address, statement)
	}
	return dial(t, address, cluster)
}

// TestAClusterAnswersAsOneServer asks a cluster of three shards, and a view, of the same made-up pasts the same random questions.
func TestAClusterAnswersAsOneServer(t *testing.T) {
	first := *seed
	if first == 0 {
		first = rand.Uint64()
	}
	server := clickhousetest.StartWith(t, clickhouseserver.Options{Config: shards})
	const perPast = 30
	names := slices.Sorted(maps.Keys(allKinds()))
	for n := range max(1, *questions/perPast/10) {
		p := newPastIn(t, server.Database(t), first+uint64(n), 121)
		client := spread(t, server, "three", 3, p.client.Database())
		p.history = history.New(history.Options{Client: client, Currency: p.currency,
			Anonymous: func() stream.Position { return p.anonymous }, Oldest: func() stream.Position { return p.oldest }})
		for range perPast {
			p.compare(t, pick(p.Rand, names...), fmt.Sprintf("-seed %d -questions 1", first+uint64(n)))
		}
	}
}

// TestAnAnswerThatLacksAShardIsNone: half of the numbers would be taken for all.
func TestAnAnswerThatLacksAShardIsNone(t *testing.T) {
	server := clickhousetest.StartWith(t, clickhouseserver.Options{Config: shards})
	rows := dial(t, server.Database(t), "")
	if _, err := schema.Ensure(t.Context(), rows); err != nil {
		t.Fatal(err)
	}
	e := history.New(history.Options{Client: spread(t, server, "broken", 2, rows.Database()), Currency: "EUR"})
	if _, err := e.Summary(t.Context(), analytics.Range{From: begin, To: begin.AddDate(0, 0, 1)}, nil); !errors.Is(err, analytics.ErrUnavailable) {
		t.Errorf("got %v, want %v", err, analytics.ErrUnavailable)
	}
}
