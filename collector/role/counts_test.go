package role

import (
	"context"
	"fmt"
	"maps"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/collector/quality"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/collector/stream"
)

// mostHourBytes is what the counts of an hour take of Redis's memory at most: docs/operate/size.md makes a month of it.
const mostHourBytes = 192 << 10

// TestTheCountsOfAnHourAreBoundedWhateverIsSent has five collectors, each with a page's visitor of its own who makes up names as long
// as they may be, and sends each event in each currency in all slots of an hour.
func TestTheCountsOfAnHourAreBoundedWhateverIsSent(t *testing.T) {
	t.Parallel()
	address := redistest.URL(t)
	client, err := stream.Dial(address, stream.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	if err := client.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	hour := time.Now().UTC().Truncate(time.Hour)
	s := client.Stream("default", "flooded")
	for c := range 5 {
		p := &property{stream: s, tally: quality.NewTally(), options: Options{Roles: []Name{Collect}}}
		for slot := range 12 {
			at := hour.Add(time.Duration(slot) * quality.SlotLength)
			flood(p.tally, at, c)
			if err := p.writeCounts(t.Context(), at); err != nil {
				t.Fatal(err)
			}
		}
	}
	fields, bytes := sizeOfHour(t, address)
	t.Logf("%d fields of at most %d, %d bytes", fields, quality.MostFields, bytes)
	if fields > quality.MostFields || fields < quality.MostFields*9/10 {
		t.Errorf("there are %d fields, want %d at most, and nearly as many", fields, quality.MostFields)
	}
	if bytes > mostHourBytes {
		t.Errorf("they take %d bytes, want %d at most", bytes, mostHourBytes)
	}
	periods, err := counted{s}.Hours(t.Context(), []time.Time{hour})
	if err != nil {
		t.Fatal(err)
	}
	if got := periods[0].Events["purchase"].Stored; got != 5*12*144 {
		t.Errorf("%d purchases are counted, want %d", got, 5*12*144)
	}
	stored := int64(0)
	for counts := range maps.Values(periods[0].Events) {
		stored += counts.Stored
	}
	if want := int64(5 * 12 * (144*16 + 100)); stored != want {
		t.Errorf("%d events are counted, want %d", stored, want)
	}
}

// sizeOfHour returns how many fields the only hash of an hour's counts has, and what it takes.
func sizeOfHour(t *testing.T, address string) (fields int, bytes int64) {
	t.Helper()
	options, err := redis.ParseURL(address)
	if err != nil {
		t.Fatal(err)
	}
	admin := redis.NewClient(options)
	t.Cleanup(func() { _ = admin.Close() })
	keys, err := admin.Keys(t.Context(), "*:counts:hour:*").Result()
	if err != nil || len(keys) != 1 {
		t.Fatalf("%v, %v", keys, err)
	}
	bytes, err = admin.MemoryUsage(t.Context(), keys[0], 0).Result() // of all fields
	if err != nil {
		t.Fatal(err)
	}
	length, err := admin.HLen(t.Context(), keys[0]).Result()
	if err != nil {
		t.Fatal(err)
	}
	return int(length), bytes
}

// TestCountsAreNotAddedAgainWhileRedisIsSlow has Redis stand still for longer than writing may take, and go on.
func TestCountsAreNotAddedAgainWhileRedisIsSlow(t *testing.T) {
	t.Parallel()
	address := redistest.URL(t)
	var clients [2]*stream.Client
	for i := range clients {
		var err error
		if clients[i], err = stream.Dial(address, stream.DialOptions{}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = clients[i].Close() })
		if err := clients[i].Load(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now().UTC()
	p := &property{stream: clients[0].Stream("default", "slow"), tally: quality.NewTally(), options: Options{Roles: []Name{Collect}}}
	for range 3 {
		p.tally.Stored(now, p.tally.Observe(now, "purchase", quality.Traits{Client: true}))
	}
	if _, err := p.stream.SlotCounts(t.Context(), []time.Time{now}); err != nil { // from now on it has a connection
		t.Fatal(err)
	}
	leavesUndone := isValkey(t, address)
	stall(t, address, time.Second)
	slow, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := p.writeCounts(slow, now); err == nil {
		t.Fatal("Redis has answered")
	}
	var got quality.Period
	for deadline := time.Now().Add(10 * time.Second); !got.Counted; { // which is written anew with what came since
		if err := p.writeCounts(t.Context(), now); err != nil && time.Now().After(deadline) {
			t.Fatal(err)
		}
		periods, err := counted{clients[1].Stream("default", "slow")}.Slots(t.Context(), []time.Time{now})
		if err == nil {
			got = periods[0]
		}
	}
	if c := got.Events["purchase"]; got.Lost != 3 || leavesUndone && c != nil || !leavesUndone && (c == nil || c.Stored != 3 || c.Client != 3) {
		t.Errorf("counted %+v, and lost %d; want 3, which Valkey leaves undone, and as many lost", c, got.Lost)
	}
}

// isValkey says whether a server is one: it leaves undone what was sent by who has gone before it came to that.
func isValkey(t *testing.T, address string) bool {
	t.Helper()
	options, err := redis.ParseURL(address)
	if err != nil {
		t.Fatal(err)
	}
	admin := redis.NewClient(options)
	defer admin.Close()
	return admin.InfoMap(t.Context(), "server").Val()["Server"]["server_name"] == "valkey"
}

// stall has Redis do nothing else for a time, and returns when it does.
func stall(t *testing.T, address string, d time.Duration) {
	t.Helper()
	options, err := redis.ParseURL(address)
	if err != nil {
		t.Fatal(err)
	}
	admin := redis.NewClient(options)
	busy := "local t = redis.call('TIME'); local ends = t[1] * 1000000 + t[2] + ARGV[1]; repeat t = redis.call('TIME') until t[1] * 1000000 + t[2] > ends"
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		admin.Eval(context.WithoutCancel(t.Context()), busy, nil, d.Microseconds())
	}()
	t.Cleanup(func() { <-ended; _ = admin.Close() })
	for stalled := false; !stalled; {
		connection, err := net.DialTimeout(options.Network, options.Addr, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		_ = connection.SetDeadline(time.Now().Add(50 * time.Millisecond))
		_, err = fmt.Fprint(connection, "PING\r\n")
		if err == nil {
			_, err = connection.Read(make([]byte, 16))
		}
		stalled = err != nil
		_ = connection.Close()
	}
}

// flood sends what makes the most counters.
func flood(tally *quality.Tally, at time.Time, collector int) {
	all := quality.Traits{Client: true, Email: true, Click: true}
	send := func(name string, traits quality.Traits) {
		tally.Stored(at, tally.Observe(at, name, traits))
		tally.Duplicate(at, tally.Observe(at, name, traits))
		tally.Refused(at, name)
	}
	for i := range 100 {
		send(fmt.Sprintf("%d of %d %s", i, collector, strings.Repeat("n", 100))[:100], all)
	}
	for _, name := range []string{
		"purchase", "refund", "add_to_cart", "pageview", "begin_checkout", "add_payment_info", "add_shipping_info", "view_item",
		"view_item_list", "view_cart", "remove_from_cart", "search", "sign_up", "login", "generate_lead", "subscribe",
	} {
		for i := range 144 {
			all.Currency = fmt.Sprintf("%c%02d", 'A'+collector, (i+at.Minute())%100)
			send(name, all)
		}
	}
	tally.Refused(at, "")
	tally.Lost(at, 1)
}
