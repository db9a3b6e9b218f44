package stream

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/redisserver"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
)

const (
	sealedIP, sealedAgent, sealedClient, sealedUser = "203.0.113.77", "Agent/1.0 (nobody else's)", "client-of-one-visitor", "account-of-one-visitor"
)

// visit is an event with everything that is sealed, which can be told by its id.
func visit(id string) event.Event {
	return event.Event{
		ID: id, DeliveryID: uuid.New(), Name: event.Pageview, ClientID: sealedClient, UserID: sealedUser, Country: "CH",
		User: event.Hashes{event.EmailLower: event.Hash{7, 7, 7}}, Context: event.Context{IP: sealedIP, UserAgent: sealedAgent},
	}
}

// sealing is an addition of an event whose device is sealed, and its identity where identity says so.
func sealing(e event.Event, identity bool) Addition {
	parts := wire.Split(&e, identity)
	return Addition{Entry: parts.Entry, Sealed: parts.Sealed, EventID: e.ID, Identifiers: e.Identifiers("default/shop", nil).Packed()}
}

// seenBy is what a reader sees of each event: its id, and which of IP address, user agent and client id it has.
func seenBy(t testing.TB, reader *Stream) []string {
	t.Helper()
	var list []string
	for _, entry := range allEvents(t, reader) {
		e, err := wire.Decode(entry.Data)
		if err != nil {
			t.Fatal(err)
		}
		words := []string{e.ID}
		if e.Context.IP == sealedIP && e.Context.UserAgent == sealedAgent {
			words = append(words, "device")
		}
		if e.ClientID == sealedClient && e.UserID == sealedUser && e.Country == "CH" {
			words = append(words, "identity")
		}
		if _, somebody := e.Whose("default/shop"); !somebody {
			words = append(words, "nobody")
		}
		list = append(list, strings.Join(words, " "))
	}
	return list
}

// both opens both parts, asking Redis for every key.
func both(s *Stream) *Stream { return s.Opening(wire.Device, wire.Identity) }

func wantSeen(t testing.TB, reader *Stream, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, seenBy(t, reader)); diff != "" {
		t.Errorf("what a reader sees (-want +got):\n%s", diff)
	}
}

func TestReadersSeeWhatTheyOpen(t *testing.T) {
	s := newStream(t)
	a := newAppender(t, s, AppenderOptions{})
	mustAppend(t, a, sealing(visit("1"), false), sealing(visit("2"), true))
	for name, test := range map[string]struct {
		reader *Stream
		want   []string
	}{
		"whoever opens nothing": {s, []string{"1 identity", "2 nobody"}},
		"query":                 {s.Opening(wire.Identity), []string{"1 identity", "2 identity"}},
		"the deliverer":         {both(s), []string{"1 device identity", "2 device identity"}},
	} {
		t.Run(name, func(t *testing.T) { wantSeen(t, test.reader, test.want...) })
	}
	t.Run("by position", func(t *testing.T) {
		all := allEvents(t, s)
		entries, err := both(s).Entries(t.Context(), []Position{all[1].Position})
		if err != nil || len(entries) != 1 {
			t.Fatalf("Entries = %d, %v", len(entries), err)
		}
		if e, err := wire.Decode(entries[0].Data); err != nil || e.Context.IP != sealedIP || e.ClientID != sealedClient {
			t.Errorf("Decode = %+v, %v, want it opened", e, err)
		}
	})
	t.Run("for a platform, new, due and reclaimed", func(t *testing.T) {
		reader, ctx := both(s), t.Context()
		if _, err := reader.EnsureGroup(ctx, "meta", GroupState{}); err != nil {
			t.Fatal(err)
		}
		opened := func(deliveries []Delivery, err error) {
			t.Helper()
			if err != nil || len(deliveries) == 0 {
				t.Fatalf("%d deliveries, %v", len(deliveries), err)
			}
			for _, d := range deliveries {
				if e, err := wire.Decode(d.Data); err != nil || e.Context.IP != sealedIP || e.ClientID != sealedClient {
					t.Errorf("Decode = %+v, %v, want it opened", e, err)
				}
			}
		}
		read, err := reader.Read(ctx, "meta", "one", 10, 0)
		opened(read, err)
		held, _, err := reader.Held(ctx, "meta", "one", 0, 10)
		opened(held, err)
		claimed, _, err := reader.Reclaim(ctx, "meta", "two", 0, 10)
		opened(claimed, err)
		at := time.Now()
		if err := reader.Settle(ctx, "meta", []Settlement{{Record: Record{Event: read[0].Position, Status: Retrying, At: at}, RetryAt: at}}); err != nil {
			t.Fatal(err)
		}
		due, _, err := reader.Due(ctx, "meta", at.Add(time.Minute), time.Minute, 10)
		opened(due, err)
	})
}

func TestAKeyIsAskedForOnceAPeriod(t *testing.T) {
	s, clock := newStreamAt(t, time.Date(2026, 11, 20, 10, 59, 0, 0, time.UTC))
	a := newAppender(t, s, AppenderOptions{})
	for i, step := range []struct {
		passes         time.Duration
		calls          int64
		devices, whose int64
	}{
		{0, 3, 1, 1}, // one for each part
		{0, 1, 1, 1},
		{30 * time.Second, 1, 1, 1},
		{time.Minute, 4, 2, 1}, // the first is refused
		{0, 1, 2, 1},
		{24 * time.Hour, 4, 3, 2},
	} {
		clock.advance(step.passes)
		before := calls(t, s)
		mustAppend(t, a, sealing(visit(fmt.Sprint(i)), true))
		if n := calls(t, s) - before; n != step.calls {
			t.Errorf("event %d took %d calls of functions, want %d", i, n, step.calls)
		}
		devices, whose := s.redis.HLen(t.Context(), s.keys.seal(wire.Device)).Val(), s.redis.HLen(t.Context(), s.keys.seal(wire.Identity)).Val()
		if devices != step.devices || whose != step.whose {
			t.Errorf("after event %d there are keys of %d hours and %d days, want %d and %d", i, devices, whose, step.devices, step.whose)
		}
	}
	for _, line := range seenBy(t, both(s)) {
		if !strings.HasSuffix(line, " device identity") {
			t.Errorf("an event is read as %q", line)
		}
	}
}

// calls is how many functions were called.
func calls(t *testing.T, s *Stream) int64 {
	t.Helper()
	stats := s.redis.Info(t.Context(), "commandstats").Val()
	_, after, _ := strings.Cut(stats, "cmdstat_fcall:calls=")
	digits, _, _ := strings.Cut(after, ",")
	n, _ := strconv.ParseInt(digits, 10, 64)
	return n
}

func TestCollectorsThatBeginAtOnceShareAKey(t *testing.T) {
	address := redistest.URL(t)
	s := dial(t, address).Stream("default", "shop")
	var all sync.WaitGroup
	for i := range 12 {
		a := newAppender(t, dial(t, address).Stream("default", "shop"), AppenderOptions{})
		all.Go(func() {
			for n := range 5 {
				if _, err := a.Append(t.Context(), []Addition{sealing(visit(fmt.Sprint(i, "-", n)), true)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	list := seenBy(t, both(s))
	if len(list) != 60 {
		t.Errorf("%d events are stored, want 60", len(list))
	}
	for _, line := range list {
		if !strings.HasSuffix(line, " device identity") {
			t.Errorf("an event is read as %q, want it opened", line)
		}
	}
}

// TestNoEventIsAcknowledgedWhoseKeyIsLost takes keys from Redis as a restore does that ends between a key and the next event.
func TestNoEventIsAcknowledgedWhoseKeyIsLost(t *testing.T) {
	for name, test := range map[string]struct {
		lose func(t *testing.T, s *Stream)
		want []string
	}{
		"the device's keys are gone": {func(t *testing.T, s *Stream) {
			s.redis.Del(t.Context(), s.keys.seal(wire.Device))
		}, []string{"before identity", "after device identity"}},
		"all keys are gone": {func(t *testing.T, s *Stream) {
			s.redis.Del(t.Context(), s.keys.seal(wire.Device), s.keys.seal(wire.Identity))
		}, []string{"before nobody", "after device identity"}},
		"Redis is empty": {func(t *testing.T, s *Stream) { s.redis.FlushAll(t.Context()) }, []string{"after device identity"}},
		"another collector has made other keys since": {func(t *testing.T, s *Stream) {
			s.redis.Del(t.Context(), s.keys.seal(wire.Device), s.keys.seal(wire.Identity))
			other := newAppender(t, s, AppenderOptions{})
			mustAppend(t, other, sealing(visit("other"), true))
		}, []string{"before nobody", "other device identity", "after device identity"}},
		"somebody has written what is no key": {func(t *testing.T, s *Stream) {
			for _, part := range []wire.Part{wire.Device, wire.Identity} {
				for _, period := range s.redis.HKeys(t.Context(), s.keys.seal(part)).Val() {
					s.redis.HSet(t.Context(), s.keys.seal(part), period, strings.Repeat("x", 1<<20))
				}
			}
		}, []string{"before nobody", "after device identity"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStream(t)
			a := newAppender(t, s, AppenderOptions{})
			reader := both(s)
			mustAppend(t, a, sealing(visit("before"), true))
			wantSeen(t, reader, "before device identity")
			test.lose(t, s)
			mustAppend(t, a, sealing(visit("after"), true))
			wantSeen(t, both(s), test.want...)
			// A reader that holds the lost keys notices too.
			if list := seenBy(t, reader); list[len(list)-1] != "after device identity" {
				t.Errorf("a reader of before sees %q", list)
			}
		})
	}
}

func TestKeysGoWhenTheirTimeIsUp(t *testing.T) {
	start := time.Date(2026, 11, 20, 10, 30, 0, 0, time.UTC)
	s, clock := newStreamAt(t, start)
	a := newAppender(t, s, AppenderOptions{})
	mustAppend(t, a, sealing(visit("1"), true))
	clock.advance(time.Hour)
	mustAppend(t, a, sealing(visit("2"), true))
	clock.advance(day)
	mustAppend(t, a, sealing(visit("3"), true))
	const hours, days = 72 * time.Hour, 10 * day
	midnight := start.Truncate(day)
	for _, step := range []struct {
		at         time.Time
		devices    time.Duration // after midnight; -1 for none
		identities time.Duration
		want       []string
	}{
		{start.Add(day + time.Hour), -1, -1, []string{"1 device identity", "2 device identity", "3 device identity"}},
		{start.Add(hours + 29*time.Minute), 10 * time.Hour, -1, []string{"1 device identity", "2 device identity", "3 device identity"}},
		{start.Add(hours + 30*time.Minute), 11 * time.Hour, -1, []string{"1 identity", "2 device identity", "3 device identity"}},
		{start.Add(hours + 90*time.Minute), 12 * time.Hour, -1, []string{"1 identity", "2 identity", "3 device identity"}},
		{midnight.Add(days + day - time.Second), 7*day + 23*time.Hour, -1, []string{"1 identity", "2 identity", "3 identity"}},
		{midnight.Add(days + day), 8 * day, day, []string{"1 nobody", "2 nobody", "3 identity"}},
		{midnight.Add(days + 2*day), 9 * day, 2 * day, []string{"1 nobody", "2 nobody", "3 nobody"}},
	} {
		clock.set(step.at)
		if _, err := s.DropKeys(t.Context(), hours, days); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.want, seenBy(t, both(s))); diff != "" {
			t.Errorf("at %s a reader sees (-want +got):\n%s", step.at, diff)
		}
		dropped, err := s.Dropped(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if want := midnight.Add(step.devices); step.devices >= 0 && !dropped.Devices.Equal(want) {
			t.Errorf("at %s devices are dropped before %s, want %s", step.at, dropped.Devices, want)
		}
		if want := midnight.Add(step.identities); step.identities >= 0 && !dropped.Identities.Equal(want) {
			t.Errorf("at %s identities are dropped before %s, want %s", step.at, dropped.Identities, want)
		}
	}
	dropped, err := s.Dropped(t.Context())
	if err != nil || !dropped.At.Equal(clock.at) || !dropped.Rewritten.IsZero() {
		t.Errorf("Dropped = %+v, %v, want the last at %s and no rewrite", dropped, err, clock.at)
	}
	if err := s.NoteRewritten(t.Context(), clock.at.Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	if dropped, err = s.Dropped(t.Context()); err != nil || !dropped.Rewritten.Equal(clock.at.Add(time.Second)) {
		t.Errorf("Dropped = %+v, %v, want the rewrite noted", dropped, err)
	}
}

// TestAClockThatJumpsDropsNoKey turns Redis's clock between looks of the deliverer.
func TestAClockThatJumpsDropsNoKey(t *testing.T) {
	for name, jump := range map[string]time.Duration{
		"ahead by 12 days": 12 * day, "ahead by 70 days": 70 * day, "back by 12 days": -12 * day, "ahead by half an hour": 30 * time.Minute,
	} {
		for _, looks := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, seen %v", name, looks), func(t *testing.T) {
				address := redistest.URL(t)
				s, server := dial(t, address).Stream("default", "shop"), redistest.TurnClock(t, address)
				clock, a := realClock(s), newAppender(t, s, AppenderOptions{})
				look := func() {
					t.Helper()
					if _, err := clock.Look(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				drop := func() {
					t.Helper()
					if went, err := s.DropKeys(t.Context(), 72*time.Hour, 10*day); err != nil || went != 0 {
						t.Errorf("DropKeys = %d, %v, want none", went, err)
					}
				}
				look()
				mustAppend(t, a, sealing(visit("before"), true))
				server.Ahead(jump)
				if looks {
					look()
				}
				mustAppend(t, a, sealing(visit("meanwhile"), true))
				drop()
				server.Ahead(0)
				look()
				mustAppend(t, a, sealing(visit("after"), true))
				drop()
				wantSeen(t, both(s), "before device identity", "meanwhile device identity", "after device identity")
			})
		}
	}
}

// TestARaisedAgeLeavesNoKeyBehind drops with one age, then with a greater one, then with the first again.
func TestARaisedAgeLeavesNoKeyBehind(t *testing.T) {
	start := time.Date(2026, 11, 20, 10, 30, 0, 0, time.UTC)
	s, clock := newStreamAt(t, start)
	a := newAppender(t, s, AppenderOptions{})
	drop := func(device time.Duration, want int64) {
		t.Helper()
		if went, err := s.DropKeys(t.Context(), device, 62*day); err != nil || went != want {
			t.Errorf("DropKeys = %d, %v, want %d", went, err, want)
		}
	}
	drop(time.Hour, 0)
	for i := range 5 {
		mustAppend(t, a, sealing(visit(fmt.Sprint(i)), true))
		clock.advance(time.Hour)
	}
	drop(time.Hour, 4) // of 10 to 13 o'clock; it is 15:30
	drop(48*time.Hour, 0)
	clock.advance(-2 * time.Hour)
	drop(48*time.Hour, 0)
	clock.advance(20 * day)
	drop(48*time.Hour, 1)
	if n := s.redis.HLen(t.Context(), s.keys.seal(wire.Device)).Val(); n != 0 {
		t.Errorf("%d keys are left", n)
	}
}

func TestAReaderWithoutKeysReadsNothingRatherThanHalf(t *testing.T) {
	s, ctx := newStream(t), t.Context()
	a := newAppender(t, s, AppenderOptions{})
	mustAppend(t, a, sealing(visit("1"), true))
	if _, err := s.EnsureGroup(ctx, "meta", GroupState{}); err != nil {
		t.Fatal(err)
	}
	keys := s.redis.HGetAll(ctx, s.keys.seal(wire.Device)).Val()
	s.redis.Del(ctx, s.keys.seal(wire.Device))
	s.redis.Set(ctx, s.keys.seal(wire.Device), "of another type", 0)
	reader := both(s)
	if read, err := reader.Read(ctx, "meta", "one", 10, 0); err == nil || len(read) > 0 {
		t.Errorf("Read = %d, %v, want an error", len(read), err)
	}
	if read, err := reader.ReadEvents(ctx, 0, 10, 0); err == nil || len(read) > 0 {
		t.Errorf("ReadEvents = %d, %v, want an error", len(read), err)
	}
	s.redis.Del(ctx, s.keys.seal(wire.Device))
	s.redis.HSet(ctx, s.keys.seal(wire.Device), keys)
	claimed, _, err := reader.Reclaim(ctx, "meta", "one", 0, 10)
	if err != nil || len(claimed) != 1 {
		t.Fatalf("Reclaim = %d, %v, want the event again", len(claimed), err)
	}
	if e, err := wire.Decode(claimed[0].Data); err != nil || e.Context.IP != sealedIP {
		t.Errorf("Decode = %+v, %v, want it opened", e, err)
	}
}

func TestAHeldKeyIsForgottenAfterAMinute(t *testing.T) {
	s := newStream(t)
	a := newAppender(t, s, AppenderOptions{})
	mustAppend(t, a, sealing(visit("1"), true))
	reader := both(s)
	wantSeen(t, reader, "1 device identity")
	s.redis.Del(t.Context(), s.keys.seal(wire.Device))
	for of, key := range reader.opener.held {
		key.until = time.Now() // as a minute later
		reader.opener.held[of] = key
	}
	wantSeen(t, reader, "1 identity")
}

// TestAPersonIsMaskedWhereTheIdentityIsSealed joins identifiers, so that entries name a person other than their default.
func TestAPersonIsMaskedWhereTheIdentityIsSealed(t *testing.T) {
	s := newStream(t)
	a := newAppender(t, s, AppenderOptions{})
	browsing := event.Event{ID: "1", DeliveryID: uuid.New(), Name: event.Pageview, ClientID: sealedClient}
	paying := event.Event{
		ID: "2", DeliveryID: uuid.New(), Name: event.Purchase, ClientID: sealedClient, User: event.Hashes{event.EmailLower: event.Hash{7}},
	}
	writing := event.Event{ID: "3", DeliveryID: uuid.New(), Name: "lead", User: event.Hashes{event.EmailLower: event.Hash{7}}}
	for _, e := range []event.Event{browsing, paying, writing} {
		mustAppend(t, a, sealing(e, true))
	}
	want, _ := browsing.Whose("default/shop")
	for i, entry := range allEvents(t, both(s)) {
		e, err := wire.Decode(entry.Data)
		if err != nil {
			t.Fatal(err)
		}
		if person, _ := e.Whose("default/shop"); person != want {
			t.Errorf("event %d is %s's, want %s's", i+1, person, want)
		}
	}
	for i, entry := range allEvents(t, s) {
		if bytes.Contains(entry.Data, want[:]) {
			t.Errorf("event %d has its person in the clear", i+1)
		}
	}
}

// TestNoFileOfRedisOpensWhatIsDropped looks through all files of a Redis: never for what was sealed, and after a rewrite for no
// key that was dropped.
func TestNoFileOfRedisOpensWhatIsDropped(t *testing.T) {
	dir := t.TempDir()
	server := redistest.Start(t, redisserver.Options{Dir: dir, Persist: true, Fsync: redisserver.FsyncAlways, Extra: []string{"rdbcompression no"}})
	s, ctx := dial(t, server.URL()).Stream("default", "shop"), t.Context()
	clock := newClock(t, server.URL(), time.Date(2026, 11, 20, 10, 30, 0, 0, time.UTC))
	const days = 10 * day
	a := newAppender(t, s, AppenderOptions{JoinedFor: days * 2 / 3})
	first := visit("")
	person, _ := first.Whose("default/shop")
	hash := first.User.Get(event.EmailLower)
	plain := map[string][]byte{
		"IP address": []byte(sealedIP), "user agent": []byte(sealedAgent), "client id": []byte(sealedClient), "user id": []byte(sealedUser),
		"hash": hash[:],
	}
	for i := range 50 {
		mustAppend(t, a, sealing(visit(fmt.Sprint(i)), true))
	}
	secrets := map[string][]byte{}
	for _, part := range []wire.Part{wire.Device, wire.Identity} {
		for _, stored := range s.redis.HGetAll(ctx, s.keys.seal(part)).Val() {
			secrets["key of "+part.String()] = []byte(stored[keyNameSize:])
		}
	}
	rewrite := func() {
		t.Helper()
		if err := s.redis.BgRewriteAOF(ctx).Err(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the rewrite", func() bool {
			info := s.redis.Info(ctx, "persistence").Val()
			return strings.Contains(info, "aof_rewrite_in_progress:0") && strings.Contains(info, "aof_rewrite_scheduled:0")
		})
	}
	if found := inFiles(t, dir, secrets); len(found) != 2 {
		t.Fatalf("the files have %v, want both keys: the test looks in the wrong place", found)
	}
	if found := inFiles(t, dir, plain); len(found) > 0 {
		t.Errorf("the files have %v", found)
	}
	clock.advance(12 * day)
	if went, err := s.DropKeys(ctx, 72*time.Hour, days); err != nil || went != 2 {
		t.Fatalf("DropKeys = %d, %v, want both keys", went, err)
	}
	if _, err := s.Trim(ctx, TrimPolicy{}); err != nil { // which has who is who go
		t.Fatal(err)
	}
	plain["person"] = person[:]
	rewrite()
	if found := inFiles(t, dir, secrets); len(found) > 0 {
		t.Errorf("after the rewrite the files still have %v", found)
	}
	if found := inFiles(t, dir, plain); len(found) > 0 {
		t.Errorf("after the rewrite the files have %v", found)
	}
	for _, line := range seenBy(t, both(s)) {
		if !strings.HasSuffix(line, " nobody") {
			t.Errorf("an event is read as %q, want nobody's", line)
		}
	}
}

// inFiles names what stands in a file below a directory.
func inFiles(t *testing.T, dir string, what map[string][]byte) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		for name, text := range what {
			if bytes.Contains(content, text) {
				found = append(found, name+" in "+filepath.Base(path))
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
