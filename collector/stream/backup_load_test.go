package stream

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// idsIn returns the ids of the events that a property has, in order.
func idsIn(t testing.TB, s *Stream) []string {
	t.Helper()
	var ids []string
	for _, entry := range allEvents(t, s) {
		ids = append(ids, entry.Position.String())
	}
	return ids
}

// Each step of a backup is followed by an append and a delivery, and what is restored is of one moment all the same.
func TestABackupIsOfOneMoment(t *testing.T) {
	t.Parallel()
	s := full(t)
	want := without(contents(t, s), leftOut...)
	a := newAppender(t, s, AppenderOptions{})
	var pieces []Piece
	err := s.Backup(t.Context(), &BackupProgress{}, func(p *Piece) error {
		n := len(pieces)
		pieces = append(pieces, *p)
		if !slices.ContainsFunc(pieces, func(p Piece) bool { return p.Kind == PieceCut }) {
			return nil // it is handed on behind the cut
		}
		mustAppend(t, a, shopEvent(fmt.Sprint("later-", n), fmt.Sprint("later order-", n), "client-1"))
		taken, err := s.Read(t.Context(), "meta", "pod-2", 1, 0)
		if err != nil || len(taken) == 0 {
			return err
		}
		return s.Settle(t.Context(), "meta", []Settlement{{Record: Record{Event: taken[0].Position, Platform: "meta", Status: Delivered, Attempts: 1, At: time.Now()}}})
	})
	if err != nil {
		t.Fatal(err)
	}
	if now := len(idsIn(t, s)); now < 45 {
		t.Fatalf("the property has %d events: nothing came meanwhile", now)
	}
	other := newStream(t)
	if err := putBack(t, other, pieces); err != nil {
		t.Fatal(err)
	}
	// Who is who may be known better than at the cut.
	joins := []string{"join:"}
	if diff := cmp.Diff(without(want, joins...), without(contents(t, other), joins...)); diff != "" {
		t.Errorf("the restored property is not that of the cut (-was +is):\n%s", diff)
	}
	b := newAppender(t, other, AppenderOptions{})
	for name, tt := range map[string]struct {
		id, order string
		repeated  bool
	}{
		"an event of before the cut is not stored again":           {"id-3", "", true},
		"neither is an order of before":                            {"another", "order-3", true},
		"an event that the backup does not have can be sent again": {fmt.Sprint("later-", len(pieces)-2), fmt.Sprint("later order-", len(pieces)-2), false},
	} {
		if added := mustAppend(t, b, shopEvent(tt.id, tt.order, "client-2")); added[0].Duplicate != tt.repeated {
			t.Errorf("%s: %+v", name, added)
		}
	}
}

func TestABackupThatWasBrokenOffGoesOnWithTheSameMoment(t *testing.T) {
	t.Parallel()
	s := full(t)
	want := without(contents(t, s), leftOut...)
	whole := backedUp(t, s)
	cut := slices.IndexFunc(whole, func(p Piece) bool { return p.Kind == PieceCut })
	broken := errors.New("broken off")
	for after := cut + 1; after < len(whole); after += 4 {
		pieces := slices.Clone(whole[:cut+1])
		var progress BackupProgress
		for i := range pieces {
			if err := progress.Note(&pieces[i]); err != nil {
				t.Fatal(err)
			}
		}
		emit := func(p *Piece) error {
			if len(pieces) == after {
				return broken
			}
			pieces = append(pieces, *p)
			return nil
		}
		if err := s.Backup(t.Context(), &progress, emit); !errors.Is(err, broken) {
			t.Fatalf("after %d pieces: %v", after, err)
		}
		mustAppend(t, newAppender(t, s, AppenderOptions{}), shopEvent(fmt.Sprint("later-", after), "", "client-9"))
		var again BackupProgress
		for i := range pieces {
			if err := again.Note(&pieces[i]); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Backup(t.Context(), &again, func(p *Piece) error { pieces = append(pieces, *p); return nil }); err != nil {
			t.Fatalf("after %d pieces: %v", after, err)
		}
		other := newStream(t)
		if err := putBack(t, other, pieces); err != nil {
			t.Fatalf("after %d pieces: %v", after, err)
		}
		if diff := cmp.Diff(without(want, "join:"), without(contents(t, other), "join:")); diff != "" {
			t.Errorf("broken off after %d pieces (-was +is):\n%s", after, diff)
		}
	}
}

func TestABackupDoesNotHaveWhoIsErasedMeanwhile(t *testing.T) {
	t.Parallel()
	s := full(t)
	var doomed Position
	for _, entry := range allEvents(t, s)[:5] {
		doomed = entry.Position
	}
	tests := map[string]func() error{
		"an event that is erased": func() error {
			return s.EraseEvents(t.Context(), []ErasedEvent{{Position: doomed, EventID: "id-4", Erasures: []string{"one"}}})
		},
		"an erasure that is finished": func() error {
			return s.redis.ZRem(t.Context(), s.keys.openErasures(), "one").Err()
		},
	}
	for _, name := range []string{"an event that is erased", "an erasure that is finished"} {
		done := false
		err := s.Backup(t.Context(), &BackupProgress{}, func(p *Piece) error {
			if p.Kind != PieceEntries || p.Key != "events" || done {
				return nil
			}
			done = true
			return tests[name]()
		})
		if !done || !errors.Is(err, ErrErased) {
			t.Errorf("%s: error %v, want %v", name, err, ErrErased)
		}
	}
}

func TestABackupHoldsErasuresUpAndWaitsForThem(t *testing.T) {
	t.Parallel()
	s := full(t)
	if err := s.LockErasures(t.Context(), "pod-1 0"); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	var seen string
	go func() {
		ended <- s.Backup(t.Context(), &BackupProgress{}, func(p *Piece) error {
			var err error
			seen, err = s.ErasureLock(t.Context())
			return err
		})
	}()
	select {
	case err := <-ended:
		t.Fatalf("it did not wait: %v", err)
	case <-time.After(time.Second):
	}
	if err := s.UnlockErasures(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if len(seen) < 7 || seen[:7] != "backup-" {
		t.Errorf("while it ran %q erased", seen)
	}
	if left, err := s.ErasureLock(t.Context()); left != "" || err != nil {
		t.Errorf("afterwards %q erases, %v", left, err)
	}
}

func TestARestoreThatIsKilledGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	s := full(t)
	want := without(contents(t, s), leftOut...)
	pieces := backedUp(t, s)
	other := newStream(t)
	for killed := range pieces {
		r := mustBegin(t, other, "backup")
		if killed > 0 && r.Done() == 0 && killed > 8 {
			t.Errorf("killed after %d pieces it begins anew", killed)
		}
		for i := range pieces[:killed+1] {
			if err := r.Put(t.Context(), int64(i), &pieces[i]); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, publishes := range []bool{false, true} {
		r := mustBegin(t, other, "backup")
		for i := range pieces {
			if err := r.Put(t.Context(), int64(i), &pieces[i]); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.finishStreams(t.Context()); err != nil {
			t.Fatal(err)
		}
		if publishes {
			if err := r.Publish(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if diff := cmp.Diff(want, contents(t, other)); diff != "" {
		t.Errorf("the restored property is another (-was +is):\n%s", diff)
	}
}

func TestOfAnotherBackupNothingStays(t *testing.T) {
	t.Parallel()
	s := full(t)
	pieces := backedUp(t, s)
	other := newStream(t)
	r := mustBegin(t, other, "another")
	stray := Piece{Kind: PieceHash, Key: "order:gone:00112233445566778899", Items: []string{"state", "sent"}}
	if err := r.Put(t.Context(), 0, &stray); err != nil {
		t.Fatal(err)
	}
	if err := putBack(t, other, pieces); err != nil {
		t.Fatal(err)
	}
	if _, there := contents(t, other)[stray.Key]; there {
		t.Error("what was put of another backup is there")
	}
}

func TestWhatNoBackupHasIsNotPut(t *testing.T) {
	t.Parallel()
	tests := map[string]Piece{
		"a key that is not backed up":        {Kind: PieceText, Key: "clock", Items: []string{"1:0:1"}},
		"a note of a restore":                {Kind: PieceHash, Key: "restoring", Items: []string{"backup", "x"}},
		"a key of another property":          {Kind: PieceText, Key: "source:x}:{y", Items: []string{"1"}},
		"a key of another kind":              {Kind: PieceText, Key: "events", Items: []string{"1"}},
		"a kind that there is not":           {Kind: 99, Key: "events"},
		"a field without a value":            {Kind: PieceHash, Key: "join", Items: []string{"0"}},
		"an id that is none":                 {Kind: PieceEntries, Key: "events", Items: []string{"*", "e", "x"}},
		"an id beyond what readers can read": {Kind: PieceEntries, Key: "events", Items: []string{"1-99999999999", "e", "x"}},
		"a group that begins nowhere":        {Kind: PieceGroup, Key: "events", Items: []string{"meta", "$", ""}},
		"a cut without a time":               {Kind: PieceCut, Items: []string{"now"}},
		"a time before all":                  {Kind: PieceText, Key: "source:x", Expires: -1, Items: []string{"1"}},
	}
	s := newStream(t)
	for name, piece := range tests {
		r := mustBegin(t, s, name)
		if err := r.Put(t.Context(), 0, &piece); !errors.Is(err, errPiece) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
