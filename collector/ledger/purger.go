package ledger

import (
	"context"
	"errors"
	"time"

	"github.com/weir-dev/weir/collector/audit"
	"github.com/weir-dev/weir/collector/stream"
)

const (
	// rewriteInterval is how often a Redis rewrites its files at most: each time it writes down all that it has.
	rewriteInterval = time.Hour
	// retryInterval is how often it is looked whether somebody has mended what keeps it from that.
	retryInterval = time.Minute
	// maxHidden is how many erasures of a property are purged by one rewriting.
	maxHidden = 10_000
	// mostFailures is how often in a row a Redis may fail to rewrite its files, as where it is restarted meanwhile, until that is
	// said.
	mostFailures = 3
)

// Purger rids a Redis's files of what was erased there, and of keys that were dropped, of all properties in it. It is not safe for concurrent use.
type Purger struct {
	// Audit is told which erasures are purged; nil for none. It is set before the first look.
	Audit *audit.Log

	rewriter *stream.Rewriter
	// hidden are the erasures that were done before the rewriting began that is under way; nil where none is. began is when
	// that was for each property.
	hidden map[*stream.Stream][]stream.HiddenErasure
	began  map[*stream.Stream]time.Time
	// next is when it may begin again, problem why it did not do so the last time.
	next    time.Time
	problem error
	// failures counts the rewritings that came to nothing since one succeeded.
	failures int
}

// NewPurger makes one for a Redis; nothing is sent.
func NewPurger(client *stream.Client) *Purger {
	return &Purger{rewriter: stream.NewRewriter(client)}
}

// Look is to be called every few seconds, with the properties that have something [stream.ErasureWork.Unpurged]. It has Redis
// rewrite its files, once an hour at most, and notes which erasures are purged when that is done. It fails with an error
// of a [stream.Rewriter] for as long as somebody has to mend something; the erasures' states say so, too.
func (p *Purger) Look(ctx context.Context, now time.Time, waiting []*stream.Stream) error {
	if p.hidden != nil {
		return p.finish(ctx)
	}
	if len(waiting) == 0 {
		p.problem = nil
		return nil
	}
	if now.Before(p.next) {
		return p.problem
	}
	// What is hidden by now has gone from memory, so what is written from now on has nothing of it.
	hidden, began := map[*stream.Stream][]stream.HiddenErasure{}, map[*stream.Stream]time.Time{}
	for _, s := range waiting {
		list, err := s.HiddenErasures(ctx, maxHidden)
		if err != nil {
			return err
		}
		hidden[s] = list
		if began[s], err = s.Now(ctx); err != nil {
			return err
		}
	}
	begun, err := p.rewriter.Begin(ctx)
	switch {
	case err != nil:
		p.next = now.Add(retryInterval)
		return p.fail(ctx, hidden, err)
	case begun:
		p.hidden, p.began, p.next, p.problem = hidden, began, now.Add(rewriteInterval), nil
	}
	return nil
}

// finish looks how far the rewriting is.
func (p *Purger) finish(ctx context.Context) error {
	done, err := p.rewriter.Done(ctx)
	hidden := p.hidden
	if errors.Is(err, stream.ErrRewriteFailed) {
		p.hidden = nil
		if p.failures++; p.failures < mostFailures {
			return nil
		}
		return p.fail(ctx, hidden, err)
	}
	if err != nil || !done {
		return err
	}
	p.hidden, p.failures = nil, 0
	var errs []error
	for s, list := range hidden {
		purged, err := s.NotePurged(ctx, list) // or after the next rewriting
		errs = append(errs, err, s.NoteRewritten(ctx, p.began[s]))
		for _, one := range purged {
			p.Audit.Write(ctx, audit.PurgedErasure(s.Property(), one.ID))
		}
	}
	return errors.Join(errs...)
}

// fail notes why the files still have what was erased, and returns it.
func (p *Purger) fail(ctx context.Context, hidden map[*stream.Stream][]stream.HiddenErasure, why error) error {
	reason := stream.UnpurgedReason(why)
	if reason == "" {
		return why // such as a Redis that is away: it is looked again
	}
	p.problem = why
	errs := []error{why}
	for s, list := range hidden {
		errs = append(errs, s.NoteUnpurged(ctx, list, reason))
	}
	return errors.Join(errs...)
}
