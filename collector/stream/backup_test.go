package stream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
)

// shopEvent is an event as it is stored, of an id, a visitor and for purchases of an order.
func shopEvent(id, order, client string) Addition {
	e := event.Event{ID: id, DeliveryID: uuid.New(), Name: "page_view", ClientID: client, Platforms: []string{"meta", "ga4"}}
	if order != "" {
		e.Name, e.OrderID = event.Purchase, order
		e.UserID = "user of " + client
	}
	e.Context.IP = "192.0.2.1"
	addition := sealing(e, true)
	addition.OrderID = order
	return addition
}

// backedUp returns the pieces of a backup.
func backedUp(t testing.TB, s *Stream) []Piece {
	t.Helper()
	var pieces []Piece
	err := s.Backup(t.Context(), &BackupProgress{}, func(p *Piece) error { pieces = append(pieces, *p); return nil })
	if err != nil {
		t.Fatal(err)
	}
	return pieces
}

// putBack restores pieces into the property of another Redis.
func putBack(t testing.TB, s *Stream, pieces []Piece) error {
	t.Helper()
	r, err := s.BeginRestore(t.Context(), "backup", time.Now())
	if err != nil {
		return err
	}
	for i := range pieces {
		if err := r.Put(t.Context(), int64(i), &pieces[i]); err != nil {
			return err
		}
	}
	return r.Publish(t.Context())
}

// contents are what Redis has of a property, in words, by key.
func contents(t testing.TB, s *Stream) map[string]string {
	t.Helper()
	ctx := context.Background()
	all := map[string]string{}
	for _, key := range s.redis.Keys(ctx, s.keys.pattern()).Val() {
		name := s.keys.within(key)
		switch kind := s.redis.Type(ctx, key).Val(); kind {
		case "string":
			all[name] = s.redis.Get(ctx, key).Val()
		case "hash":
			all[name] = fmt.Sprintf("%q", s.redis.HGetAll(ctx, key).Val())
		case "zset":
			all[name] = fmt.Sprint(s.redis.ZRangeWithScores(ctx, key, 0, -1).Val())
		case "stream":
			var words strings.Builder
			info, err := s.redis.XInfoStream(ctx, key).Result()
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintln(&words, s.redis.XRange(ctx, key, "-", "+").Val())
			if name == "events" || name == "deliveries" || name == "erasure:ledger" {
				fmt.Fprintln(&words, info.LastGeneratedID, info.EntriesAdded, info.MaxDeletedEntryID)
			}
			for _, group := range s.redis.XInfoGroups(ctx, key).Val() {
				fmt.Fprintln(&words, group.Name, group.LastDeliveredID, group.EntriesRead, group.Lag, group.Pending)
				for _, one := range s.redis.XPendingExt(ctx, &redis.XPendingExtArgs{Stream: key, Group: group.Name, Start: "-", End: "+", Count: 100}).Val() {
					fmt.Fprintln(&words, one.ID, one.Consumer, one.RetryCount)
				}
			}
			all[name] = words.String()
		default:
			t.Fatalf("key %s is a %s", key, kind)
		}
		if left := s.redis.PTTL(ctx, key).Val(); left > 0 {
			all[name] += " until " + s.redis.PExpireTime(ctx, key).Val().String()
		}
	}
	return all
}

// left out of backups are what lives for minutes, who has what under way, what may stay for less than a day, and counts.
func without(all map[string]string, prefixes ...string) map[string]string {
	for name := range all {
		if slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			delete(all, name)
		}
	}
	return all
}

var leftOut = []string{"batches:", "rate", "clock", "paused:", "shadow:", "replay:", "test:", "platforms", "erasure:lock", "import:", "counts:"}

// full returns a property that has something under every key.
func full(t testing.TB) *Stream {
	t.Helper()
	s := newStream(t)
	ctx := t.Context()
	a := newAppender(t, s, AppenderOptions{})
	for i := range 40 {
		mustAppend(t, a, shopEvent(fmt.Sprint("id-", i), fmt.Sprint("order-", i), fmt.Sprint("client-", i%7)))
	}
	for _, platform := range []string{"meta", "ga4"} {
		if _, err := s.EnsureGroup(ctx, platform, GroupState{}); err != nil {
			t.Fatal(err)
		}
		taken, err := s.Read(ctx, platform, "pod-1", 20, 0)
		if err != nil {
			t.Fatal(err)
		}
		settle := []Settlement{}
		for i, d := range taken[:10] {
			one := Settlement{Record: Record{Event: d.Position, Platform: platform, Status: Delivered, Attempts: 1, At: time.Now()}}
			if i%3 == 0 {
				one.Status, one.RetryAt = Retrying, time.Now().Add(time.Hour)
				one.Ticket = Ticket{ID: "ticket", At: time.Now()}
			}
			if i == 1 {
				value := int64(1000)
				one.Order = &OrderChange{Key: OrderKey{ID: "order-1"}, Purchase: &Purchase{State: OrderDelivered, Value: &value, Currency: "EUR", At: time.Now(), Target: "x"}}
			}
			settle = append(settle, one)
		}
		if err := s.Settle(ctx, platform, settle); err != nil {
			t.Fatal(err)
		}
	}
	at := time.Now().Add(time.Hour)
	k := s.keys
	for _, err := range []error{
		s.redis.HSet(ctx, k.sealDropped(), "device", "0").Err(), s.redis.HSet(ctx, k.archive(), "epoch", "3").Err(),
		s.redis.XAdd(ctx, entry(k.rejections(), "1-1", "r", "{}")).Err(), s.redis.PExpireAt(ctx, k.rejections(), at).Err(),
		s.redis.XAdd(ctx, entry(k.erasureRequests(), "1-1", "r", "{}")).Err(), s.redis.XAdd(ctx, entry(k.erasureLedger(), "1-1", "l", "\x00")).Err(),
		s.redis.HSet(ctx, k.erasureState("one"), "requested", "1").Err(), s.redis.PExpireAt(ctx, k.erasureState("one"), at).Err(),
		s.redis.ZAdd(ctx, k.openErasures(), redis.Z{Member: "one", Score: 1}).Err(), s.redis.ZAdd(ctx, k.hiddenErasures(), redis.Z{Member: "two", Score: 2}).Err(),
		s.redis.ZAdd(ctx, k.usedKeys(), redis.Z{Member: "\x01", Score: 1}).Err(), s.redis.ZAdd(ctx, k.usedTokens(), redis.Z{Member: "\x02", Score: 1700000000000001}).Err(),
		s.redis.ZAdd(ctx, k.due("meta"), redis.Z{Member: "1-1", Score: 5}).Err(), s.redis.HSet(ctx, k.attempts("meta"), "1-1", "2:17h 3 ticket").Err(),
		s.redis.Set(ctx, k.source("shopify"), "17", time.Hour).Err(), s.redis.Set(ctx, k.writer("meta"), "pod 1 file", time.Hour).Err(),
		s.redis.HSet(ctx, k.prefix+"counts:hour:001", "page_view", 1).Err(),
		s.redis.Set(ctx, k.paused("meta"), "x", time.Hour).Err(), s.redis.ZAdd(ctx, k.shadow("meta"), redis.Z{Member: "x"}).Err(),
		s.redis.XDel(ctx, k.events(), s.redis.XRange(ctx, k.events(), "-", "+").Val()[30].ID).Err(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func entry(key, id, field, value string) *redis.XAddArgs {
	return &redis.XAddArgs{Stream: key, ID: id, Values: []any{field, value}}
}

func TestARestoredPropertyHasWhatItHad(t *testing.T) {
	t.Parallel()
	s := full(t)
	want := without(contents(t, s), leftOut...)
	other := newStream(t)
	if err := putBack(t, other, backedUp(t, s)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, contents(t, other)); diff != "" {
		t.Errorf("the restored property is another (-was +is):\n%s", diff)
	}
	if len(want) < 25 {
		t.Errorf("only %d keys were compared", len(want))
	}
}

func TestAllKeysAreBackedUpOrLeftOutKnowingly(t *testing.T) {
	t.Parallel()
	s := full(t)
	pieces := backedUp(t, s)
	for name := range contents(t, s) {
		there := slices.ContainsFunc(pieces, func(p Piece) bool { return p.Key == name })
		out := slices.ContainsFunc(leftOut, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
		if there == out {
			t.Errorf("key %s: backed up: %t, left out: %t", name, there, out)
		}
	}
}

func mustBegin(t testing.TB, s *Stream, backup string) *Restore {
	t.Helper()
	r, err := s.BeginRestore(t.Context(), backup, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func mustEnsure(t testing.TB, s *Stream) {
	t.Helper()
	if _, err := s.EnsureGroup(t.Context(), "meta", GroupState{}); err != nil {
		t.Fatal(err)
	}
}

func TestARestoreIsRefused(t *testing.T) {
	t.Parallel()
	pieces := backedUp(t, full(t))
	tests := map[string]struct {
		// before is done to the property before, meanwhile when everything is written and nothing has its name.
		before, meanwhile func(t *testing.T, s *Stream)
		want              error
	}{
		"a property that has events": {before: func(t *testing.T, s *Stream) { fill(t, s, 1) }, want: ErrNotEmpty},
		"one whose only event is gone": {before: func(t *testing.T, s *Stream) {
			s.redis.XDel(t.Context(), s.keys.events(), fill(t, s, 1)[0].String())
		}, want: ErrNotEmpty},
		"one that receives an event meanwhile":           {meanwhile: func(t *testing.T, s *Stream) { fill(t, s, 1) }, want: ErrNotEmpty},
		"one that somebody else begins to restore":       {meanwhile: func(t *testing.T, s *Stream) { mustBegin(t, s, "another") }, want: ErrRestoring},
		"but one that has groups without events is fine": {before: func(t *testing.T, s *Stream) { mustEnsure(t, s) }},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStream(t)
			if tt.before != nil {
				tt.before(t, s)
			}
			r, err := s.BeginRestore(t.Context(), "backup", time.Now())
			for i := range pieces {
				if err == nil {
					err = r.Put(t.Context(), int64(i), &pieces[i])
				}
			}
			if tt.meanwhile != nil {
				tt.meanwhile(t, s)
			}
			if err == nil {
				err = r.Publish(t.Context())
			}
			if !errors.Is(err, tt.want) {
				t.Errorf("error %v, want %v", err, tt.want)
			}
			if n := s.redis.XLen(t.Context(), s.keys.events()).Val(); tt.want != nil && n > 1 {
				t.Errorf("the property has %d events", n)
			}
			if err := s.DiscardRestore(t.Context()); err != nil {
				t.Fatal(err)
			}
			for name := range contents(t, s) {
				if strings.HasPrefix(name, "restor") {
					t.Errorf("%s is left", name)
				}
			}
		})
	}
}

func TestAClockThatIsFarOffKeepsFromRestoring(t *testing.T) {
	t.Parallel()
	s := newStream(t)
	if _, err := s.BeginRestore(t.Context(), "backup", time.Now().Add(-2*time.Hour)); !errors.Is(err, ErrClock) {
		t.Errorf("error %v, want %v", err, ErrClock)
	}
}

func TestAClusterIsBackedUpAndRestoredLikeOneServer(t *testing.T) {
	t.Parallel()
	s := full(t)
	want := without(contents(t, s), leftOut...)
	cluster := redistest.StartCluster(t)
	first := dial(t, cluster.URL).Stream("default", "shop")
	if err := putBack(t, first, backedUp(t, s)); err != nil {
		t.Fatal(err)
	}
	pieces := backedUp(t, first)
	other := newStream(t)
	if err := putBack(t, other, pieces); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, contents(t, other)); diff != "" {
		t.Errorf("by way of a cluster the property is another (-was +is):\n%s", diff)
	}
	found, err := (&Client{redis: first.redis}).Properties(t.Context())
	if err != nil || !slices.Equal(found, []string{"default/shop"}) {
		t.Errorf("the cluster has %v, %v", found, err)
	}
}
