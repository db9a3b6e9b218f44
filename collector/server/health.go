package server

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// checkTimeout bounds a readiness check; one that takes longer is a failed one.
const checkTimeout = 2 * time.Second

// Check is one condition of readiness.
type Check struct {
	// Name is what the check looks at: "redis".
	Name string
	// Ready returns nil or the reason why requests cannot be served. The reason is shown to whoever asks, so it
	// holds no secret. Ready heeds its context.
	Ready func(context.Context) error
}

// Health answers whether the process lives and whether it can serve. Living asks for nothing but an answer: a
// restart mends neither a Redis that is gone nor a replay that is under way.
type Health struct {
	checks   []Check
	draining atomic.Bool
}

// NewHealth returns a Health that is ready when every check is.
func NewHealth(checks ...Check) *Health { return &Health{checks: checks} }

// Drain turns readiness false for good.
func (h *Health) Drain() { h.draining.Store(true) }

// report is the body of /livez and /readyz.
type report struct {
	Status string            `json:"status"`
	Checks map[string]string `json:"checks,omitempty"`
}

func (h *Health) live(w http.ResponseWriter, _ *http.Request) {
	JSON(w, http.StatusOK, report{Status: "ok"})
}

func (h *Health) ready(w http.ResponseWriter, r *http.Request) {
	if h.draining.Load() {
		JSON(w, http.StatusServiceUnavailable, report{Status: "draining"})
		return
	}
	answer, status := report{Status: "ok", Checks: map[string]string{}}, http.StatusOK
	for i, err := range h.run(r.Context()) {
		answer.Checks[h.checks[i].Name] = "ok"
		if err != nil {
			answer.Checks[h.checks[i].Name] = err.Error()
			answer.Status, status = "unavailable", http.StatusServiceUnavailable
		}
	}
	JSON(w, status, answer)
}

// run makes all checks at once, so that a slow one does not use up the time of the others.
func (h *Health) run(ctx context.Context) []error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	results := make([]error, len(h.checks))
	var all sync.WaitGroup
	for i, check := range h.checks {
		all.Go(func() { results[i] = check.Ready(ctx) })
	}
	all.Wait()
	return results
}

// OperationsHandler serves /livez, /readyz and /metrics. It belongs on a listener of its own that no ingress
// leads to.
func OperationsHandler(health *Health, metrics prometheus.Gatherer) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", health.live)
	mux.HandleFunc("GET /readyz", health.ready)
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	mux.HandleFunc("/", NotFound)
	return mux
}
