// Package fetch makes a shop's orders whole: it asks the shop's API for those that have changed, has what its webhooks
// have missed stored, and has a webhook switched on again that the shop has given up. It runs in the deliverer, which has
// the shop's credential and a guarded way out.
package fetch

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/egress"
	"github.com/weir-dev/weir/collector/sources"
	"github.com/weir-dev/weir/collector/sources/shop"
)

const (
	// interval is how often a shop is asked.
	interval = time.Minute
	// overlap is how much of what was read before is read again: shops show changes late, and not in their order. What
	// comes twice is a repeat by its id.
	overlap = 5 * time.Minute
	// roundTimeout bounds one look at a shop: what is left is read by the next.
	roundTimeout = 10 * time.Minute
)

// Positions remember up to when a source's shop was read. [stream.Stream] is one.
type Positions interface {
	SourcePosition(ctx context.Context, source string) (time.Time, error)
	MoveSource(ctx context.Context, source string, to time.Time) error
}

// Taker stores what a shop reports. [ingest.Handler] is one.
type Taker interface {
	Take(ctx context.Context, namespace, property, source string, report shop.Report) error
}

// Options are what a [Fetcher] needs.
type Options struct {
	Property config.Property
	// Credentials returns what of a source's Secrets the deliverer has. It is asked each time.
	Credentials func(source string) (map[string]string, error)
	Positions   Positions
	Taker       Taker
	// Orders is what shops' orders are compared with once a day; nil where they are not.
	Orders Orders
	// Doer makes the requests to shops; it asks the guard of egress about each address.
	Doer   shop.Doer
	Logger *slog.Logger
	// Now is this process's clock, time.Now where nil. Pause waits, and says whether the context goes on; a timer where nil.
	Now   func() time.Time
	Pause func(ctx context.Context, duration time.Duration) bool
}

// Problem is why a shop's orders cannot be read until a person has mended something. Its values are reasons of the
// Property's condition SourcesReady.
type Problem string

// What can be wrong. What passes by itself, such as an outage, is none.
const (
	// SecretInvalid: the source's Secret lacks a key.
	SecretInvalid Problem = "SecretInvalid"
	// CredentialsRejected: the shop refuses the credentials, or they allow too little.
	CredentialsRejected Problem = "CredentialsRejected"
	// ConfigurationRejected: there is no such API at the source's URL.
	ConfigurationRejected Problem = "ConfigurationRejected"
	// EgressDenied: the URL's host has only addresses that may not be connected to.
	EgressDenied Problem = "EgressDenied"
)

// Fetcher reads the shops of one property. It runs once.
type Fetcher struct {
	options Options

	mu       sync.Mutex
	problems map[string]Problem
	// compared is when a source's orders were compared last, or could not be.
	compared map[string]time.Time
}

// New makes a fetcher; [Fetcher.Run] starts it.
func New(options Options) *Fetcher {
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Pause == nil {
		options.Pause = pause
	}
	return &Fetcher{options: options, problems: map[string]Problem{}, compared: map[string]time.Time{}}
}

// pause waits, and says whether ctx goes on.
func pause(ctx context.Context, duration time.Duration) bool {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// Run reads each shop of which orders are read once a minute, until ctx ends. None holds up another.
func (f *Fetcher) Run(ctx context.Context) {
	var all sync.WaitGroup
	for i := range f.options.Property.Sources {
		source := &f.options.Property.Sources[i]
		if source.ReadsOrders {
			all.Go(func() { f.follow(ctx, source) })
		}
	}
	all.Wait()
}

// Problems returns the sources whose orders cannot be read until a person has mended something, each with what.
func (f *Fetcher) Problems() map[string]Problem {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.problems)
}

// follow reads a shop again and again. The same error is logged once.
func (f *Fetcher) follow(ctx context.Context, source *sources.Source) {
	logger := f.options.Logger.With("source", source.Name)
	for said := ""; ; {
		err := f.look(ctx, source)
		if ctx.Err() != nil {
			return
		}
		switch {
		case err != nil && err.Error() != said:
			said = err.Error()
			logger.WarnContext(ctx, "the shop's orders cannot be read; it is asked again", "error", err)
		case err == nil && said != "":
			said = ""
			logger.InfoContext(ctx, "the shop's orders are read again")
		}
		f.note(source.Name, problemOf(err))
		if !f.options.Pause(ctx, interval) {
			return
		}
	}
}

// look reads what has changed in a shop since the last look, and then mends what the shop has switched off. A source that
// nobody has read begins with what changes from now on.
func (f *Fetcher) look(ctx context.Context, source *sources.Source) error {
	ctx, cancel := context.WithTimeout(ctx, roundTimeout)
	defer cancel()
	credentials, err := f.options.Credentials(source.Name)
	if err != nil {
		return errors.Join(errSecret, err)
	}
	api, err := shop.NewAPI(source, credentials, f.options.Doer)
	if err != nil {
		return errors.Join(errSecret, err)
	}
	since, err := f.options.Positions.SourcePosition(ctx, source.Name)
	if err != nil {
		return err
	}
	if since.IsZero() {
		since = f.options.Now()
	}
	p := &f.options.Property
	latest, err := api.Changed(ctx, since.Add(-overlap), func(report shop.Report) error {
		return f.options.Taker.Take(ctx, p.Namespace, p.Name, source.Name, report)
	})
	if latest.Before(since) {
		latest = since
	}
	// What was read need not be read again where the rest could not be: what had not changed for longest came first. And a
	// webhook that is off is switched on in any case.
	err = errors.Join(err, f.options.Positions.MoveSource(context.WithoutCancel(ctx), source.Name, latest), api.Mend(ctx))
	if err == nil && f.due(source.Name) {
		err = f.compareYesterday(ctx, source, api)
	}
	return err
}

// due says whether a source's orders are to be compared: not for a while after that was tried.
func (f *Fetcher) due(source string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.options.Now()
	if f.options.Orders == nil || now.Sub(f.compared[source]) < compareAgain {
		return false
	}
	f.compared[source] = now
	return true
}

// errSecret says that the source's Secret has not what is needed.
var errSecret = errors.New("the source's Secret cannot be used")

// problemOf returns what a person has to mend, "" where nobody has.
func problemOf(err error) Problem {
	switch {
	case errors.Is(err, errSecret):
		return SecretInvalid
	case errors.Is(err, shop.ErrDenied):
		return CredentialsRejected
	case errors.Is(err, shop.ErrMoved):
		return ConfigurationRejected
	case errors.Is(err, egress.ErrDenied):
		return EgressDenied
	default:
		return ""
	}
}

// note notes what of a source has to be mended; "" for nothing.
func (f *Fetcher) note(source string, problem Problem) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if problem == "" {
		delete(f.problems, source)
		return
	}
	f.problems[source] = problem
}
