package demo

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weir-dev/weir/collector/consent"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/stream"
)

// platform is one of the property's, with the troubles that it has had.
type platform struct {
	config *platforms.Platform
	// rule is what it makes of visitors' decisions.
	rule consent.Rule
	// latencies are, in ms, what equal parts of the requests took at least; the last one is the longest.
	latencies []int64
	// refusal is the reason for which it refuses an event for good, "" where it never does.
	refusal string
	// downFrom and downTo are when it did not answer, in ms since 1970.
	downFrom, downTo int64
}

const (
	// outage is how long a platform was down once.
	outage = 100 * time.Minute
	// maxAge is after how long a deliverer gives an event up.
	maxAge = 7 * 24 * time.Hour
)

func newPlatform(c *platforms.Platform, rule platforms.ConsentRule, slots []slot, random *rand.Rand) platform {
	p := platform{config: c, rule: consent.NewRule(rule)}
	switch c.Type {
	case platforms.TypeLog:
		p.latencies = []int64{0, 0, 0, 0, 1}
		return p
	case platforms.TypeWebhook:
		p.latencies, p.refusal = []int64{14, 18, 21, 24, 28, 33, 39, 48, 66, 120, 480}, "http_422"
	default:
		p.latencies, p.refusal = []int64{70, 95, 110, 124, 138, 155, 176, 205, 260, 410, 2100}, "code_100"
	}
	// In the middle half of the past, so that it is seen and is over.
	p.downFrom = slots[len(slots)/4+random.IntN(len(slots)/2+1)].start
	p.downTo = p.downFrom + outage.Milliseconds()
	return p
}

// deliver returns what became of an event on the platform.
func (p *platform) deliver(g *generator, e *event.Event, position stream.Position) stream.Record {
	received := position.Time()
	r := stream.Record{Event: position, Platform: p.config.Name, At: received.Add(p.wait(g.random))}
	if reason := p.skips(e); reason != "" {
		r.Status, r.Reason = stream.Skipped, reason
		return r
	}
	r.Status, r.Attempts, r.Latency = stream.Delivered, 1, p.latency(g.random)
	fate := g.random.IntN(1000)
	switch at := received.UnixMilli(); {
	case p.downFrom <= at && at < p.downTo:
		back := time.Duration(p.downTo-at) * time.Millisecond
		r.Attempts += 2 + int(back/(10*time.Minute))
		r.At = r.At.Add(back + time.Duration(g.random.IntN(600_000))*time.Millisecond)
	case p.refusal == "":
	case fate < 5:
		r.Status, r.Reason = stream.Failed, p.refusal
	case fate < 6 && received.Add(maxAge).Before(g.options.End):
		r.Status, r.Reason, r.Attempts, r.At = stream.Expired, "too_old", 1000+g.random.IntN(200), received.Add(maxAge)
	case fate < 26:
		r.Attempts += 1 + g.random.IntN(4)
		r.At = r.At.Add(time.Duration(1+g.random.IntN(1<<r.Attempts)) * time.Second)
	}
	r.At = r.At.Add(r.Latency)
	return r
}

// skips returns why the platform does not get the event, "" where it does.
func (p *platform) skips(e *event.Event) string {
	withheld := p.rule.Judge(&e.Consent).Withheld
	switch {
	case len(p.config.Events) > 0 && !slices.Contains(p.config.Events, e.Name):
		return "event_excluded"
	case withheld != "":
		return withheld
	case p.config.Type != platforms.TypeMeta:
		return ""
	case e.Name == event.Refund:
		return "no_mapping"
	case e.ClientID == "" && e.User == event.Hashes{} && e.Context.IP == "":
		return "no_identifier"
	}
	return ""
}

// wait is how long it takes until an event is on its way.
func (p *platform) wait(random *rand.Rand) time.Duration {
	return time.Duration(2+random.IntN(40)) * time.Millisecond
}

func (p *platform) latency(random *rand.Rand) time.Duration {
	i := random.IntN(len(p.latencies) - 1)
	low, high := p.latencies[i], p.latencies[i+1]
	return time.Duration(low+random.Int64N(high-low+1)) * time.Millisecond
}
