package stream

import (
	"context"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/redisserver"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
)

var accesses = map[string]Access{"collector": AppendAccess, "deliverer": DeliverAccess, "query": ReadAccess, fetcher: FetchAccess, "archive": ArchiveAccess}

// fetcher is a deliverer that reads the orders of a shop: it has the rows of two others beside its own.
const fetcher = "fetcher"

// ownKeys are the names of a property's keys as the threat model has them, each with a key of that name behind the
// prefix.
var ownKeys = map[string]string{
	"events": "events", "deliveries": "deliveries", "rejections": "rejections", "rate": "rate", "rate:KEY": "rate:16", "clock": "clock",
	"dedup": "dedup", "dedup:SLOT": "dedup:7", "join": "join", "join:SLOT": "join:7", "batches": "batches", "batches:PERIOD:SHARD": "batches:4:ff",
	"retry:": "retry:", "retry:PLATFORM:due": "retry:meta:due", "retry:PLATFORM:open": "retry:meta:open",
	"retry:PLATFORM:attempts": "retry:meta:attempts", "order:PLATFORM:DIGEST": "order:meta:00112233445566778899", "paused:PLATFORM": "paused:meta", "source:NAME": "source:shop", "compared:NAME": "compared:shop", "writer:PLATFORM": "writer:meta", "shadow:PLATFORM": "shadow:meta",
	"replay:request": "replay:request", "replay:answers": "replay:answers",
	"test:request": "test:request", "test:answers": "test:answers", "test:busy": "test:busy", "platforms": "platforms",
	"audit:keys": "audit:keys", "audit:tokens": "audit:tokens",
	"seal:device": "seal:device", "seal:identity": "seal:identity", "seal:dropped": "seal:dropped",
	"import:events": "import:events", "import:deliveries": "import:deliveries",
	"erasure:requests": "erasure:requests", "erasure:ledger": "erasure:ledger", "erasure:state:": "erasure:state:", "erasure:state:ID": "erasure:state:4-1",
	"erasure:open": "erasure:open", "erasure:hidden": "erasure:hidden", "erasure:lock": "erasure:lock",
	"counts:slot:SLOT": "counts:slot:42", "counts:hour:HOUR": "counts:hour:420",
	"archive": "archive", "paused:history/archive": "paused:history/archive",
}

// foreignKeys are keys that no role may touch: those that Weir does not have, and those of other properties.
var foreignKeys = []string{
	"", "junk", "events2", "events:1", "xevents", "EVENTS", "deliveries:1", "rate:", "rate:0", "rate:17", "rate:100", "rate:1:1", "dedup:", "dedup:8", "dedup:77", "dedup:0:1",
	"dedup:[0-7]", "join:", "join:8", "join:77", "join:0:1", "join:[0-7]", "batches:1", "batches:5:00", "batches:0:0", "batches:0:gg", "batches:0:000", "batches:0:00:1", "retry:meta",
	"retry:meta:due:1", "retry:due", "paused", "writer", "replay:request:1", "replay:", "test:", "test:request:1", "test", "platforms:1", "platforms:meta", "import:", "audit:", "audit:keys:1", "seal", "seal:", "seal:device:1", "seal:*", "erasure:", "erasure:state", "erasure:open:1", "erasure:lock:1", "archive:", "archive:1", "*",
	"counts", "counts:", "counts:slot", "counts:slot:1", "counts:slot:111", "counts:slot:1:", "counts:hour:", "counts:hour:11", "counts:hour:1111", "counts:slot:[0-9][0-9]", "counts:hour:aaa",
	"/weir:{default/shop2}:events", "/weir:{default/sho}:events", "/weir:{other/shop}:events", "/weir:{default/shop}", "/events", "/other",
}

// arguments are those of the commands that a role may run; KEY stands for the key. A command that is not here may be
// run by nobody.
var arguments = map[string]string{
	"auth": "user password", "hello": "", "quit": "", "reset": "", "ping": "", "time": "", "cluster|slots": "", "command": "",
	"command|count": "", "command|docs": "", "command|getkeys": "get x", "command|getkeysandflags": "get x", "command|help": "",
	"command|info": "", "command|list": "",
	"fcall": "weir_append 1 KEY", "get": "KEY", "getrange": "KEY 0 -1", "set": "KEY v", "unlink": "KEY", "exists": "KEY", "pexpire": "KEY 1",
	"hget": "KEY f", "hstrlen": "KEY f", "hmget": "KEY f", "hlen": "KEY", "hset": "KEY f v", "hdel": "KEY f", "hexists": "KEY f", "hgetall": "KEY", "hscan": "KEY 0", "hincrby": "KEY f 1",
	"zadd": "KEY 1 m", "zrem": "KEY m", "zcard": "KEY", "zscore": "KEY m", "zmscore": "KEY m", "zrange": "KEY 0 -1",
	"zremrangebyrank": "KEY 0 1", "zremrangebyscore": "KEY 0 1", "zrangebyscore": "KEY 0 1", "xadd": "KEY MAXLEN 0 * e x", "xlen": "KEY", "xrange": "KEY - +", "xrevrange": "KEY + -", "xread": "STREAMS KEY 0",
	"xtrim": "KEY MAXLEN 0", "xdel": "KEY 1-1", "xack": "KEY g 1-1", "xclaim": "KEY g c 0 1-1", "xautoclaim": "KEY g c 0 0", "xpending": "KEY g",
	"xreadgroup": "GROUP g c STREAMS KEY >", "xgroup|create": "KEY g 0 MKSTREAM", "xgroup|destroy": "KEY g",
	"xinfo|stream": "KEY FULL COUNT 0", "xinfo|groups": "KEY",
}

const threatModel = "../../docs/operate/security.md"

// TestEveryCommandIsDeniedOrInTheThreatModel asks Redis for each of its commands, those of versions to come among them,
// whether a role may run it on which keys, and compares that with the tables that say what a thief can do.
func TestEveryCommandIsDeniedOrInTheThreatModel(t *testing.T) {
	admin := dial(t, redistest.URL(t)).redis
	commands := commandsOf(t, admin)
	want := listedCommands(t)
	for role, access := range accesses {
		t.Run(role, func(t *testing.T) {
			args := []any{"ACL", "SETUSER", role}
			for _, rule := range access.Rules("default", "shop", 0) {
				args = append(args, rule)
			}
			if err := admin.Do(t.Context(), args...).Err(); err != nil {
				t.Fatal(err)
			}
			got := map[string][]string{}
			for _, command := range commands {
				if keys := allowedKeys(t, admin, role, command); keys != nil {
					got[command.name] = keys
				}
			}
			both := maps.Clone(want["everybody"])
			maps.Copy(both, want[role])
			if role == fetcher {
				addRows(both, want["collector"], want["deliverer"])
			}
			if diff := cmp.Diff(both, got); diff != "" {
				t.Errorf("commands and their keys (-%s +Redis allows):\n%s", threatModel, diff)
			}
		})
	}
}

// addRows adds the keys of other roles' commands to those of a role's.
func addRows(rows map[string][]string, others ...map[string][]string) {
	for _, other := range others {
		for command, keys := range other {
			rows[command] = slices.Compact(slices.Sorted(slices.Values(slices.Concat(rows[command], keys))))
		}
	}
}

// command is one of Redis's: "xadd", "xinfo|stream".
type command struct {
	name  string
	arity int
}

// commandsOf lists all commands and subcommands of a server.
func commandsOf(t *testing.T, server redis.UniversalClient) []command {
	t.Helper()
	reply, err := server.Do(t.Context(), "COMMAND").Slice()
	if err != nil {
		t.Fatal(err)
	}
	var commands []command
	var add func(list []any)
	add = func(list []any) {
		for _, item := range list {
			fields := item.([]any)
			one := command{name: strings.ToLower(fields[0].(string)), arity: int(fields[1].(int64))}
			subcommands := fields[9].([]any)
			if len(subcommands) == 0 || one.arity == -1 { // else it cannot be called without one
				commands = append(commands, one)
			}
			add(subcommands)
		}
	}
	add(reply)
	if len(commands) < 300 {
		t.Fatalf("Redis lists %d commands", len(commands))
	}
	return commands
}

// allowedKeys returns on which keys a role may run a command: nil where it may not at all, "—" where it has none.
func allowedKeys(t *testing.T, admin redis.UniversalClient, role string, c command) []string {
	t.Helper()
	words := strings.Split(c.name, "|")
	some := slices.Clone(words)
	for len(some) < max(c.arity, -c.arity) {
		some = append(some, "1")
	}
	if strings.Contains(dryRun(t, admin, role, some), "to run the") {
		return nil // whatever the arguments
	}
	text, known := arguments[c.name]
	if !known {
		return []string{"it may be run, and the test has no arguments for it"}
	}
	if !strings.Contains(text, "KEY") {
		return []string{"—"}
	}
	keys := []string{}
	try := func(name, key string) {
		args := slices.Clone(words)
		for word := range strings.FieldsSeq(text) {
			if word == "KEY" {
				word = key
			}
			args = append(args, word)
		}
		if answer := dryRun(t, admin, role, args); answer == "OK" {
			keys = append(keys, name)
		} else if !strings.Contains(answer, "no permissions") {
			t.Errorf("%v: Redis answers %q", args, answer)
		}
	}
	prefix := keysOf("default", "shop").prefix
	for name, key := range ownKeys {
		try(name, prefix+key)
	}
	for _, key := range foreignKeys {
		if absolute, found := strings.CutPrefix(key, "/"); found {
			try(key, absolute)
		} else {
			try("foreign key "+key, prefix+key)
		}
	}
	slices.Sort(keys)
	return keys
}

// dryRun asks Redis whether a user may run a command.
func dryRun(t *testing.T, admin redis.UniversalClient, user string, words []string) string {
	t.Helper()
	args := []any{"ACL", "DRYRUN", user}
	for _, word := range words {
		args = append(args, word)
	}
	answer, err := admin.Do(t.Context(), args...).Text()
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return answer
}

var threatRow = regexp.MustCompile("^\\| (collector|deliverer|query|archive|fetcher|everybody) \\| (`[^|]*`(?:, `[^|]*`)*|`command`.*?) \\| (.*?) \\| (.+) \\|$")

// listedCommands reads the threat model's rows: role → command → keys.
func listedCommands(t *testing.T) map[string]map[string][]string {
	t.Helper()
	text, err := os.ReadFile(threatModel)
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n## Redis\n")
	if !found {
		t.Fatalf("%s has no section Redis", threatModel)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	listed := map[string]map[string][]string{"everybody": {}}
	for role := range accesses {
		listed[role] = map[string][]string{}
	}
	for line := range strings.Lines(section) {
		row := threatRow.FindStringSubmatch(strings.TrimSpace(line))
		if row == nil {
			continue
		}
		keys := []string{}
		for key := range strings.SplitSeq(row[3], ", ") {
			keys = append(keys, strings.Trim(key, "`"))
		}
		for name := range strings.SplitSeq(row[2], ", ") {
			name = strings.ReplaceAll(strings.ToLower(strings.Trim(name, "`")), " ", "|")
			listed[row[1]][name] = append(listed[row[1]][name], keys...)
			slices.Sort(listed[row[1]][name])
		}
	}
	return listed
}

// TestAThiefIsDenied runs as each role what would do harm, and looks that nothing has come of it.
func TestAThiefIsDenied(t *testing.T) {
	server := redistest.Start(t, redisserver.Options{Loopback: true})
	ctx := t.Context()
	admin := dial(t, server.URL()).Stream("default", "shop")
	roles := map[string]*Stream{}
	for role, access := range accesses {
		roles[role] = asUser(t, server, access, role)
	}
	fill(t, admin, 3)
	if _, err := admin.EnsureGroup(ctx, "meta", GroupState{}); err != nil {
		t.Fatal(err)
	}
	if err := admin.Record(ctx, "meta", []Record{decided(1, Skipped, 0).Record}); err != nil {
		t.Fatal(err)
	}
	before := dump(t, admin)

	streams := []string{
		"SET EVENTS x", "SET EVENTS x GET", "GETSET EVENTS x", "GETDEL EVENTS", "DEL EVENTS", "UNLINK EVENTS", "PEXPIRE EVENTS 1", "EXPIREAT EVENTS 1",
		"PERSIST EVENTS", "RENAME EVENTS JUNK", "RENAMENX EVENTS JUNK", "COPY EVENTS JUNK", "MOVE EVENTS 1", "DUMP EVENTS", "RESTORE EVENTS 0 x REPLACE",
		"SORT DEDUP STORE EVENTS", "SORT_RO EVENTS", "XSETID EVENTS 9999999999999-0", "XGROUP SETID EVENTS meta $",
		"MIGRATE 127.0.0.1 1 EVENTS 0 1000", "GEORADIUS DEDUP 0 0 1 m STORE EVENTS", "ZUNIONSTORE EVENTS 1 DEDUP", "BITOP AND EVENTS DEDUP",
		"OBJECT FREQ EVENTS", "MEMORY USAGE EVENTS", "TYPE EVENTS", "XREVRANGE EVENTS + -", "XINFO CONSUMERS EVENTS meta",
	}
	commands := []string{
		"FLUSHALL", "FLUSHDB", "SHUTDOWN NOSAVE", "CONFIG GET *", "CONFIG SET maxmemory 1", "ACL LIST", "ACL SETUSER x on", "ACL WHOAMI",
		"KEYS *", "SCAN 0", "RANDOMKEY", "DBSIZE", "SELECT 1", "SWAPDB 0 1", "EVAL redis.call('PING') 0", "SCRIPT LOAD x", "SCRIPT KILL", "FUNCTION LIST",
		"FUNCTION FLUSH", "FUNCTION KILL", "FUNCTION DUMP", "CLIENT KILL TYPE normal", "CLIENT LIST", "CLIENT PAUSE 100000", "CLIENT NO-EVICT on", "MONITOR",
		"SUBSCRIBE x", "PSUBSCRIBE *", "SSUBSCRIBE x", "PUBLISH x x", "SPUBLISH x x", "PUBSUB CHANNELS", "MULTI", "WATCH EVENTS", "REPLICAOF NO ONE", "SYNC",
		"FAILOVER", "CLUSTER RESET", "CLUSTER NODES", "MODULE LIST", "LATENCY RESET", "SLOWLOG GET", "INFO", "BGSAVE", "BGREWRITEAOF", "SAVE", "WAIT 1 100000",
		"READONLY",
	}
	writes := []string{
		"XADD EVENTS MAXLEN 0 * e x", "XADD EVENTS * e x", "XADD DELIVERIES MAXLEN 0 * d x", "XADD DELIVERIES * d x", "XTRIM EVENTS MAXLEN 0",
		"XTRIM DELIVERIES MAXLEN 0",
	}
	reads := []string{
		"XINFO STREAM EVENTS", "XINFO STREAM EVENTS FULL", "XINFO STREAM EVENTS FULL COUNT 0", "XINFO GROUPS EVENTS", "XRANGE EVENTS - +", "XREAD STREAMS EVENTS 0",
		"XREADGROUP GROUP meta c STREAMS EVENTS >", "XPENDING EVENTS meta", "XRANGE DELIVERIES - +", "HGETALL DEDUP:0", "HKEYS DEDUP:0", "HSCAN DEDUP:0 0",
		"HRANDFIELD DEDUP:0", "XLEN EVENTS",
	}
	junk := []string{
		"XADD JUNK * e x", "SET JUNK x", "HSET JUNK f v", "ZADD JUNK 1 m", "HSET DEDUP:8 f v", "HSET DEDUP:0:1 f v", "XADD SHOP2 * e x", "XRANGE SHOP2 - +",
		"HSET SHOP2 f v", "XADD DEDUP:0 * e x", "SET DEDUP x",
	}
	erasures := []string{
		"XADD LEDGER * l x", "XDEL LEDGER 1-1", "XTRIM LEDGER MAXLEN 0", "XRANGE REQUESTS - +", "XDEL REQUESTS 1-1", "UNLINK LEDGER", "UNLINK STATE",
		"ZADD TODO 1 4-1", "ZREM HIDDEN 4-1", "HDEL STATE events", "FCALL weir_requests 1 REQUESTS 10",
	}
	theirs := []string{"HSET STATE hidden 1", "ZREM TODO 4-1", "ZADD HIDDEN 1 4-1", "SET LOCK x", "XDEL DELIVERIES 1-1", "HSCAN JOIN:0 0"}
	functions := []string{
		"FCALL weir_due 4 EVENTS DUE OPEN ATTEMPTS 1 2 3 1", "FCALL weir_trim 3 EVENTS DELIVERIES RETRY 1 1 1 1",
		"FCALL weir_destroy_group 4 EVENTS DUE OPEN ATTEMPTS meta", "FCALL weir_ensure_group 4 EVENTS DUE OPEN ATTEMPTS x 0-0 0 0",
		"FCALL weir_settle 5 EVENTS DELIVERIES DUE OPEN ATTEMPTS meta h 1-1 1-1 1-1 1 1 r",
		"FCALL weir_replay 5 EVENTS DELIVERIES DUE OPEN ATTEMPTS meta 0-0 x 1 1 h 1-1 1 r",
	}
	for role, lists := range map[string][][]string{
		"collector": {
			streams, commands, reads, junk, erasures, theirs, functions, writes[2:], {"UNLINK DEDUP:0 EVENTS", "XDEL EVENTS 1-1", "SET RATE x GET", "HGETALL DEDUP", "SET REQUEST x"},
		},
		"query": {
			streams, commands, writes, junk[:10], erasures, theirs, functions, {
				"XDEL EVENTS 1-1", "FCALL weir_allow 1 RATE 1 1 1", "FCALL weir_append 3 EVENTS DEDUP BATCHES 1 1 1 1 1", "HMGET DEDUP:0 x", "SET RATE 1", "GET REQUEST",
				"HSET ANSWERS x 1", "ZADD DUE 1 1-1", "HSET ATTEMPTS 1-1 1", "XPENDING EVENTS meta", "XACK EVENTS meta 1-1", "HGETALL ANSWERS",
			},
		},
		"deliverer": {
			streams, commands, junk, erasures, writes[:2], {
				"FCALL weir_append 3 EVENTS DEDUP BATCHES 1 1 1 1 1", "FCALL weir_allow 1 RATE 1 1 1", "SET RATE 1", "HSET JOIN:0 f v", "UNLINK DELIVERIES",
				"SET REQUEST x", "UNLINK ANSWERS", "XGROUP CREATE DELIVERIES g 0", "SET SOURCE 1", "GET SOURCE",
			},
		},
		"archive": { // which notes what has become of erasures in the history
			streams, commands, writes, junk, erasures, theirs[1:], functions, {
				"XDEL EVENTS 1-1", "HMGET SEAL:DEVICE 1", "HDEL ARCHIVE events", "UNLINK ARCHIVE", "SET PAUSED x", "XRANGE REJECTIONS - +", "SET REQUEST x",
			},
		},
		fetcher: {streams, commands, junk, erasures, {"SET REQUEST x", "UNLINK ANSWERS", "XGROUP CREATE DELIVERIES g 0", "UNLINK SOURCE"}},
	} {
		for _, text := range slices.Concat(lists...) {
			err := roles[role].redis.Do(ctx, attack(text)...).Err()
			if err == nil || !strings.Contains(err.Error(), "NOPERM") {
				t.Errorf("%s: %s: %v, want NOPERM", role, text, err)
			}
		}
	}
	if diff := cmp.Diff(before, dump(t, admin)); diff != "" {
		t.Errorf("what Redis has (-before +after):\n%s", diff)
	}
}

// attack makes a command of words in which capitals stand for keys.
func attack(text string) []any {
	k := keysOf("default", "shop")
	names := map[string]string{
		"EVENTS": k.events(), "DELIVERIES": k.deliveries(), "DEDUP": k.dedup(), "DEDUP:0": k.dedup() + ":0", "DEDUP:8": k.dedup() + ":8",
		"DEDUP:0:1": k.dedup() + ":0:1", "BATCHES": k.batches(), "RATE": k.rate(0), "DUE": k.due("meta"), "OPEN": k.open("meta"),
		"ATTEMPTS": k.attempts("meta"), "RETRY": k.retryPrefix(), "REQUEST": k.replayRequest(), "SOURCE": k.source("shop"), "ANSWERS": k.replayAnswers(),
		"JUNK": k.prefix + "junk", "SHOP2": keysOf("default", "shop2").events(),
		"JOIN:0": k.join() + ":0", "REQUESTS": k.erasureRequests(), "LEDGER": k.erasureLedger(), "STATE": k.erasureState("4-1"), "TODO": k.openErasures(),
		"ARCHIVE": k.archive(), "SEAL:DEVICE": k.seal(wire.Device), "PAUSED": k.paused("meta"), "REJECTIONS": k.rejections(),
		"HIDDEN": k.hiddenErasures(), "LOCK": k.erasureLock(),
	}
	var words []any
	for word := range strings.FieldsSeq(text) {
		if key, found := names[word]; found {
			word = key
		}
		words = append(words, word)
	}
	return words
}

// dump is everything that a server has: key → its value as DUMP writes it, without how long ago consumers were seen.
func dump(t testing.TB, s *Stream) map[string]string {
	t.Helper()
	ctx := context.Background()
	keys, err := s.redis.Keys(ctx, "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, key := range keys {
		value, err := s.redis.Dump(ctx, key).Result()
		if err != nil {
			t.Fatal(err)
		}
		all[key] = fmt.Sprintf("%x", value)
	}
	return all
}

// answering makes a deliverer's stream answer requests for replays until the test ends.
func answering(t *testing.T, s *Stream) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(5 * time.Millisecond)
		defer ticker.Stop()
		for ctx.Err() == nil {
			if err := s.AnswerReplay(ctx, time.Now(), &archived{}, func(name string) bool { return name == "meta" }); err != nil && ctx.Err() == nil {
				t.Log(err)
			}
			<-ticker.C
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}
