package query

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-dev/weir/collector/analytics"
)

// exportOfShop is the export of the demo's events in a format, as the answer has it.
func exportOfShop(t *testing.T, api http.Handler, kind, query string) string {
	t.Helper()
	answer := askWith(api, http.MethodGet, "/api/v1/properties/shop/events?period=30d"+query, map[string]string{"Authorization": "Bearer wt_shop", "Accept": kind})
	if answer.Code != http.StatusOK {
		t.Fatalf("got %d %s", answer.Code, answer.Body)
	}
	return answer.Body.String()
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
			want := exportOfShop(t, api, typeNDJSON, "")
			tenants := slices.Clone(*handler.tenants.Load())
			tenants[0].Engine = &halting{learner: made, every: 3, err: err}
			handler.Serve(tenants)
			if got := exportOfShop(t, api, typeNDJSON, ""); got != want {
				t.Errorf("got %d bytes, want %d", len(got), len(want))
			}
		})
	}
}

func TestAnExportHasNothingThatComesMeanwhile(t *testing.T) {
	onEachEngine(t, func(t *testing.T, engine engineMaker) {
		api, handler, made, source := demoStream(t, engine, 3000)
		for _, order := range []string{"desc", "asc"} {
			want := strings.Count(exportOfShop(t, api, typeCSV, "&order="+order), "\n")
			late := arrivals(t, 1, source.entries[len(source.entries)-1].Position.Time().Add(5*time.Millisecond))
			tenants := slices.Clone(*handler.tenants.Load())
			tenants[0].Engine = &interrupted{learner: made, meanwhile: func() error { return made.AddEvents(late) }}
			handler.Serve(tenants)
			if got := strings.Count(exportOfShop(t, api, typeCSV, "&order="+order), "\n"); got != want {
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
