package audit_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/collector/audit"
	"github.com/weir-dev/weir/collector/auth"
)

// register is one in memory. It counts how often it is asked, and fails as often as it shall.
type register struct {
	mu     sync.Mutex
	known  map[[sha256.Size]byte]bool
	asked  int
	failed int
}

func (r *register) FirstUse(_ context.Context, hash [sha256.Size]byte, _ time.Time) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked++
	if r.failed > 0 {
		r.failed--
		return false, errors.New("connection refused")
	}
	first := !r.known[hash]
	r.known[hash] = true
	return first, nil
}

func TestFirstUses(t *testing.T) {
	known := func(values ...string) map[[sha256.Size]byte]bool {
		all := map[[sha256.Size]byte]bool{}
		for _, value := range values {
			all[auth.HashOf(value)] = true
		}
		return all
	}
	for sentence, row := range map[string]struct {
		register *register
		uses     []auth.Credential
		want     []string
		asked    int
		warnings int
	}{
		"the first use of each is written, and the register asked once for each": {
			&register{known: known()}, []auth.Credential{key("a", "1"), key("a", "1"), token("t", "2", "read"), key("a", "1")},
			[]string{`"name":"a"`, `"name":"t","scope":"read"`}, 2, 0,
		},
		"one that another process has seen is not": {&register{known: known("1")}, []auth.Credential{key("a", "1"), key("b", "2")}, []string{`"name":"b"`}, 2, 0},
		"one that nobody uses is not":              {&register{known: known()}, nil, nil, 0, 0},
		"while the register is away they wait, and that is said once": {
			&register{known: known(), failed: 3}, []auth.Credential{key("a", "1"), key("b", "2")}, []string{`"name":"a"`, `"name":"b"`}, 5, 1,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var lines, reported bytes.Buffer
				begin := time.Now()
				uses := audit.NewFirstUses("default/shop", audit.New(&lines, slog.New(slog.DiscardHandler), time.Now), row.register, slog.New(slog.NewTextHandler(&reported, nil)))
				for _, c := range row.uses {
					uses.Of(c).Note()
				}
				<-time.After(10 * time.Second) // on synctest's clock
				synctest.Wait()
				if err := uses.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				got := strings.Split(strings.TrimSuffix(lines.String(), "\n"), "\n")
				if lines.Len() == 0 {
					got = nil
				}
				if len(got) != len(row.want) || row.register.asked != row.asked || strings.Count(reported.String(), "\n") != row.warnings {
					t.Fatalf("%d lines, want %d; asked %d times, want %d; reported:\n%s\n%s", len(got), len(row.want), row.register.asked, row.asked, reported.String(), lines.String())
				}
				for i, words := range row.want {
					at := begin.UTC().Format("2006-01-02T15:04:05.000Z07:00") // when it was used, not when the register answered
					if !strings.Contains(got[i], words) || !strings.Contains(got[i], `"act":"credential.first_used"`) || !strings.Contains(got[i], `"time":"`+at+`"`) {
						t.Errorf("line %d is %s\nwant %s at %s in it", i, got[i], words, at)
					}
				}
			})
		})
	}
}

func TestUsesAreWrittenBeforeTheEnd(t *testing.T) {
	var lines bytes.Buffer
	uses := audit.NewFirstUses("default/shop", audit.New(&lines, slog.New(slog.DiscardHandler), clock), &register{known: map[[sha256.Size]byte]bool{}}, slog.New(slog.DiscardHandler))
	uses.Of(key("a", "1")).Note()
	if err := uses.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(lines.String(), `"name":"a"`) {
		t.Errorf("written is %q", lines.String())
	}
}

func TestManyMayUseAKeyAtOnce(t *testing.T) {
	var lines bytes.Buffer
	r := &register{known: map[[sha256.Size]byte]bool{}}
	uses := audit.NewFirstUses("default/shop", audit.New(&lines, slog.New(slog.DiscardHandler), clock), r, slog.New(slog.DiscardHandler))
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() { uses.Of(key("a", "1")).Note() })
	}
	all.Wait()
	if err := uses.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(lines.String(), "\n"); got != 1 || r.asked != 1 {
		t.Errorf("%d lines, asked %d times, want one of each", got, r.asked)
	}
}

func BenchmarkNote(b *testing.B) {
	uses := audit.NewFirstUses("default/shop", audit.New(&bytes.Buffer{}, slog.New(slog.DiscardHandler), clock), &register{known: map[[sha256.Size]byte]bool{}}, slog.New(slog.DiscardHandler))
	use := uses.Of(key("a", "1"))
	b.ReportAllocs()
	for b.Loop() {
		use.Note()
	}
}
