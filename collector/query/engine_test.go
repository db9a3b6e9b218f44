package query

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
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

// halting answers as another engine, but that it is away once in so many pages.
type halting struct {
	learner
	every, asked int
	err          error
}

func (h *halting) Listing(ctx context.Context, q analytics.ListingQuery) (analytics.Page, error) {
	if h.asked++; h.asked%h.every == 0 {
		return analytics.Page{}, h.err
	}
	return h.learner.Listing(ctx, q)
}

func TestAnExportOutlivesAMomentWithoutItsEngine(t *testing.T) {
	for name, err := range map[string]error{"away": analytics.ErrUnavailable, "busy with others": fmt.Errorf("%w: quota", analytics.ErrBusy)} {
		t.Run(name, func(t *testing.T) {
			api, handler, made, _ := demoStream(t, newView, 4000)
			want := getAs(api, typeNDJSON, "shop/events?period=30d").Body.String()
			tenants := slices.Clone(*handler.tenants.Load())
			tenants[0].Engine = &halting{learner: made, every: 3, err: err}
			handler.Serve(tenants)
			answer := getAs(api, typeNDJSON, "shop/events?period=30d")
			if got := answer.Body.String(); answer.Code != http.StatusOK || got != want {
				t.Errorf("got %d and %d bytes, want %d", answer.Code, len(got), len(want))
			}
		})
	}
}

func TestAnExportHasNothingThatComesMeanwhile(t *testing.T) {
	onEachEngine(t, func(t *testing.T, engine engineMaker) {
		api, handler, made, source := demoStream(t, engine, 3000)
		for _, order := range []string{"desc", "asc"} {
			path := "shop/events?period=30d&order=" + order
			want := strings.Count(getAs(api, typeCSV, path).Body.String(), "\n")
			late := arrivals(t, 1, source.entries[len(source.entries)-1].Position.Time().Add(5*time.Millisecond))
			tenants := slices.Clone(*handler.tenants.Load())
			tenants[0].Engine = &interrupted{learner: made, meanwhile: func() error { return made.AddEvents(late) }}
			handler.Serve(tenants)
			if got := strings.Count(getAs(api, typeCSV, path).Body.String(), "\n"); got != want {
				t.Errorf("%s: %d lines, want %d", order, got, want)
			}
			source.entries = append(source.entries, late...)
			tenants[0].Engine = made
		}
	})
}

// interrupted has something happen before its second page.
type interrupted struct {
	learner
	asked     int
	meanwhile func() error
}

func (i *interrupted) Listing(ctx context.Context, q analytics.ListingQuery) (analytics.Page, error) {
	if i.asked++; i.asked == 2 {
		if err := i.meanwhile(); err != nil {
			return analytics.Page{}, err
		}
	}
	return i.learner.Listing(ctx, q)
}
