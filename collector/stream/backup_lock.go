package stream

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
)

const (
	// holdWait is for how long a backup waits for whoever erases, and holdLook how often it looks.
	holdWait = 15 * time.Minute
	holdLook = 500 * time.Millisecond
	// holdSay is how often a backup says that it holds erasures up: others believe it dead after half a minute.
	holdSay = 5 * time.Second
)

// errErasing says that a backup cannot begin because persons are erased all the time.
var errErasing = errors.New("persons are being erased; try again when that is done")

// holdErasures keeps deliverers from erasing until release is called: they take the backup for another one that does. Whoever has
// the lock writes it without looking, so whether nothing was erased is looked at again at the end. Whoever is asked to be erased is
// in no answer and no delivery meanwhile, since these go by the ledger.
func (s *Stream) holdErasures(ctx context.Context) (release func(), err error) {
	token := "backup-" + uuid.NewString()
	deadline := time.Now().Add(holdWait)
	ticker := time.NewTicker(holdLook)
	defer ticker.Stop()
	for said := false; ; {
		text, err := s.ErasureLock(ctx)
		if err != nil {
			return nil, err
		}
		mine := strings.HasPrefix(text, token)
		if mine && said {
			break // nobody who looked at the same time has written since
		}
		if text == "" || mine {
			if err := s.LockErasures(ctx, token+" 0"); err != nil {
				return nil, err
			}
			said = true
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-ticker.C:
		}
		if time.Now().After(deadline) {
			return nil, errErasing
		}
	}
	return s.keepHolding(ctx, token), nil
}

// keepHolding says again and again that the backup has the lock.
func (s *Stream) keepHolding(ctx context.Context, token string) (release func()) {
	ctx, cancel := context.WithCancel(ctx)
	var holder sync.WaitGroup
	holder.Go(func() {
		ticker := time.NewTicker(holdSay)
		defer ticker.Stop()
		for n := 1; ; n++ {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			if text, err := s.ErasureLock(ctx); err == nil && (text == "" || strings.HasPrefix(text, token)) {
				_ = s.LockErasures(ctx, token+" "+strconv.Itoa(n)) // what was erased without it is noticed at the end
			}
		}
	})
	return func() {
		cancel()
		holder.Wait()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		if text, err := s.ErasureLock(ctx); err == nil && strings.HasPrefix(text, token) {
			_ = s.UnlockErasures(ctx) // which ends by itself
		}
	}
}
