package stream

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/erasure"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
)

// aRequest is for somebody's erasure.
func aRequest() ErasureRequest {
	return ErasureRequest{ID: uuid.NewString(), Origin: "api:test", Identifiers: []event.Identifier{{1}}}
}

// keepLedger has whoever keeps the ledger take requests until the test ends.
func keepLedger(t *testing.T, s *Stream) {
	ctx, cancel := context.WithCancel(t.Context())
	var keeper sync.WaitGroup
	keeper.Go(func() {
		ticker := time.NewTicker(10 * time.Millisecond)
		defer ticker.Stop()
		for {
			requests, err := s.ErasureRequests(ctx, 1000)
			for _, request := range requests {
				err = errors.Join(err, s.Ledgered(ctx, request, []erasure.Entry{{Digest: erasure.Digest{1}, At: request.At}}))
			}
			if err != nil && ctx.Err() == nil {
				t.Error(err)
			}
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	})
	t.Cleanup(func() { cancel(); keeper.Wait() })
}

func TestWhoeverMayOnlyAskHasPersonsErased(t *testing.T) {
	for role, access := range map[string]Access{"a collector": AppendAccess, "a query pod": ReadAccess} {
		t.Run(role, func(t *testing.T) {
			address := redistest.URL(t)
			client := dial(t, address)
			user := User{Name: "asker", Password: "password", Access: access, Namespace: "default", Property: "shop"}
			if err := NewUsers(client).Set(t.Context(), []User{user}); err != nil {
				t.Fatal(err)
			}
			asking, err := Dial(strings.Replace(address, "unix://", "unix://asker:password@", 1), DialOptions{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := asking.Close(); err != nil {
					t.Error(err)
				}
			})
			keepLedger(t, client.Stream("default", "shop"))
			requester, request := ErasureRequester{asking.Stream("default", "shop")}, aRequest()
			state, err := requester.Erase(t.Context(), request)
			if err != nil || state.ID != request.ID || state.Ledgered.IsZero() {
				t.Fatalf("state %+v, error %v", state, err)
			}
			if again, err := requester.Erasure(t.Context(), request.ID); err != nil || again.Ledgered != state.Ledgered {
				t.Errorf("asked for later: %+v, %v", again, err)
			}
			if _, err := requester.Erasure(t.Context(), uuid.NewString()); !errors.Is(err, ErrNoErasure) {
				t.Errorf("an unknown one: %v, want %v", err, ErrNoErasure)
			}
			if list, _, err := requester.Stream.ReadLedger(t.Context(), 0, 10); err != nil || len(list) != 1 {
				t.Errorf("the ledger stream: %v, %v, want one entry", list, err)
			}
		})
	}
}

func TestWhatStandsInTheLedgerIsNotRequestedAgain(t *testing.T) {
	s := newStream(t)
	keepLedger(t, s)
	request := aRequest()
	for range 3 {
		if _, err := (ErasureRequester{s}).Erase(t.Context(), request); err != nil {
			t.Fatal(err)
		}
	}
	if list, _, err := s.ReadLedger(t.Context(), 0, 10); err != nil || len(list) != 1 {
		t.Errorf("the ledger stream has %d entries, error %v, want 1", len(list), err)
	}
}

func TestARequestThatNobodyTakesWaits(t *testing.T) {
	s := newStream(t)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := (ErasureRequester{s}).Erase(ctx, aRequest()); !errors.Is(err, ErrNotLedgered) {
		t.Errorf("error %v, want %v", err, ErrNotLedgered)
	}
	if requests, err := s.ErasureRequests(t.Context(), 10); err != nil || len(requests) != 1 {
		t.Errorf("%d requests wait, error %v, want 1", len(requests), err)
	}
}

func TestARequestThatIsNoneIsAnErrorAtOnce(t *testing.T) {
	if _, err := (ErasureRequester{newStream(t)}).Erase(t.Context(), ErasureRequest{ID: "x"}); err == nil || errors.Is(err, ErrNotLedgered) {
		t.Errorf("error %v", err)
	}
}
