package stream

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/collector/redisserver/redistest"
)

func TestClusterSpreadsProperties(t *testing.T) {
	client := dial(t, redistest.StartCluster(t).URL)
	ctx := t.Context()
	if err := client.Check(ctx); err != nil {
		t.Errorf("Check = %v, want nil", err)
	}
	for i := range 12 {
		s := client.Stream("default", fmt.Sprint("shop-", i))
		a := newAppender(t, s, AppenderOptions{})
		mustAppend(t, a, addition("one", "order"), addition("two", "order"), addition("three", ""))
		if n := len(allEvents(t, s)); n != 2 {
			t.Errorf("property %d has %d events, want 2", i, n)
		}
		if _, err := s.EnsureGroup(ctx, "meta", GroupState{}); err != nil {
			t.Fatal(err)
		}
		taken := mustRead(t, s, "pod-1", 10)
		mustSettle(t, s, decided(taken[0], Delivered, 1), retryAt(taken[1], 1, time.Now()))
		if due := mustDue(t, s, time.Now().Add(time.Second), time.Minute); len(due) != 1 {
			t.Errorf("property %d has %d due events, want 1", i, len(due))
		}
		if records := allRecords(t, s); len(records) != 2 {
			t.Errorf("property %d has %d records, want 2", i, len(records))
		}
		if _, err := s.Allow(ctx, Rate{EventsPerSecond: 5}, 1); err != nil {
			t.Error(err)
		}
		trimAll(t, s, TrimPolicy{MaxEvents: 1})
		if err := client.Erase(ctx, "default", fmt.Sprint("shop-", i)); err != nil {
			t.Error(err)
		}
		if bounds, err := s.Bounds(ctx); err != nil || bounds != (Bounds{}) {
			t.Errorf("property %d after deletion: Bounds = %+v, %v", i, bounds, err)
		}
	}
}

func TestAClusterIsAskedAnewOncePerPause(t *testing.T) {
	reloads, now := 0, time.Now()
	l := &lookAgain{reload: func(context.Context) { reloads++ }, now: func() time.Time { return now }}
	away := errors.New("no answer")
	for _, step := range []struct {
		name  string
		after time.Duration
		err   error
		want  int
	}{
		{"an answer", 0, nil, 0},
		{"all connections are in use", 0, fmt.Errorf("get: %w", redis.ErrPoolTimeout), 0},
		{"a node does not answer", 0, away, 1},
		{"again at once", 0, away, 1},
		{"again before the pause is over", reloadEvery - 1, away, 1},
		{"again after it", 1, away, 2},
		{"the caller has gone", reloadEvery, context.Canceled, 2},
		{"a node does not answer once more", 0, away, 3},
	} {
		now = now.Add(step.after)
		if err := l.after(t.Context(), step.err); !errors.Is(err, step.err) {
			t.Errorf("%s: error = %v, want %v", step.name, err, step.err)
		}
		if reloads != step.want {
			t.Errorf("%s: asked %d times so far, want %d", step.name, reloads, step.want)
		}
	}
}
