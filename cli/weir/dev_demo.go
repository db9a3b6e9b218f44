package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/weir-dev/weir/cli/flags"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/demo"
	"github.com/weir-dev/weir/collector/stream"
)

// demoOptions ask for a past that is made up; events is 0 where none is wanted.
type demoOptions struct {
	events, days int
	seed         uint64
}

// What a past is like where only its events are counted.
const (
	demoDays = 30
	demoSeed = 1
)

// check says what is wrong with the flags; given names those that were passed.
func (o demoOptions) check(given map[string]bool) flags.Errors {
	var errs flags.Errors
	if !given["demo-events"] {
		for _, name := range []string{"demo-days", "demo-seed"} {
			if given[name] {
				errs.Add("--%s: nothing is made up without --demo-events, as in --demo-events 100000", name)
			}
		}
		return errs
	}
	if o.events < 1 || o.events > demo.MaxEvents {
		errs.Add("--demo-events: must be 1 to %d, not %d", demo.MaxEvents, o.events)
	}
	if o.days < 1 || o.days > demo.MaxDays {
		errs.Add("--demo-days: must be 1 to %d, not %d", demo.MaxDays, o.days)
	}
	return errs
}

// fill gives each property that has never received an event a past that ends now, and says what it did. The
// directories hold the properties' configurations.
func (o demoOptions) fill(ctx context.Context, directories []string, output io.Writer) error {
	if o.events == 0 {
		return nil
	}
	for _, directory := range directories {
		property, err := config.Load(directory)
		if err != nil {
			return err
		}
		if err := o.checkRetention(&property); err != nil {
			return err
		}
		redis, err := config.LoadRedis(directory)
		if err != nil {
			return err
		}
		start := time.Now()
		err = o.fillOne(ctx, &property, redis, start)
		switch {
		case errors.Is(err, stream.ErrNotEmpty):
			fmt.Fprintf(output, "%s/%s has events already: --demo-events leaves it as it is\n", property.Namespace, property.Name)
		case err != nil:
			return fmt.Errorf("--demo-events: %s/%s: %w", property.Namespace, property.Name, err)
		default:
			fmt.Fprintf(output, "%s/%s has a past now: %d events of %d days, seed %d, made up in %s\n",
				property.Namespace, property.Name, o.events, o.days, o.seed, time.Since(start).Round(time.Millisecond))
		}
	}
	return nil
}

// checkRetention refuses what the deliverer would trim away again.
func (o demoOptions) checkRetention(property *config.Property) error {
	if kept := property.Retention; o.days > kept.Days {
		return fmt.Errorf("--demo-days: %d are more than the %d that %s keeps (spec.retention.days)", o.days, kept.Days, property.Name)
	} else if int64(o.events) > kept.MaxEvents {
		return fmt.Errorf("--demo-events: %d are more than the %d that %s keeps (spec.retention.maxEvents)", o.events, kept.MaxEvents, property.Name)
	}
	return nil
}

func (o demoOptions) fillOne(ctx context.Context, property *config.Property, redis config.Redis, end time.Time) (err error) {
	past, err := demo.New(demo.Options{Property: property, Events: o.events, Days: o.days, Seed: o.seed, End: end})
	if err != nil {
		return err
	}
	client, err := stream.Dial(redis.URL, stream.DialOptions{TLS: redis.TLS})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	return client.Stream(property.Namespace, property.Name).Import(ctx, importOf(past))
}

// importOf hands a past over in the form in which streams are filled.
func importOf(past *demo.Past) iter.Seq2[[]stream.Entry, []stream.Record] {
	return func(yield func([]stream.Entry, []stream.Record) bool) {
		for batch := range past.Batches() {
			if !yield(batch.Entries, batch.Records) {
				return
			}
		}
	}
}
