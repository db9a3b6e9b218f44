package stream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
)

// Metrics tell how a property's Redis does. Their labels are names of Redis commands and of our functions and
// kinds of errors, nothing of the events. One set may serve the client and the appender of one property.
type Metrics struct {
	appendSeconds prometheus.Histogram
	batchEvents   prometheus.Histogram
	errors        *prometheus.CounterVec
}

// NewMetrics makes the metrics and registers them. It fails where the registerer has them already.
func NewMetrics(registerer prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		appendSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "weir_append_duration_seconds",
			Help: "Time from sending a batch of events to Redis until it was acknowledged or given up, resends included.",
			Buckets: []float64{
				.00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2,
			},
		}),
		batchEvents: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "weir_append_batch_events",
			Help:    "Events that were sent to Redis together, in one call.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 10),
		}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_redis_errors_total",
			Help: "Commands that Redis did not carry out, by command (\"dial\" for connecting) and kind of error.",
		}, []string{"command", "kind"}),
	}
	for _, collector := range []prometheus.Collector{m.appendSeconds, m.batchEvents, m.errors} {
		if err := registerer.Register(collector); err != nil {
			return nil, fmt.Errorf("stream: registering metrics: %w", err)
		}
	}
	return m, nil
}

// Observe counts in m what Redis refuses or leaves unanswered from now on. It is called once, before the client
// is used.
func (c *Client) Observe(m *Metrics) { c.redis.AddHook(errorHook{m.errors}) }

// committed records a batch that was acknowledged or given up. A nil m records nothing.
func (m *Metrics) committed(events int, took time.Duration) {
	if m == nil {
		return
	}
	m.batchEvents.Observe(float64(events))
	m.appendSeconds.Observe(took.Seconds())
}

// errorHook counts failed commands. It is a [redis.Hook].
type errorHook struct{ errors *prometheus.CounterVec }

// DialHook counts connections that could not be made.
func (h errorHook) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		connection, err := next(ctx, network, address)
		h.count("dial", err)
		return connection, err
	}
}

// ProcessHook counts a command that failed.
func (h errorHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, command redis.Cmder) error {
		err := next(ctx, command)
		h.count(command.Name(), err)
		return err
	}
}

// ProcessPipelineHook counts each command of a pipeline that failed.
func (h errorHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		err := next(ctx, commands)
		for _, command := range commands {
			h.count(command.Name(), command.Err())
		}
		return err
	}
}

func (h errorHook) count(command string, err error) {
	if kind := errorKind(err); kind != "" {
		h.errors.WithLabelValues(command, kind).Inc()
	}
}

// replyKinds are the kinds of errors that Redis replies with, by how they begin.
var replyKinds = []struct{ prefix, kind string }{
	{"OOM", "full"}, {"MISCONF", "disk"}, {"READONLY", "readonly"}, {"MASTERDOWN", "readonly"}, {"LOADING", "loading"},
	{"BUSY ", "busy"}, {"NOPERM", "denied"}, {"NOAUTH", "denied"}, {"WRONGPASS", "denied"}, {"CLUSTERDOWN", "cluster"},
	{"Function not found", "library"}, {"NOGROUP", "group"},
}

// errorKind names what kind of error err is, from a closed list; "" where it is none worth counting: a missing
// value, a group that exists already, a caller that has gone.
func errorKind(err error) string {
	var reply redis.Error
	var network net.Error
	switch {
	case err == nil, errors.Is(err, redis.Nil), errors.Is(err, context.Canceled), redis.HasErrorPrefix(err, "BUSYGROUP"):
		return ""
	case errors.As(err, &reply):
		for _, known := range replyKinds {
			if redis.HasErrorPrefix(err, known.prefix) {
				return known.kind
			}
		}
		return "reply"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return "timeout"
	default:
		return "connection"
	}
}
