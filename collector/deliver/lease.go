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
	// void makes harmless what somebody may still have under way who has noted it and has died since; nil for nothing.
	void func(ctx context.Context, note string) error

	// note is what this one may have under way, which others are to know of when it dies.
	note string
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
	ours := l.ours(text)
	if !ours && text != "" && now-l.seenAt < l.patience {
		return false, nil
	}
	if ours && now-l.said < l.patience/lockParts {
		return true, nil
	}
	if note := noteOf(text); !ours && note != "" {
		if err := l.void(ctx, note); err != nil {
			return false, err
		}
	}
	return true, l.say(ctx)
}

// keep says whether this deliverer still has the lease, and says so to others before they think that it has died. It is to be asked
// in the midst of what takes long, and costs nothing where this one has spoken a moment ago.
func (l *lease) keep(ctx context.Context) (bool, error) {
	if l.monotonic()-l.said < l.patience/lockParts {
		return true, nil
	}
	text, err := l.look(ctx)
	if err != nil || !l.ours(text) {
		return false, err
	}
	return true, l.say(ctx)
}

// begin notes what this deliverer is about to do that may come about after its death. It returns false where another has the lease
// by now.
func (l *lease) begin(ctx context.Context, note string) (bool, error) {
	if l.note != "" && l.note != note {
		if err := l.void(ctx, l.note); err != nil {
			return false, err
		}
	}
	text, err := l.look(ctx)
	if err != nil || !l.ours(text) {
		return false, err
	}
	l.note = note
	return true, l.say(ctx)
}

// done notes that what was begun is over. Others learn of it when this one speaks next.
func (l *lease) done() { l.note = "" }

func (l *lease) ours(text string) bool { return strings.HasPrefix(text, l.token) }

func (l *lease) say(ctx context.Context) error {
	l.n++
	l.said = l.monotonic()
	return l.write(ctx, strings.TrimSpace(l.token+" "+strconv.Itoa(l.n)+" "+l.note))
}

// noteOf returns what whoever has written a text may have under way, "" for nothing.
func noteOf(text string) string {
	const parts = 3
	if list := strings.SplitN(text, " ", parts); len(list) == parts {
		return list[parts-1]
	}
	return ""
}
