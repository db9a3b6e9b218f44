package backup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-dev/weir/collector/stream"
)

// reachAgain is after how long a Redis is tried again.
const reachAgain = 500 * time.Millisecond

// reach tries for as long as the environment's patience whether Redis can be reached. What answers is not tried again, whatever it says.
func (e *Environment) reach(ctx context.Context, client *stream.Client, name string) error {
	deadline, ticker := time.Now().Add(e.Patience), time.NewTicker(reachAgain)
	defer ticker.Stop()
	for tried := 1; ; tried++ {
		err := client.Ping(ctx)
		if err == nil || !errors.Is(stream.Explain(err), stream.ErrUnreachable) || !time.Now().Before(deadline) {
			return err
		}
		if tried == 1 {
			fmt.Fprintf(e.Stderr, "%s: %v; it is tried again for %v\n", name, stream.Explain(err), e.Patience)
		}
		select {
		case <-ctx.Done():
			return err
		case <-ticker.C:
		}
	}
}
