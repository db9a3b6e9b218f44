package archive

import (
	"context"
	"sync"
	"time"

	"github.com/weir-dev/weir/collector/stream"
)

// progress is how far a lane is. It is safe for concurrent use.
type progress struct {
	mu sync.Mutex
	// at is up to where the lane is, end whether the stream ended there.
	at  stream.Position
	end bool
	// ended is when the latest reading of the stream began that found its end, by this machine's clock, current the same by the
	// stream's.
	ended, current time.Time
	changed        chan struct{}
}

func newProgress() *progress { return &progress{changed: make(chan struct{})} }

// move notes how far the lane is.
func (p *progress) move(at stream.Position, end bool, began, asked time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.at, p.end = at, end; end {
		p.ended, p.current = began, asked
	}
	close(p.changed)
	p.changed = make(chan struct{})
}

// currentAt is up to when all is archived, zero before the stream's end was found.
func (p *progress) currentAt() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.current
}

// lag returns about how many entries of a stream are not archived, and since when there have been any; zero where there are none.
func (p *progress) lag(bounds stream.Bounds) (entries float64, since time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case bounds.Length == 0 || p.at >= bounds.Last:
		return 0, time.Time{}
	case p.end:
		return 0, p.current // what has come since then
	}
	from := max(p.at, bounds.First)
	if whole := bounds.Last - bounds.First; whole > 0 {
		entries = float64(bounds.Length) * (float64(bounds.Last-from) / float64(whole))
	}
	return entries, from.Time()
}

// await waits until the lane is at a position or behind it, or at an end of the stream that it finds from now on: then there is
// nothing at that position.
func (p *progress) await(ctx context.Context, position stream.Position) error {
	for now := time.Now(); ; {
		p.mu.Lock()
		reached, changed := p.at >= position || p.ended.After(now), p.changed
		p.mu.Unlock()
		if reached {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}
