package deliver

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weir-dev/weir/collector/stream"
)

// Which of the events that wait are tried soon when the Secret or the Property has changed.
func TestWhatIsTriedSoonAfterAChange(t *testing.T) {
	timing := defaultTiming()
	waits := map[string]struct {
		lasts time.Duration
		soon  bool
	}{
		"refused, for two minutes":               {2 * time.Minute, true},
		"refused, for as long as the backoff is": {timing.backoff.cap - time.Second, true},
		"leased by who is just sending it":       {timing.lease, false},
		"asked for by the platform, for an hour": {time.Hour, false},
	}
	h := newHarness(t, console)
	if _, err := h.stream.EnsureGroup(t.Context(), "console", stream.GroupState{}); err != nil {
		t.Fatal(err)
	}
	of := map[stream.Position]string{}
	for name, wait := range waits {
		position := h.accept(pageview)
		of[position] = name
		h.take("console")
		delivery := stream.Delivery{Entry: stream.Entry{Position: position}, Attempts: 3}
		if err := h.stream.Postpone(t.Context(), "console", []stream.Delivery{delivery}, time.Now().Add(wait.lasts)); err != nil {
			t.Fatal(err)
		}
	}
	r := retrier{queue: &queue{stream: h.stream, platform: "console", timing: timing, now: time.Now}}
	if !r.hasten(t.Context()) {
		t.Fatal("it gave up")
	}
	var want, got []string
	for name, wait := range waits {
		if wait.soon {
			want = append(want, name)
		}
	}
	due, _, err := h.stream.Due(t.Context(), "console", time.Now().Add(timing.lease/2), timing.lease, 10)
	if err != nil {
		t.Fatal(err)
	}
	for _, delivery := range due {
		got = append(got, of[delivery.Position])
		if delivery.Attempts != 3 {
			t.Errorf("%s: %d attempts, want 3", of[delivery.Position], delivery.Attempts)
		}
	}
	if diff := cmp.Diff(want, got, cmpopts.SortSlices(func(a, b string) bool { return a < b })); diff != "" {
		t.Errorf("tried soon (-want +got):\n%s", diff)
	}
}

// An event whose backoff has become long is delivered soon after the credential was mended.
func TestAMendedCredentialIsUsedAtOnceForWhatWasRefused(t *testing.T) {
	hook := newReceiver(t, always(answer{status: 401}))
	h := newHarness(t, hook.platform("crm"))
	minutes := func(e *Engine) {
		e.timing.backoff = backoff{unit: 5 * time.Minute, cap: 10 * time.Minute, floor: 5 * time.Minute}
	}
	position := h.accept(pageview)
	first := h.start("one", minutes)
	h.eventually("crm", one(position, record{"retrying", 1, "unauthorized"}))
	first.stop()
	hook.setFailure(nil)
	h.start("one", func(e *Engine) {
		minutes(e)
		e.options.Changed = true
	})
	h.eventually("crm", one(position, record{"delivered", 2, ""}))
}

// No call hastens so many that they would all come at one time.
func TestWhatIsHastenedIsSpread(t *testing.T) {
	timing := defaultTiming()
	h := newHarness(t, console)
	if _, err := h.stream.EnsureGroup(t.Context(), "console", stream.GroupState{}); err != nil {
		t.Fatal(err)
	}
	fill(t, h, 1000)
	taken, err := h.stream.Read(t.Context(), "console", "dead", 1000, 0)
	if err != nil || len(taken) != 1000 {
		t.Fatalf("read %d: %v", len(taken), err)
	}
	if err := h.stream.Postpone(t.Context(), "console", taken, time.Now().Add(5*time.Minute)); err != nil {
		t.Fatal(err)
	}
	r := retrier{queue: &queue{stream: h.stream, platform: "console", timing: timing, now: time.Now}}
	if !r.hasten(t.Context()) {
		t.Fatal("it gave up")
	}
	start, counts := time.Now(), []int{}
	for at := time.Duration(0); at <= timing.lease/2; at += 10 * time.Millisecond {
		due, _, err := h.stream.Due(t.Context(), "console", start.Add(at), time.Hour, 1000)
		if err != nil {
			t.Fatal(err)
		}
		if len(due) > 0 {
			counts = append(counts, len(due))
		}
	}
	total := 0
	for _, n := range counts {
		total += n
	}
	if total != 1000 || len(counts) < 3 || slices.Max(counts) > 500 {
		t.Errorf("due at a time: %v, want 1000 spread over %s", counts, timing.lease/2)
	}
}
