package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/controllers"
)

// measure makes the Properties, changes some, starts the operator anew, so that it looks at everything again much
// sooner than it does otherwise, and watches it while nothing changes. It fails where what must be exact is not: an
// object that is missing, a write without cause.
func (b *bench) measure(ctx context.Context) error {
	var err error
	if b.operator, err = b.startOperator(ctx); err != nil {
		return err
	}
	idle, err := b.operator.settle(ctx)
	if err != nil {
		return err
	}
	b.printf("%d Properties in %d namespaces; the operator starts with %s resident\n", b.properties, b.namespaces, megabytes(idle.resident))
	if err := b.measureApply(ctx, idle); err != nil {
		return err
	}
	if err := b.measureRollout(ctx); err != nil {
		return err
	}
	if err := b.measureChanges(ctx); err != nil {
		return err
	}
	if err := b.measureRestart(ctx); err != nil {
		return err
	}
	if err := b.measureSteady(ctx); err != nil {
		return err
	}
	return b.measureDuringResync(ctx)
}

func (b *bench) measureApply(ctx context.Context, idle usage) error {
	start := time.Now()
	var created, seen []time.Time
	both, making := errgroup.WithContext(ctx)
	both.Go(func() (err error) { created, err = b.createAll(making); return err })
	both.Go(func() (err error) { seen, err = b.awaitAll(making, applied); return err })
	if err := both.Wait(); err != nil {
		return err
	}
	took := time.Since(start)
	now, err := b.operator.settle(ctx)
	if err != nil {
		return err
	}
	each := make([]time.Duration, len(seen))
	for i := range seen {
		each[i] = seen[i].Sub(created[i])
	}
	slices.Sort(each)
	done := now.since(idle)
	objects, err := b.count(ctx)
	if err != nil {
		return err
	}
	b.printf("apply -> everything applied: %.1f s (%d objects; a Property alone: p50 %.1f s, p99 %.1f s)\n",
		took.Seconds(), objects, quantile(each, 0.5).Seconds(), quantile(each, 0.99).Seconds())
	b.perProperty(done)
	return nil
}

// count returns how many objects there are. It fails where one Property has others than another.
func (b *bench) count(ctx context.Context) (int, error) {
	versions, kinds, err := b.versions(ctx)
	if err != nil {
		return 0, err
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		if kinds[kind]%b.properties != 0 || (kind == v1alpha1.Kind && kinds[kind] != b.properties) {
			return 0, fmt.Errorf("there are %d objects of kind %s for %d Properties", kinds[kind], kind, b.properties)
		}
	}
	return len(versions) - b.properties, nil
}

func (b *bench) perProperty(done usage) {
	n := float64(b.properties)
	b.printf("  a Property: %.1f calls, %.1f of them writes (%s in all), %.1f reconciles, %.1f ms of the operator's processor time\n",
		sum(done.calls)/n, done.writes()/n, done, done.reconciles/n, float64(done.cpu.Milliseconds())/n)
	b.printf("  memory: %s resident, %s at most\n", megabytes(done.resident), megabytes(done.peak))
}

func (b *bench) measureRollout(ctx context.Context) error {
	before, err := b.operator.sample(ctx)
	if err != nil {
		return err
	}
	start := time.Now()
	if err := b.rollOut(ctx); err != nil {
		return err
	}
	ready := func(p *v1alpha1.Property) bool {
		return meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionReady)
	}
	if _, err := b.awaitAll(ctx, ready); err != nil {
		return err
	}
	took := time.Since(start)
	now, err := b.operator.settle(ctx)
	if err != nil {
		return err
	}
	b.printf("pods reported to run -> every Property Ready: %.1f s\n", took.Seconds())
	b.perProperty(now.since(before))
	return nil
}

func (b *bench) measureChanges(ctx context.Context) error {
	for _, change := range changes() {
		before, err := b.operator.settle(ctx)
		if err != nil {
			return err
		}
		took, err := b.latencies(ctx, change)
		if err != nil {
			return err
		}
		now, err := b.operator.settle(ctx)
		if err != nil {
			return err
		}
		b.printf("%s: p50 %d ms, p99 %d ms, at most %d ms; calls for a change: %.1f, writes %.1f\n", change.name,
			quantile(took, 0.5).Milliseconds(), quantile(took, 0.99).Milliseconds(), took[len(took)-1].Milliseconds(),
			sum(now.since(before).calls)/float64(b.changes), now.since(before).writes()/float64(b.changes))
	}
	return nil
}

// resync is how long it takes at most until every Property is looked at again, which never ends: 3,600 times as often as by default.
const resync = 10 * time.Second

// measureDuringResync changes Properties while all the others are looked at again and again, without cause.
func (b *bench) measureDuringResync(ctx context.Context) error {
	if err := b.restart(ctx, resync); err != nil {
		return err
	}
	for _, change := range changes() {
		before, err := b.operator.sample(ctx)
		if err != nil {
			return err
		}
		start := time.Now()
		took, err := b.latencies(ctx, change)
		if err != nil {
			return err
		}
		now, err := b.operator.sample(ctx)
		if err != nil {
			return err
		}
		b.printf("%s, during a resync (%.0f reconciles a second): p50 %d ms, p99 %d ms, at most %d ms\n", change.name, now.since(before).reconciles/time.Since(start).Seconds(),
			quantile(took, 0.5).Milliseconds(), quantile(took, 0.99).Milliseconds(), took[len(took)-1].Milliseconds())
	}
	return nil
}

func (b *bench) measureSteady(ctx context.Context) error {
	before, err := b.operator.settle(ctx)
	if err != nil {
		return err
	}
	versions, _, err := b.versions(ctx)
	if err != nil {
		return err
	}
	start := time.Now()
	select {
	case <-time.After(b.steady):
	case <-ctx.Done():
		return ctx.Err()
	}
	now, err := b.operator.sample(ctx)
	if err != nil {
		return err
	}
	done, took := now.since(before), time.Since(start)
	renewed := min(done.calls[http.MethodPut], b.renewals(took))
	writes := done.writes() - renewed
	b.printf("nothing changes for %.0f s, everything is looked at again: %.0f reconciles, %.0f writes beside %.0f of Leases, %.0f other calls, %.1f %% of a processor\n",
		took.Seconds(), done.reconciles, writes, renewed, sum(done.calls)-done.writes(), 100*done.cpu.Seconds()/took.Seconds())
	b.printf("  memory: %s resident, %s at most\n", megabytes(done.resident), megabytes(done.peak))
	if int(done.reconciles) < b.properties {
		return fmt.Errorf("only %.0f Properties were looked at again", done.reconciles)
	}
	if writes != 0 {
		return fmt.Errorf("the operator has written without cause: %s", done)
	}
	return b.unchanged(ctx, versions)
}

// renewals is how often the operator may write its Leases in a time: one in each namespace and one for the cluster, three
// times while one lasts.
func (b *bench) renewals(within time.Duration) float64 {
	return float64(b.namespaces+1) * (1 + math.Floor(3*within.Seconds()/controllers.LeaseDuration.Seconds()))
}

func (b *bench) measureRestart(ctx context.Context) error {
	versions, _, err := b.versions(ctx)
	if err != nil {
		return err
	}
	start := time.Now()
	if err := b.restart(ctx, b.steady/2); err != nil {
		return err
	}
	took := time.Since(start)
	now, err := b.operator.settle(ctx)
	if err != nil {
		return err
	}
	b.printf("started anew -> every Property looked at: %.1f s\n", took.Seconds())
	b.perProperty(now)
	return b.unchanged(ctx, versions)
}

// restart starts the operator anew, and waits until it has looked at every Property.
func (b *bench) restart(ctx context.Context, syncPeriod time.Duration) error {
	err := b.operator.end()
	if err != nil {
		return fmt.Errorf("the operator ended with %w", err)
	}
	if b.operator, err = b.startOperator(ctx, "--sync-period", syncPeriod.String()); err != nil {
		return err
	}
	return poll(ctx, 100*time.Millisecond, func() error {
		now, err := b.operator.sample(ctx)
		if err == nil && (int(now.reconciles) < b.properties || now.queued > 0 || now.active > 0) {
			err = errors.New("not every Property has been looked at")
		}
		return err
	})
}

// unchanged fails where an object has another version than before.
func (b *bench) unchanged(ctx context.Context, before map[string]string) error {
	now, _, err := b.versions(ctx)
	if err != nil {
		return err
	}
	var differing []string
	for name, version := range now {
		if before[name] != version {
			differing = append(differing, name)
		}
	}
	slices.Sort(differing)
	if len(differing) > 0 || len(now) != len(before) {
		return fmt.Errorf("of %d objects there are %d, and these have changed: %s", len(before), len(now), strings.Join(differing[:min(10, len(differing))], ", "))
	}
	b.printf("  none of %d objects has changed\n", len(now))
	return nil
}

func sum(calls map[string]float64) float64 {
	total := 0.0
	for _, n := range calls {
		total += n
	}
	return total
}

func quantile(sorted []time.Duration, q float64) time.Duration {
	return sorted[int(q*float64(len(sorted)-1)+0.5)]
}

func megabytes(n int64) string { return fmt.Sprintf("%.0f MB", float64(n)/1e6) }
