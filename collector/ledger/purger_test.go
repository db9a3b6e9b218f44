package ledger_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/collector/audit"
	"github.com/weir-dev/weir/collector/ledger"
	"github.com/weir-dev/weir/collector/redisserver"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/collector/stream"
)

// purging is a property in a Redis with an append-only file.
type purging struct {
	t      *testing.T
	server *redisserver.Server
	redis  *redis.Client
	stream *stream.Stream
	purger *ledger.Purger
	now    time.Time
}

func newPurging(t *testing.T, lines ...string) *purging {
	t.Helper()
	server := redistest.Start(t, redisserver.Options{Persist: true, Extra: append([]string{"aof-use-rdb-preamble no"}, lines...)})
	options, err := redis.ParseURL(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	client, err := stream.Dial(server.URL(), stream.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p := &purging{
		t: t, server: server, redis: redis.NewClient(options), stream: client.Stream("default", "shop"), purger: ledger.NewPurger(client), now: time.Now(),
	}
	t.Cleanup(func() {
		if err := errors.Join(client.Close(), p.redis.Close()); err != nil {
			t.Error(err)
		}
	})
	return p
}

// hide plays the deliverer that has hidden an erasure, and returns its id.
func (p *purging) hide() string {
	p.t.Helper()
	id, now := uuid.NewString(), time.Now().UnixMilli()
	pipe := p.redis.TxPipeline()
	pipe.HSet(p.t.Context(), "weir:{default/shop}:erasure:state:"+id, "hidden", now)
	pipe.ZAdd(p.t.Context(), "weir:{default/shop}:erasure:hidden", redis.Z{Score: float64(now), Member: id})
	if _, err := pipe.Exec(p.t.Context()); err != nil {
		p.t.Fatal(err)
	}
	return id
}

func (p *purging) set(name, value string) {
	p.t.Helper()
	if err := p.redis.ConfigSet(p.t.Context(), name, value).Err(); err != nil {
		p.t.Fatal(err)
	}
}

func (p *purging) look() error {
	return p.purger.Look(p.t.Context(), p.now, []*stream.Stream{p.stream})
}

func (p *purging) state(id string) stream.ErasureState {
	p.t.Helper()
	state, err := p.stream.Erasure(p.t.Context(), id)
	if err != nil {
		p.t.Fatal(err)
	}
	return state
}

// purged looks until an erasure is purged, without the time passing.
func (p *purging) purged(id string) {
	p.t.Helper()
	deadline, ticker := time.Now().Add(20*time.Second), time.NewTicker(10*time.Millisecond)
	defer ticker.Stop()
	for p.state(id).Purged.IsZero() {
		if err := p.look(); err != nil {
			p.t.Fatal(err)
		}
		if time.Now().After(deadline) {
			p.t.Fatal("the erasure is not purged")
		}
		<-ticker.C
	}
}

// rewrites is how often Redis has rewritten its file.
func (p *purging) rewrites() string {
	p.t.Helper()
	return p.redis.InfoMap(p.t.Context(), "persistence").Item("Persistence", "aof_rewrites")
}

func TestARedisRewritesItsFilesOnceAnHour(t *testing.T) {
	p := newPurging(t)
	p.purged(p.hide())
	second := p.hide()
	p.now = p.now.Add(59 * time.Minute)
	for range 3 {
		if err := p.look(); err != nil {
			t.Fatal(err)
		}
	}
	if got := p.rewrites(); got != "1" || !p.state(second).Purged.IsZero() {
		t.Errorf("%s rewritings within the hour, purged %v, want 1 and not", got, p.state(second).Purged)
	}
	p.now = p.now.Add(time.Minute)
	p.purged(second)
	if got := p.rewrites(); got != "2" {
		t.Errorf("%s rewritings, want 2", got)
	}
}

func TestWhatIsHiddenWhileFilesAreRewrittenWaitsForTheNextTime(t *testing.T) {
	p := newPurging(t)
	first := p.hide()
	if err := p.look(); err != nil {
		t.Fatal(err)
	}
	second := p.hide()
	p.purged(first)
	if at := p.state(second).Purged; !at.IsZero() {
		t.Errorf("purged at %v by a rewriting that had begun before", at)
	}
	p.now = p.now.Add(time.Hour)
	p.purged(second)
}

func TestWhatStandsInTheWayIsSaidUntilItIsMended(t *testing.T) {
	p := newPurging(t)
	p.set("aof-use-rdb-preamble", "yes")
	id := p.hide()
	for range 2 {
		if err := p.look(); !errors.Is(err, stream.ErrSnapshots) {
			t.Fatalf("error %v, want %v", err, stream.ErrSnapshots)
		}
	}
	if got := p.state(id).Unpurged; got != stream.UnpurgedSnapshots {
		t.Errorf("the state says %q, want %q", got, stream.UnpurgedSnapshots)
	}
	p.set("aof-use-rdb-preamble", "no")
	p.now = p.now.Add(time.Minute)
	p.purged(id)
	if got := p.state(id).Unpurged; got != "" {
		t.Errorf("the state still says %q", got)
	}
}

func TestARewritingThatComesToNothingIsTriedAgain(t *testing.T) {
	p := newPurging(t)
	id := p.hide()
	for attempt := 1; attempt <= 3; attempt++ {
		p.set("rdb-key-save-delay", "60000000")
		if err := p.look(); err != nil {
			t.Fatal(err)
		}
		if err := p.server.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		err := p.look()
		if said := errors.Is(err, stream.ErrRewriteFailed); said != (attempt == 3) {
			t.Errorf("attempt %d: error %v", attempt, err)
		}
		p.now = p.now.Add(time.Hour)
	}
	if got := p.state(id).Unpurged; got != stream.UnpurgedFailed {
		t.Errorf("the state says %q, want %q", got, stream.UnpurgedFailed)
	}
	p.purged(id)
}

func TestWhatIsPurgedIsWrittenDown(t *testing.T) {
	p := newPurging(t)
	var lines bytes.Buffer
	p.purger.Audit = audit.New(&lines, slog.New(slog.DiscardHandler), time.Now)
	id := p.hide()
	p.purged(id)
	if got := lines.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, `"act":"erasure.purged","property":"default/shop"`) || !strings.Contains(got, `"name":"`+id+`"`) {
		t.Errorf("written is %s", got)
	}
}

// drop plays the deliverer that has dropped a key.
func (p *purging) drop(at time.Time) {
	p.t.Helper()
	if err := p.redis.HSet(p.t.Context(), "weir:{default/shop}:seal:dropped", "device", 1, "at", at.UnixMilli()).Err(); err != nil {
		p.t.Fatal(err)
	}
}

func (p *purging) unpurged() bool {
	p.t.Helper()
	client, err := stream.Dial(p.server.URL(), stream.DialOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	work, err := client.ErasureWork(p.t.Context(), []*stream.Stream{p.stream})
	if err != nil {
		p.t.Fatal(err)
	}
	return work[0].Unpurged()
}

func TestFilesAreRewrittenHalfADayAfterTheyWereWithKeysThatAreDroppedSince(t *testing.T) {
	p := newPurging(t)
	if p.unpurged() {
		t.Error("files are to be rewritten of which no key was dropped")
	}
	p.drop(time.Now().Add(-time.Second))
	if !p.unpurged() {
		t.Fatal("files that have never been rewritten are not to be after a key was dropped")
	}
	p.rewritten()
	dropped, err := p.stream.Dropped(t.Context())
	if err != nil || !dropped.Rewritten.After(dropped.At) {
		t.Fatalf("Dropped = %+v, %v, want the rewriting noted", dropped, err)
	}
	if p.unpurged() {
		t.Error("files that are new are to be rewritten")
	}
	p.drop(time.Now().Add(time.Second))
	if p.unpurged() {
		t.Error("files are to be rewritten with every key that is dropped")
	}
	if err := p.stream.NoteRewritten(t.Context(), time.Now().Add(-12*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if !p.unpurged() {
		t.Error("files that have had a dropped key for half a day are not to be rewritten")
	}
}

// rewritten has the files rewritten, and returns when that is done.
func (p *purging) rewritten() {
	p.t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		if err := p.look(); err != nil {
			p.t.Fatal(err)
		}
		if dropped, err := p.stream.Dropped(p.t.Context()); err == nil && !dropped.Rewritten.IsZero() {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatal("the files were not rewritten")
		}
		p.now = p.now.Add(time.Second)
	}
}
