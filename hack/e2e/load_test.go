package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-dev/weir/hack/e2e/load"
)

// rate is how many events a second come from outside, and as many from inside, while something happens.
const rate = 50

// underway is load on a tenant.
type underway struct {
	*tenant
	event   string
	outside *load.Sender
	inside  *peer
}

// startLoad has events come in: from outside, and on the node through the Service, too. It returns once they do. They have a name of their
// own, by which they are found again. Each way has a key.
func (it *tenant) startLoad(t *testing.T, event, outsideKey, insideKey string) *underway {
	t.Helper()
	run := time.Now().Format("150405")
	under := &underway{tenant: it, event: event}
	under.outside = load.Start(load.Plan{
		URL: it.collect + "/collect/" + outsideKey, Host: it.collectHost, Rate: rate, Prefix: "outside-" + event + run, Event: event,
	})
	t.Cleanup(func() { under.outside.Stop() })
	if it.node {
		under.inside = it.peerIn(t, it.namespace)
		under.inside.startLoad(t, load.Plan{
			URL: it.service("collector") + "/collect/" + insideKey, Rate: rate, Prefix: "inside-" + event + run, Event: event,
		})
	}
	under.goOn(t, time.Second)
	return under
}

// goOn waits until as many more events have been accepted as are sent in so long.
func (u *underway) goOn(t *testing.T, long time.Duration) {
	t.Helper()
	want := u.outside.Accepted() + int(long.Seconds()*rate)
	within(t, 2*time.Minute, "events are accepted", func() error {
		if have := u.outside.Accepted(); have < want {
			return fmt.Errorf("%d of %d have been", have, want)
		}
		return nil
	})
}

// stop ends the load and returns what became of it, by way.
func (u *underway) stop(t *testing.T) map[string]load.Result {
	t.Helper()
	u.goOn(t, time.Second)
	results := map[string]load.Result{"from outside": u.outside.Stop()}
	if u.inside != nil {
		results["through the Service"] = u.inside.stopLoad(t)
	}
	for way, result := range results {
		u.figure(t, "events "+way, "%d sent, answers %v, slowest 202 %.0f ms", result.Sent, result.Answers, 1000*result.Slowest)
	}
	return results
}

// noneFailed says that every request was answered with 202, and that none of the events is lost.
func (u *underway) noneFailed(t *testing.T, results map[string]load.Result) {
	t.Helper()
	u.failedOnly(t, results)
	u.noneLost(t, results)
}

// failedOnly says that no request failed but with one of the statuses.
func (u *underway) failedOnly(t *testing.T, results map[string]load.Result, allowed ...string) {
	t.Helper()
	for way, result := range results {
		for answer, count := range result.Answers {
			if answer != "202" && !slices.Contains(allowed, answer) {
				t.Errorf("%s, %d of %d requests: %s", way, count, result.Sent, answer)
			}
		}
		for _, failure := range result.Failures {
			if status, _, _ := strings.Cut(failure.What, " "); !slices.Contains(allowed, status) {
				t.Errorf("%s, event %s at %s after %.2f s: %s", way, failure.ID, failure.At.Format("15:04:05.000"), failure.Seconds, failure.What)
			}
		}
	}
}

// noneLost says that each event that was answered 202 is in the listing, and none of this name twice.
func (u *underway) noneLost(t *testing.T, results map[string]load.Result) {
	t.Helper()
	var accepted, listed int
	took := within(t, time.Minute, "every accepted event is in the listing", func() error {
		records, err := u.list(t, u.event)
		if err != nil {
			return err
		}
		times := map[string]int{}
		for _, one := range records {
			times[one.EventID]++
			if times[one.EventID] > 1 {
				t.Fatalf("event %s is listed %d times", one.EventID, times[one.EventID])
			}
		}
		accepted, listed = 0, len(records)
		var missing []string
		for _, result := range results {
			accepted += len(result.Accepted)
			for _, id := range result.Accepted {
				if times[id] == 0 {
					missing = append(missing, id)
				}
			}
		}
		if len(missing) > 0 {
			return fmt.Errorf("%d of %d are missing, %s among them", len(missing), accepted, missing[0])
		}
		return nil
	})
	u.figure(t, "accepted, and found in the listing", "%d of %d, after %.1f s; %d listed", accepted, accepted, took.Seconds(), listed)
}
