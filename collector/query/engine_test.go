package query

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/stream"
)

// failingEngine knows how far it has come and answers nothing.
type failingEngine struct{ err error }

func (failingEngine) Status(context.Context) analytics.Status {
	return analytics.Status{Ready: true, Last: stream.At(fixtureNow), AsOf: fixtureNow}
}

func (e failingEngine) Summary(context.Context, analytics.Range, analytics.Filter) (analytics.Summary, error) {
	return analytics.Summary{}, e.err
}

func (e failingEngine) Series(context.Context, []analytics.Range, analytics.Filter) (analytics.Series, error) {
	return analytics.Series{}, e.err
}

func (e failingEngine) Breakdown(context.Context, analytics.BreakdownQuery) (analytics.Breakdown, error) {
	return analytics.Breakdown{}, e.err
}

func (e failingEngine) EventStats(context.Context, analytics.StatsQuery) (analytics.Stats, error) {
	return analytics.Stats{}, e.err
}

func (e failingEngine) Deliveries(context.Context, analytics.DeliveriesQuery) (analytics.Deliveries, error) {
	return analytics.Deliveries{}, e.err
}

func (e failingEngine) Funnel(context.Context, analytics.FunnelQuery) (analytics.Funnel, error) {
	return analytics.Funnel{}, e.err
}

func (e failingEngine) Attribution(context.Context, analytics.AttributionQuery) (analytics.Attribution, error) {
	return analytics.Attribution{}, e.err
}

func (e failingEngine) Listing(context.Context, analytics.ListingQuery) (analytics.Page, error) {
	return analytics.Page{}, e.err
}

// An engine's error is answered alike by every call and in every format, and what stands behind it stays within.
func TestWhatAnEngineFailsWithIsAnswered(t *testing.T) {
	const secret = "ch.internal:8443"
	behind := errors.New("dial " + secret)
	for name, test := range map[string]struct {
		err error
		// want is the status, or the one of calls that can ask for less.
		want, orLess int
		retryAfter   string
		message      string
	}{
		"its store is away":               {errors.Join(analytics.ErrUnavailable, behind), 503, 503, "2", "The history cannot be read at the moment."},
		"its store is away, said wrapped": {fmt.Errorf("%w: %w", analytics.ErrUnavailable, behind), 503, 503, "2", "The history cannot be read at the moment."},
		"it is being rebuilt":             {analytics.ErrReplaying, 503, 503, "2", "The property's events are still being read."},
		"others have the memory":          {errors.Join(analytics.ErrBusy, behind), 503, 503, "1", "Too many queries are being answered."},
		"it takes too much memory":        {errors.Join(analytics.ErrTooCostly, behind), 503, 422, "2", ""},
		"it took too long":                {context.DeadlineExceeded, 503, 503, "2", "The request ended before its answer was ready."},
		"nobody foresaw it":               {errors.New("no such column"), 500, 500, "", "Server Error"},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			handler := New(Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), Now: func() time.Time { return fixtureNow }})
			source := &memory{}
			handler.Serve([]Tenant{{
				Property: config.Property{Namespace: "default", Name: "berlin", Currency: "EUR"}, Location: time.UTC, Tokens: tokensOf("berlin"),
				Engine: failingEngine{test.err}, Events: StreamEvents{source}, Records: StreamRecords{source},
			}})
			api := routes(handler)
			for _, call := range calls {
				answer := get(api, tokens["berlin"], "berlin/"+call)
				if answer.Code != test.want && answer.Code != test.orLess {
					t.Errorf("%s: got %d %s, want %d or %d", call, answer.Code, answer.Body, test.want, test.orLess)
				}
				if got := answer.Header().Get("Retry-After"); answer.Code == http.StatusServiceUnavailable && got != test.retryAfter {
					t.Errorf("%s: got Retry-After %q, want %q", call, got, test.retryAfter)
				}
				if test.message != "" && answer.Body.String() != message(test.message) {
					t.Errorf("%s: got %s, want %q", call, answer.Body, test.message)
				}
				if strings.Contains(answer.Body.String(), secret) {
					t.Errorf("%s: the answer says what stands behind the error: %s", call, answer.Body)
				}
			}
		})
	}
}
