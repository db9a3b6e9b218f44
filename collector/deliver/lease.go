package deliver

import (
	"context"
	"strconv"
	"strings"
	"time"
)

// lease lets one deliverer of several do something. It is taken over where whoever has it says nothing for a while; that two have
// it for a moment must be harmless.
type lease struct {
	// look returns what has been written down last, write writes something down.
	look  func(ctx context.Context) (string, error)
	write func(ctx context.Context, text string) error
	// token tells this deliverer from others.
	token string
	// monotonic says how long this deliverer runs: no time here is one of Redis's.
	monotonic func() time.Duration
	// patience is how long another's silence lasts before this one takes over.
	patience time.Duration

	// seen is what another has written down, seenAt when it was seen first. said is when this one wrote last, n how often.
	seen         string
	seenAt, said time.Duration
	n            int
}

// mine says whether this deliverer has the lease, and takes it where it can. It has to be asked again and again.
func (l *lease) mine(ctx context.Context) (bool, error) {
	text, err := l.look(ctx)
	if err != nil {
		return false, err
	}
	now := l.monotonic()
	if text != l.seen {
		l.seen, l.seenAt = text, now
	}
	ours := strings.HasPrefix(text, l.token)
	if !ours && text != "" && now-l.seenAt < l.patience {
		return false, nil
	}
	if ours && now-l.said < l.patience/lockParts {
		return true, nil
	}
	l.n++
	l.said = now
	return true, l.write(ctx, l.token+" "+strconv.Itoa(l.n))
}
