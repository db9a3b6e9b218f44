package stream

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/redisserver"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
)

func rejection(id string) Rejection {
	return Rejection{
		ID: id, At: time.UnixMilli(1700000000000).UTC(), Endpoint: "collect", Event: "purchase", EventID: "e-" + id,
		Answer: json.RawMessage(`{"message":"The data.value field is required.","errors":{"data.value":["The data.value field is required."]}}`),
	}
}

func rejectionIDs(t testing.TB, s *Stream, limit int) []string {
	t.Helper()
	rejections, err := s.Rejections(context.Background(), limit)
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]string, len(rejections))
	for i, r := range rejections {
		ids[i] = r.ID
	}
	return ids
}

func newRejections(t testing.TB, s *Stream) *Rejections {
	return NewRejections(s, slog.New(slog.DiscardHandler))
}

func closeRejections(t testing.TB, r *Rejections) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := r.Close(ctx); err != nil {
		t.Error(err)
	}
}

func TestRejectionsAreReadTheNewestFirst(t *testing.T) {
	s := newStream(t)
	r := newRejections(t, s)
	r.Add(rejection("1"), rejection("2"))
	eventually(t, "the first two are written", func() bool { return len(rejectionIDs(t, s, 10)) == 2 })
	r.Add(rejection("3"))
	closeRejections(t, r)
	got, err := s.Rejections(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Rejection{rejection("3"), rejection("2")}, got); diff != "" {
		t.Errorf("rejections (-want +got):\n%s", diff)
	}
	if ttl := s.redis.PTTL(t.Context(), s.keys.rejections()).Val(); ttl <= rejectionsKept-time.Minute || ttl > rejectionsKept {
		t.Errorf("they live for %s, want %s", ttl, rejectionsKept)
	}
}

func TestTheNewestThousandRejectionsAreKept(t *testing.T) {
	s := newStream(t)
	var want []string
	for round := range 3 {
		r := newRejections(t, s)
		for n := range 700 {
			id := fmt.Sprintf("%d-%d", round, n)
			r.Add(rejection(id))
			want = append(want, id)
		}
		closeRejections(t, r)
	}
	want = want[len(want)-MaxRejections:]
	slices.Reverse(want)
	if diff := cmp.Diff(want, rejectionIDs(t, s, 5000)); diff != "" {
		t.Errorf("rejections (-want +got):\n%s", diff)
	}
}

func TestRejectionsWaitForRedisToComeBack(t *testing.T) {
	server := redistest.Start(t, redisserver.Options{Persist: true})
	s := dial(t, server.URL()).Stream("default", "shop")
	r := newRejections(t, s)
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for n := range MaxRejections + 200 {
		r.Add(rejection(fmt.Sprint(n)))
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("adding took %s, want no wait for redis", took)
	}
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the newest are written", func() bool {
		ids := rejectionIDs(t, s, MaxRejections)
		return len(ids) == MaxRejections && ids[0] == fmt.Sprint(MaxRejections+199)
	})
	closeRejections(t, r)
}

func TestARejectionThatIsNoneIsPassedOver(t *testing.T) {
	s := newStream(t)
	long := rejection("long")
	long.Event = string(make([]byte, maxRejectionSize))
	for _, one := range []any{rejection("1"), "junk", rejection("1"), long, rejection("2")} {
		text, ok := one.(string)
		if !ok {
			encoded, err := json.Marshal(one)
			if err != nil {
				t.Fatal(err)
			}
			text = string(encoded)
		}
		if err := s.redis.Do(t.Context(), "XADD", s.keys.rejections(), "*", rejectionField, text).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"2", "1"}, rejectionIDs(t, s, 10)); diff != "" {
		t.Errorf("rejections (-want +got):\n%s", diff)
	}
}
