package stream

import (
	"slices"
	"strings"

	"github.com/weir-dev/weir/collector/event/wire"
)

// Access is what a Redis user may do with one property's keys. A function of the library runs with its caller's
// permissions, so each access grants the commands of its functions, each on the keys that they are for and no others.
// What a stolen user can do with them is listed in docs/operate/security.md, and a test compares the two.
type Access int

// The accesses, one for each role of the tenant pods.
const (
	// AppendAccess is for the collector: it may append, and read nothing of the streams back.
	AppendAccess Access = iota
	// DeliverAccess is for the deliverer: it reads, records and trims.
	DeliverAccess
	// ReadAccess is for the query role: it reads, and may leave requests for replays and for test events to the deliverer.
	ReadAccess
	// FetchAccess is for the deliverer of a property that reads the orders of a shop: it delivers, and appends as a
	// collector does.
	FetchAccess
	// ArchiveAccess is for the archive: it reads both streams, and notes how far it has copied them.
	ArchiveAccess
)

// grant is some commands and the keys that they may be used on: a selector of the user. Each key has Redis's own prefix
// for what may be done with it: %R~ for reading, %W~ for writing, ~ for both.
type grant struct{ commands, keys []string }

// rule words the grant as an argument of ACL SETUSER.
func (g grant) rule() string {
	words := make([]string, 0, len(g.commands)+len(g.keys))
	for _, command := range g.commands {
		words = append(words, "+"+command)
	}
	return "(" + strings.Join(append(words, g.keys...), " ") + ")"
}

// connection are the commands without keys. What the Redis library asks a cluster for its nodes and for the
// commands' keys is among them; the functions ask for the time.
var connection = []string{"ping", "time", "cluster|slots", "command"}

// Rules returns the arguments of ACL SETUSER that give a user this access to the property namespace/name in a
// database, beside its password. The user may do nothing else.
func (a Access) Rules(namespace, name string, database int) []string {
	rules := []string{"reset", "on", "resetchannels"}
	for _, command := range connection {
		rules = append(rules, "+"+command)
	}
	if database != 0 { // else the user stays out of all others: patterns of keys hold in every database
		rules = append(rules, "+select")
	}
	for _, g := range a.grants(keysOf(namespace, name)) {
		rules = append(rules, g.rule())
	}
	return rules
}

// grants are in the order in which Redis looks through them: what is used most comes first.
func (a Access) grants(k keys) []grant {
	switch a {
	case AppendAccess:
		return appendGrants(k)
	case DeliverAccess:
		return slices.Concat(deliverGrants(k), eraseGrants(k))
	case FetchAccess:
		return slices.Concat(deliverGrants(k), eraseGrants(k), appendGrants(k), []grant{{[]string{"get"}, []string{"%R~" + k.source("*"), "%R~" + k.compared("*")}}, {[]string{"set"}, []string{"%W~" + k.source("*"), "%W~" + k.compared("*")}}})
	case ArchiveAccess:
		return archiveGrants(k)
	default:
		return readGrants(k)
	}
}

func appendGrants(k keys) []grant {
	// rates returns the keys of all rates, each with Redis's prefix before it.
	rates := func(prefix string) []string {
		patterns := []string{prefix + k.rate(0)}
		for _, own := range k.ownRates() {
			patterns = append(patterns, prefix+own)
		}
		return patterns
	}
	return []grant{
		{[]string{"xadd"}, []string{"%W~" + k.events()}},
		{[]string{"hset"}, []string{"%W~" + k.batchMemories(), "%W~" + k.dedupBuckets(), "%W~" + k.dedup(), "%W~" + k.joinBuckets(), "%W~" + k.join(), "%W~" + k.seal(wire.Device), "%W~" + k.seal(wire.Identity)}},
		{[]string{"hmget"}, []string{"%R~" + k.dedupBuckets(), "%R~" + k.dedup(), "%R~" + k.joinBuckets(), "%R~" + k.join()}},
		{[]string{"hget", "hstrlen"}, []string{"%R~" + k.seal(wire.Device), "%R~" + k.seal(wire.Identity), "%R~" + k.batchMemories()}},
		{[]string{"getrange"}, []string{"%R~" + k.clock()}},
		{[]string{"get"}, rates("%R~")},
		{[]string{"fcall"}, append([]string{"~" + k.events(), "~" + k.dedup(), "~" + k.batches(), "~" + k.clock(), "~" + k.join(), "~" + k.seal(wire.Device), "~" + k.seal(wire.Identity)}, rates("~")...)},
		{[]string{"pexpire"}, []string{"%W~" + k.batchMemories()}},
		{[]string{"set"}, rates("%W~")},
		{[]string{"hdel"}, []string{"%W~" + k.dedup(), "%W~" + k.join()}},
		{[]string{"unlink"}, []string{"%W~" + k.dedupBuckets(), "%W~" + k.joinBuckets()}},
		{[]string{"xadd", "pexpire"}, []string{"%W~" + k.rejections()}},
		{[]string{"xadd"}, []string{"%W~" + k.erasureRequests()}},
		{[]string{"xrange"}, []string{"%R~" + k.erasureLedger()}},
		{[]string{"hgetall"}, []string{"%R~" + k.erasureState("?*")}},
		{[]string{"zadd", "zremrangebyrank"}, []string{"%W~" + k.usedKeys()}},
		{[]string{"zscore"}, []string{"%R~" + k.usedKeys()}},
		{[]string{"fcall", "hincrby"}, k.allCounts("~")},
		{[]string{"hexists"}, k.allCounts("%R~")},
		{[]string{"pexpire"}, k.allCounts("%W~")},
	}
}

// deliverGrants name the platforms' keys by a pattern: the deliverer closes the groups of platforms that are no longer
// configured, of which nobody else knows.
func deliverGrants(k keys) []grant {
	events, deliveries := k.events(), k.deliveries()
	due, open, attempts, orders := k.due("*"), k.open("*"), k.attempts("*"), k.order("*", "*")
	return []grant{
		{[]string{"fcall"}, []string{
			"~" + events, "~" + deliveries, "~" + due, "~" + open, "~" + attempts, "~" + k.retryPrefix(), "~" + k.dedup(), "~" + k.clock(), "~" + k.join(),
			"~" + k.seal(wire.Device), "~" + k.seal(wire.Identity), "~" + k.sealDropped(), "~" + k.archive(),
		}},
		{[]string{"xpending", "xreadgroup", "xinfo|groups"}, []string{"%R~" + events}},
		{[]string{"xrange", "xinfo|stream", "exists"}, []string{"%R~" + events, "%R~" + deliveries}},
		{[]string{"xlen"}, []string{"%R~" + events}},
		{[]string{"xack", "xclaim", "xgroup|create", "xgroup|destroy"}, []string{"%W~" + events}},
		{[]string{"xautoclaim"}, []string{"~" + events}},
		{[]string{"xadd"}, []string{"%W~" + deliveries}},
		{[]string{"xtrim"}, []string{"%W~" + events, "%W~" + deliveries}},
		{[]string{"exists", "zmscore", "zrangebyscore", "zscore", "zcard"}, []string{"%R~" + due}},
		{[]string{"zrange", "zrangebyscore"}, []string{"%R~" + open}},
		{[]string{"zadd", "zrem"}, []string{"%W~" + due, "%W~" + open}},
		{[]string{"hget", "hstrlen"}, []string{"%R~" + attempts}},
		{[]string{"hset", "hdel"}, []string{"%W~" + attempts}},
		{[]string{"hget", "hgetall", "hlen"}, []string{"%R~" + orders}},
		{[]string{"hset", "pexpire", "unlink"}, []string{"%W~" + orders}},
		{[]string{"unlink"}, []string{"%W~" + due, "%W~" + open, "%W~" + attempts}},
		{[]string{"set"}, []string{"%W~" + k.paused("*"), "%W~" + k.clock()}},
		{[]string{"set", "unlink"}, []string{"%W~" + k.writer("*")}},
		{[]string{"getrange"}, []string{"%R~" + k.writer("*")}},
		{[]string{"hmget"}, []string{"%R~" + k.dedup(), "%R~" + k.join(), "%R~" + k.seal(wire.Device), "%R~" + k.seal(wire.Identity)}},
		{[]string{"hdel"}, []string{"%W~" + k.dedup(), "%W~" + k.join(), "%W~" + k.seal(wire.Device), "%W~" + k.seal(wire.Identity)}},
		{[]string{"hget", "hstrlen"}, []string{"%R~" + k.sealDropped(), "%R~" + k.archive()}},
		{[]string{"hset"}, []string{"%W~" + k.sealDropped(), "%W~" + k.archive()}},
		{[]string{"unlink"}, []string{"%W~" + k.dedupBuckets(), "%W~" + k.joinBuckets()}},
		{[]string{"getrange"}, []string{"%R~" + k.clock(), "%R~" + k.replayRequest(), "%R~" + k.testRequest()}},
		{[]string{"unlink"}, []string{"%W~" + k.replayRequest(), "%W~" + k.testRequest()}},
		{[]string{"hset", "pexpire"}, []string{"%W~" + k.replayAnswers(), "%W~" + k.testAnswers()}},
		{[]string{"set", "unlink"}, []string{"%W~" + k.testBusy()}},
		{[]string{"zadd", "zremrangebyscore", "pexpire"}, []string{"%W~" + k.platformStates()}},
		{[]string{"zadd", "zremrangebyscore", "zremrangebyrank", "pexpire", "unlink"}, []string{"%W~" + k.shadow("*")}},
	}
}

// eraseGrants are what a deliverer needs beside those to erase persons.
func eraseGrants(k keys) []grant {
	states := k.erasureState("?*")
	return []grant{
		{[]string{"zrange", "zscore"}, []string{"%R~" + k.openErasures()}},
		{[]string{"getrange"}, []string{"%R~" + k.erasureLock()}},
		{[]string{"set", "unlink"}, []string{"%W~" + k.erasureLock()}},
		{[]string{"xrange"}, []string{"%R~" + k.erasureLedger(), "%R~" + k.rejections()}},
		{[]string{"xdel"}, []string{"%W~" + k.events(), "%W~" + k.deliveries(), "%W~" + k.rejections()}},
		{[]string{"hget", "hstrlen"}, []string{"%R~" + k.dedupBuckets()}},
		{[]string{"hset", "hdel"}, []string{"%W~" + k.dedupBuckets()}},
		{[]string{"hscan"}, []string{"%R~" + k.joinBuckets(), "%R~" + k.batchMemories()}},
		{[]string{"hdel"}, []string{"%W~" + k.joinBuckets(), "%W~" + k.batchMemories()}},
		{[]string{"hgetall"}, []string{"%R~" + states}},
		{[]string{"hset"}, []string{"%W~" + states}},
		{[]string{"hincrby"}, []string{"~" + states}},
		{[]string{"zrem"}, []string{"%W~" + k.openErasures()}},
		{[]string{"zadd"}, []string{"%W~" + k.hiddenErasures()}},
		{[]string{"xadd"}, []string{"%W~" + k.erasureRequests()}},
		// All keys of a call have to stand in one selector.
		{[]string{"fcall"}, []string{
			"~" + k.events(), "~" + k.deliveries(), "~" + k.retryPrefix(), "~" + k.dedup(), "~" + k.clock(),
			"~" + k.openErasures(), "~" + k.hiddenErasures(), "~" + k.erasureState(""),
		}},
	}
}

func readGrants(k keys) []grant {
	events, deliveries := k.events(), k.deliveries()
	return []grant{
		{[]string{"xrange", "xread", "xinfo|stream"}, []string{"%R~" + events, "%R~" + deliveries}},
		{[]string{"hmget"}, []string{"%R~" + k.seal(wire.Identity), "%R~" + k.sealDropped()}},
		{[]string{"xrevrange"}, []string{"%R~" + k.rejections()}},
		{[]string{"zrange"}, []string{"%R~" + k.shadow("*"), "%R~" + k.platformStates()}},
		{[]string{"set"}, []string{"%W~" + k.replayRequest(), "%W~" + k.testRequest()}},
		{[]string{"hget"}, []string{"%R~" + k.replayAnswers(), "%R~" + k.testAnswers()}},
		{[]string{"xadd"}, []string{"%W~" + k.erasureRequests()}},
		{[]string{"xrange"}, []string{"%R~" + k.erasureLedger()}},
		{[]string{"hgetall"}, []string{"%R~" + k.erasureState("?*"), "%R~" + k.archive()}},
		{[]string{"zadd", "zremrangebyrank"}, []string{"%W~" + k.usedTokens()}},
		{[]string{"zscore"}, []string{"%R~" + k.usedTokens()}},
		{[]string{"hgetall"}, k.allCounts("%R~")},
		{[]string{"get"}, []string{"%R~" + k.compared("*")}},
	}
}

func archiveGrants(k keys) []grant {
	events, deliveries := k.events(), k.deliveries()
	return append([]grant{
		{[]string{"fcall"}, []string{"~" + k.archive()}},
		{[]string{"hgetall", "hget", "hstrlen"}, []string{"%R~" + k.archive()}},
		{[]string{"hset"}, []string{"%W~" + k.archive()}},
		{[]string{"xrange", "xinfo|stream"}, []string{"%R~" + events, "%R~" + deliveries}},
		{[]string{"hmget"}, []string{"%R~" + k.seal(wire.Identity), "%R~" + k.sealDropped()}},
		{[]string{"getrange"}, []string{"%R~" + k.clock()}},
		{[]string{"set"}, []string{"%W~" + k.paused(ArchiveName)}},
	}, historyGrants(k)...)
}
