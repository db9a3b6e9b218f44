package stream

import (
	"strconv"
	"strings"
	"time"

	"github.com/weir-dev/weir/collector/event/wire"
)

// keys are the names of one property's keys. They share a hash tag, so that all lie in one slot of a cluster
// and one ACL pattern covers them. Only weir.lua puts together the names of deduplication buckets and batch memories.
type keys struct{ prefix string }

// keysOf returns the keys of the property namespace/name.
func keysOf(namespace, name string) keys {
	return keys{prefix: "weir:{" + namespace + "/" + name + "}:"}
}

// property returns namespace/name.
func (k keys) property() string {
	return strings.TrimSuffix(strings.TrimPrefix(k.prefix, "weir:{"), "}:")
}

// pattern matches every key of the property, as ACL rules spell patterns.
func (k keys) pattern() string { return k.prefix + "*" }

// events is the stream of accepted events: one field, "e", an encoded event. Trimmed by [Stream.Trim].
func (k keys) events() string { return k.prefix + "events" }

// deliveries is the stream of delivery records: one field, "d", as in deliveries.proto. Trimmed to the events.
func (k keys) deliveries() string { return k.prefix + "deliveries" }

// rejections is the stream of the newest rejections: one field, "r", a [Rejection] as JSON. It lives for a
// month after the newest.
func (k keys) rejections() string { return k.prefix + "rejections" }

// slotCounts is a hash of what was counted in a slot of [CountSlot]: a counter's name, as package quality gives it, → a number. Its
// name ends in the slot's number since 1970, modulo 100. It lives for three hours after something was added to it.
func (k keys) slotCounts(start time.Time) string {
	return k.prefix + "counts:slot:" + numbered(start, CountSlot, slotCounts)
}

// hourCounts is the same of a UTC hour, whose number is modulo 1,000. It lives for 31 days.
func (k keys) hourCounts(start time.Time) string {
	return k.prefix + "counts:hour:" + numbered(start, time.Hour, hourCounts)
}

// allCounts match the keys of all counts, and nothing else.
func (k keys) allCounts(prefix string) []string {
	return []string{prefix + k.prefix + "counts:slot:[0-9][0-9]", prefix + k.prefix + "counts:hour:[0-9][0-9][0-9]"}
}

// numbered is the number since 1970 of what has a length and a time lies in, modulo a power of ten.
func numbered(at time.Time, length time.Duration, modulo int64) string {
	number := at.Unix() / int64(length/time.Second) % modulo
	return strconv.FormatInt(modulo+number, 10)[1:] // with all its digits
}

// importedEvents and importedDeliveries are the two streams of a past that is being imported; they live until they
// take the names of those above.
func (k keys) importedEvents() string     { return k.prefix + "import:events" }
func (k keys) importedDeliveries() string { return k.prefix + "import:deliveries" }

// dedup is a hash of the deduplication buckets that are in use: SLOT → LENGTH:OPENED. It has no expiry, which would go
// by Redis's clock however that was set, and neither have the buckets.
//
// Behind it, and ":SLOT", there is a hash of the ids that were recorded in one period, half a window long
// when it was opened: 6 bytes of digest → records of the deduplication keys whose digests begin so. LENGTH is in
// milliseconds, OPENED the millisecond of its first deduplication key. What no window reaches any more is removed with
// the next deduplication key, or by [Stream.Trim]. There are eight slots, so that a user can be allowed these keys and
// no others.
func (k keys) dedup() string { return k.prefix + "dedup" }

// dedupSlots is how many buckets of deduplication keys there may be.
const dedupSlots = 8

// dedupBuckets matches the keys of all deduplication buckets, and nothing else.
func (k keys) dedupBuckets() string { return k.dedup() + ":[0-7]" }

// join is a hash of the buckets of identifiers that are in use, as [keys.dedup] is one of deduplication keys, with buckets
// half as long as the retention.
//
// Behind it, and ":SLOT", there is a hash: an identifier, 8 bytes → the person that it was joined to, 8 bytes, and
// when, in milliseconds, 6 bytes, the highest first. Of several buckets that have an identifier the latest tells.
func (k keys) join() string { return k.prefix + "join" }

// joinBuckets matches the keys of all buckets of identifiers, and nothing else.
func (k keys) joinBuckets() string { return k.join() + ":[0-7]" }

// clock is a string: SEEN:AHEAD:SINCE. When a deliverer looked at Redis's clock last, how far that was ahead of the
// time that is believed, and since when, in milliseconds; see [Clock].
func (k keys) clock() string { return k.prefix + "clock" }

// batches is the root of the memory of committed batches; no key has this very name.
//
// Behind it, and ":PERIOD:SHARD", there is a hash: batch id → its reply, packed; "" where every event was appended.
// PERIOD counts half minutes since 1970, modulo 5; SHARD is the batch id's first byte in hexadecimal. It lives for two
// minutes.
func (k keys) batches() string { return k.prefix + "batches" }

// batchMemories matches the 1,280 keys of the memory of committed batches, and nothing else.
func (k keys) batchMemories() string { return k.batches() + ":[0-4]:[0-9a-f][0-9a-f]" }

// rate is a string: the microsecond at which the allowance of the property's secret keys is whole again, or, behind ":1"
// to ":16", that of a key with a rate of its own. It lives until then.
func (k keys) rate(key int) string {
	if key == 0 {
		return k.prefix + "rate"
	}
	return k.prefix + "rate:" + strconv.Itoa(key)
}

// ownRates match the keys of all rates that a key has of its own, and nothing else.
func (k keys) ownRates() []string { return []string{k.prefix + "rate:[1-9]", k.prefix + "rate:1[0-6]"} }

// due is a sorted set: stream ids of a platform's events that wait for another attempt, by the millisecond at
// which it is due, or at which the lease of whoever makes it ends. It lives as long as one waits.
func (k keys) due(platform string) string { return k.prefix + "retry:" + platform + ":due" }

// open is a sorted set: the same stream ids by their own millisecond, so that trimming finds the oldest; without those of which
// the stream has no event any more.
func (k keys) open(platform string) string { return k.prefix + "retry:" + platform + ":open" }

// attempts is a hash: the same stream ids → attempts made, ":" and the millisecond where a replay put it back, "h" where
// it did so from the history, and where the platform has queued it a blank, the millisecond when it did, another blank, and the platform's ticket.
func (k keys) attempts(platform string) string { return k.prefix + "retry:" + platform + ":attempts" }

// order is a hash of what is known of an order on a platform that restates purchases by their refunds, by 10 bytes of the
// digest of the order's deduplication key in hexadecimal: state, value, currency, at, target are the purchase's; refund:STREAM ID →
// amount for each refund; busy is the refund that is under way, busy_until until when. Amounts are in ten-thousandths. It
// lives for 60 days after something of it was settled, and goes with its purchase when a person is erased.
func (k keys) order(platform, digest string) string {
	return k.prefix + "order:" + platform + ":" + digest
}

// retryPrefix is how the keys of all platforms' waiting events begin, for weir_trim, which puts them together; no key has
// this very name.
func (k keys) retryPrefix() string { return k.prefix + "retry:" }

// retries returns the keys of a platform's waiting events.
func (k keys) retries(platform string) []string {
	return []string{k.due(platform), k.open(platform), k.attempts(platform)}
}

// replayRequest is a string: a request for a replay, as JSON, that waits for a deliverer. It lives for ten seconds.
func (k keys) replayRequest() string { return k.prefix + "replay:request" }

// replayAnswers is a hash: id of a request for a replay → how many events were put back, or "begun" or "failed". It lives
// for two minutes.
func (k keys) replayAnswers() string { return k.prefix + "replay:answers" }

// testRequest is a string: a request for a test event, as JSON, that waits for a deliverer. It lives for ten seconds.
func (k keys) testRequest() string { return k.prefix + "test:request" }

// testAnswers is a hash: id of a request for a test event → what came of it, a [TestAnswer] as JSON, or "begun" or "failed". It
// lives for two minutes.
func (k keys) testAnswers() string { return k.prefix + "test:answers" }

// testBusy is a string: a deliverer sends a test event. It lives for as long as that takes.
func (k keys) testBusy() string { return k.prefix + "test:busy" }

// platformStates is a sorted set: how it stands with the platforms, as the deliverers see it, each a report as JSON, by the
// millisecond of the report. It has those of the last minute.
func (k keys) platformStates() string { return k.prefix + "platforms" }

// seal is a hash of the keys that a part of the events is sealed under: number of the period since 1970 → a random name, 8 bytes,
// and the key, 32 bytes. [Stream.DropKeys] removes those whose time is up.
func (k keys) seal(part wire.Part) string { return k.prefix + "seal:" + part.String() }

// sealDropped is a hash of what [Stream.DropKeys] did: device and identity → the last period whose key is gone; at → when a key
// went last, in milliseconds; rewritten → when the last rewrite of Redis's append-only file that has ended began.
func (k keys) sealDropped() string { return k.prefix + "seal:dropped" }

// source is a string: the millisecond up to which a deliverer has read the orders of a source's shop. It lives for a month
// after it was written last.
func (k keys) source(name string) string { return k.prefix + "source:" + name }

// compared is a string: how the orders of a source's shop compared with the purchases of a day, an [OrderComparison] as JSON. It lives
// for eight days.
func (k keys) compared(source string) string { return k.prefix + "compared:" + source }

// usedKeys is a sorted set: the first 8 bytes of the SHA-256 of each API key that has been used, by the microsecond of its
// first use. It has the newest 1,024.
func (k keys) usedKeys() string { return k.prefix + "audit:keys" }

// usedTokens is the same of access tokens.
func (k keys) usedTokens() string { return k.prefix + "audit:tokens" }

// shadow is a sorted set: what a platform in the mode Shadow would have been sent, each entry its event's position in 16
// hexadecimal digits and a deliverer's JSON, by the millisecond at which the event was received. It has the newest [MaxShadow],
// and lives for as long as the last of them may.
func (k keys) shadow(platform string) string { return k.prefix + "shadow:" + platform }

// paused is a string: why a platform gets nothing until a person has fixed something. A deliverer writes it again
// for as long as that is so, the operator reads it. It lives for [PausedFor].
func (k keys) paused(platform string) string { return k.prefix + "paused:" + platform }

// writer is a string: which deliverer writes a platform's files. It lives for as long as that says so.
func (k keys) writer(platform string) string { return k.prefix + "writer:" + platform }

// archive is a hash of how far the archive of the history is, whose fields [ArchiveState] has: epoch; events and records → the
// stream id up to which rows are there, with ":intent" behind them a block that may be on its way, its last id, a blank and its
// token; lost and lost:records → the last id that [Stream.Trim] took of a stream before it was archived; beyond → the id up to which
// the history has events that were never in the stream; current → the millisecond up to when all was; beat → when it was written last.
func (k keys) archive() string { return k.prefix + "archive" }

// erasureRequests is a stream of requests for erasures: one field, "r", JSON. Each lives until it stands in the ledger.
func (k keys) erasureRequests() string { return k.prefix + "erasure:requests" }

// erasureLedger is a stream, the copy of the ledger of erasures that pods follow: one field, "l", the length of an
// erasure's id in a byte, the id, and entries of the ledger, 15 bytes each. It is never trimmed.
func (k keys) erasureLedger() string { return k.prefix + "erasure:ledger" }

// erasureState is a hash: what has become of an erasure; [ErasureState] has the fields. It lives for 400 days.
func (k keys) erasureState(id string) string { return k.prefix + "erasure:state:" + id }

// openErasures is a sorted set: ids of the erasures that a deliverer has to do, by the millisecond in which they stood in
// the ledger.
func (k keys) openErasures() string { return k.prefix + "erasure:open" }

// hiddenErasures is a sorted set: ids of the erasures that are done and whose bytes may still be in Redis's files, by the
// millisecond in which they were done.
func (k keys) hiddenErasures() string { return k.prefix + "erasure:hidden" }

// erasureLock is a string: which deliverer erases. It lives for as long as that says so.
func (k keys) erasureLock() string { return k.prefix + "erasure:lock" }
