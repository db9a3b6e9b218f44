package deliver

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
)

func TestALeaseIsKeptInTheMidstOfWhatTakesLong(t *testing.T) {
	const patience = time.Minute
	for name, tt := range map[string]struct {
		// asks says that whoever has the lease asks for it in the midst of its work, every so often.
		asks     bool
		every    time.Duration
		wantKept bool
	}{
		"who asks now and then keeps it":                           {true, patience / 2, true},
		"who asks again and again keeps it":                        {true, patience / 100, true},
		"who does not ask loses it, and learns of it when it asks": {false, patience / 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			h, now := newHarness(t), time.Duration(0)
			deliverer := func() *lease {
				return &lease{
					look:  func(ctx context.Context) (string, error) { return h.stream.Writer(ctx, "lake") },
					write: func(ctx context.Context, text string) error { return h.stream.LockWriter(ctx, "lake", text) },
					token: uuid.NewString(), monotonic: func() time.Duration { return now }, patience: patience,
				}
			}
			ask := func(has func(context.Context) (bool, error)) bool {
				t.Helper()
				mine, err := has(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				return mine
			}
			holder, other := deliverer(), deliverer()
			if !ask(holder.mine) {
				t.Fatal("nobody has the lease, and the first who asks does not get it")
			}
			for end := 3 * patience; now < end; now += tt.every {
				if tt.asks && !ask(holder.keep) {
					t.Fatalf("it has lost the lease after %s", now)
				}
				if ask(other.mine) != (!tt.wantKept && now >= patience) {
					t.Errorf("after %s the other one has it, or has it not", now)
				}
			}
			if got := ask(holder.keep); got != tt.wantKept {
				t.Errorf("it has the lease: %t, want %t", got, tt.wantKept)
			}
		})
	}
}
