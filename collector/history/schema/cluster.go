package schema

import (
	"fmt"
	"strings"

	"github.com/weir-dev/weir/collector/clickhouse"
)

// Cluster is the cluster of ClickHouse's configuration over whose shards a property's tables are spread; "" for a server alone.
//
// With one, each table is two: NAME_local has the rows of a shard, on all of its replicas, and NAME stands for all shards. Who asks and
// who inserts names NAME. Who changes rows, or looks at how they lie, goes by the methods here.
type Cluster string

// localSuffix is behind the names of tables that have the rows of one shard.
const localSuffix = "_local"

// Local is the name of the table that has the rows of a table.
func (c Cluster) Local(table string) string {
	if c == "" {
		return table
	}
	return table + localSuffix
}

// Whole is the name of the table of which another has the rows.
func (c Cluster) Whole(local string) string {
	if c == "" {
		return local
	}
	return strings.TrimSuffix(local, localSuffix)
}

// Alter is how a statement begins that changes rows of a table wherever they lie.
func (c Cluster) Alter(table string) string { return "ALTER TABLE " + Quote(c.Local(table)) + c.on() }

// in is a table as it stands in a statement that makes it. On a cluster it has its database: the other servers begin in another.
func (c Cluster) in(database, table string) string {
	if c == "" {
		return Quote(table)
	}
	return Quote(database) + "." + Quote(table)
}

func (c Cluster) on() string {
	if c == "" {
		return ""
	}
	return " ON CLUSTER " + Quote(string(c))
}

// System is the SQL of a table of the database system, such as parts: of all replicas of all shards.
func (c Cluster) System(table string) string {
	if c == "" {
		return "system." + table
	}
	return "clusterAllReplicas(" + Quote(string(c)) + ", system." + table + ")"
}

// Settings are those of all statements that are not about tables themselves: nil for a server alone.
func (c Cluster) Settings() clickhouse.Settings {
	if c == "" {
		return nil
	}
	return clickhouse.Settings{
		// What a condition looks up in another table is looked up in all of it, once, and sent to the shards.
		"distributed_product_mode": "global",
		// A shard of which no replica answers makes an error of an answer that would lack its rows.
		"skip_unavailable_shards": false,
		// All ask and write the first replica of each shard that answers, whichever server they reach: so what was written, or hidden, is
		// seen by whoever asks next, and not only when it has reached the other replicas.
		"load_balancing": "in_order", "prefer_localhost_replica": false, "fallback_to_stale_replicas_for_distributed_queries": false,
	}
}

// MostNamed is how many rows one statement that changes a table may name, given how many that may be on a server alone, and about how
// many bytes each takes: of a cluster it stands in Keeper, whose entries have less than a megabyte.
func (c Cluster) MostNamed(alone, bytes int) int {
	const most = 512 << 10
	if c == "" {
		return alone
	}
	return min(alone, max(1, most/bytes))
}

// engine is the engine of the tables that have rows. Replicas of a shard meet under one path in Keeper.
func (c Cluster) engine(database, table string) string {
	if c == "" {
		return "MergeTree"
	}
	return fmt.Sprintf("ReplicatedMergeTree('/clickhouse/tables/{shard}/%s/%s', '{replica}')", database, table)
}

// settings are those of the tables that have rows: how many blocks' tokens a table remembers.
func (c Cluster) settings() string {
	if c == "" {
		return "non_replicated_deduplication_window = 10000"
	}
	return "replicated_deduplication_window = 10000, replicated_deduplication_window_seconds = 604800"
}

// spread is the statement that makes the table which stands for all shards, where there is none.
func (c Cluster) spread(database string, t *table) string {
	return fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s%s AS %s ENGINE = Distributed(%s, %s, %s, intHash64(%s))",
		c.in(database, t.name), c.on(), c.in(database, c.Local(t.name)), Quote(string(c)), Quote(database), Quote(c.Local(t.name)), t.shard)
}
