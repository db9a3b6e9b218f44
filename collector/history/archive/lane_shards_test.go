package archive

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"
)

// shards is a world whose table is spread over two shards: each takes its piece of a block, wholly or not at all, and has tokens of its
// own in mind.
type shards struct {
	*world
	known [2]map[string]bool
	// broken is the shard that gets nothing at the call at which the world's fault happens; its piece comes late where late says so.
	broken int
	late   bool
	pieces []func()
}

func (s *shards) Insert(_ context.Context, rows []row, token string) error {
	carry, err := s.call()
	for shard := range s.known {
		piece := slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return int(uint64(r.Entry)+uint64(r.Nth))%2 != shard })
		add := func() {
			if len(piece) > 0 && !s.known[shard][token] {
				s.known[shard][token] = true
				s.stored = append(s.stored, piece...)
			}
		}
		switch {
		case carry || err != nil && shard != s.broken:
			add()
		case s.late:
			s.pieces = append(s.pieces, add)
		}
	}
	return err
}

// copyAll lets writers copy until all is copied; what was late comes then.
func (s *shards) copyAll(t *testing.T) (calls int) {
	t.Helper()
	next := func() *lane[row] {
		writer := s.writer()
		writer.table, writer.spread = s, true
		writer.token = func() string { s.made++; return "block " + strconv.Itoa(s.made) }
		return writer
	}
	writer := next()
	for range 100 {
		copied, err := writer.step(t.Context())
		if err != nil {
			writer = next()
		} else if !copied {
			for _, piece := range s.pieces {
				piece()
			}
			return s.calls
		}
	}
	t.Fatal("the stream is never copied to its end")
	return 0
}

func newShards() *shards {
	return &shards{world: newWorld(), known: [2]map[string]bool{{}, {}}, broken: 1}
}

// TestAPieceOfABlockThatAShardHasNotTakenIsThereOnce has one of two shards not take its piece of a block, at each call of a writer.
func TestAPieceOfABlockThatAShardHasNotTakenIsThereOnce(t *testing.T) {
	plain := newShards()
	calls := plain.copyAll(t)
	plain.check(t)
	for name, fault := range map[string]func(s *shards){
		"it never comes":                    func(s *shards) { s.fails = errRefused },
		"it comes when all else is there":   func(s *shards) { s.fails, s.late = errRefused, true },
		"the writer is killed":              func(s *shards) { s.fails = errKilled },
		"the writer is killed, and it does": func(s *shards) { s.fails, s.late = errKilled, true },
		"of the first shard, late":          func(s *shards) { s.fails, s.late, s.broken = errKilled, true, 0 },
	} {
		for at := 1; at <= calls; at++ {
			t.Run(fmt.Sprintf("%s %d", name, at), func(t *testing.T) {
				s := newShards()
				s.fault = at
				fault(s)
				s.copyAll(t)
				s.check(t)
			})
		}
	}
}
