package audit

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-dev/weir/collector/auth"
)

const (
	// registerTimeout bounds one question to the register, and registerPause is between attempts where it does not answer.
	registerTimeout = 2 * time.Second
	registerPause   = time.Second
)

// Register remembers, for all processes of a property, which API keys or access tokens have been used. [stream.Uses] is one.
type Register interface {
	// FirstUse notes a use of what hash is of, and says whether it is the first. Asked again about the same use, it answers
	// the same.
	FirstUse(ctx context.Context, hash [sha256.Size]byte, at time.Time) (bool, error)
}

// FirstUses writes down when each API key, or each access token, of a property is used for the first time. The register is
// asked behind the requests, once for each in a process. Where it does not answer, the line is written when it does. It is
// safe for concurrent use. A nil one notes nothing.
type FirstUses struct {
	property string
	log      *Log
	register Register
	logger   *slog.Logger

	mutex   sync.Mutex
	known   map[credential]*Use
	waiting []*Use

	added chan struct{} // of capacity 1
	stop  chan struct{}
	ended chan struct{}
}

// Use is what is known of one API key or access token in this process. A nil one notes nothing.
type Use struct {
	uses *FirstUses
	credential
	noted atomic.Bool
	at    time.Time // set once, before it is handed on
}

// credential is an API key or access token by its hash and as the Property names it now.
type credential struct {
	hash  auth.Hash
	party Party
}

// NewFirstUses starts to write for the property NAMESPACE/NAME; [FirstUses.Close] ends it.
func NewFirstUses(property string, log *Log, register Register, logger *slog.Logger) *FirstUses {
	f := &FirstUses{
		property: property, log: log, register: register, logger: logger, known: map[credential]*Use{},
		added: make(chan struct{}, 1), stop: make(chan struct{}), ended: make(chan struct{}),
	}
	go f.run()
	return f
}

// Of returns what a credential's uses are noted by. It is the same one for as long as the process runs.
func (f *FirstUses) Of(c auth.Credential) *Use {
	if f == nil {
		return nil
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	id := credential{c.Hash, CredentialOf(c)}
	if f.known[id] == nil {
		f.known[id] = &Use{uses: f, credential: id}
	}
	return f.known[id]
}

// Note notes a use. It never waits, and costs nothing worth speaking of from the second one on.
func (u *Use) Note() {
	if u == nil || u.noted.Load() || !u.noted.CompareAndSwap(false, true) {
		return
	}
	f := u.uses
	u.at = f.log.now()
	f.mutex.Lock()
	f.waiting = append(f.waiting, u)
	f.mutex.Unlock()
	f.wake()
}

func (f *FirstUses) wake() {
	select {
	case f.added <- struct{}{}:
	default: // it has been told
	}
}

// Close writes what was noted before and ends it. It waits no longer than ctx; it is called once. What the register could
// not be asked about is told by the next process that notes it.
func (f *FirstUses) Close(ctx context.Context) error {
	if f == nil {
		return nil
	}
	close(f.stop)
	select {
	case <-f.ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("write the last first uses of keys and tokens: %w", ctx.Err())
	}
}

// run asks about what is noted until the end.
func (f *FirstUses) run() {
	defer close(f.ended)
	failed := false
	for {
		select {
		case <-f.added:
		case <-f.stop:
			if err := f.flush(); err != nil {
				f.logger.Warn("first uses of keys and tokens are left to the next process that notes them", "error", err)
			}
			return
		}
		err := f.flush()
		if err != nil && !failed {
			f.logger.Warn("first uses of keys and tokens are not in the audit log until they can be looked up", "error", err)
		}
		if failed = err != nil; !failed {
			continue
		}
		select {
		case <-f.stop:
		case <-time.After(registerPause):
			f.wake()
		}
	}
}

// flush asks about what waits. What the register does not answer about waits on.
func (f *FirstUses) flush() error {
	f.mutex.Lock()
	taken := f.waiting
	f.waiting = nil
	f.mutex.Unlock()
	for i, u := range taken {
		if err := f.tell(u); err != nil {
			f.mutex.Lock()
			f.waiting = slices.Concat(taken[i:], f.waiting)
			f.mutex.Unlock()
			return err
		}
	}
	return nil
}

// tell writes a use down where it is the first.
func (f *FirstUses) tell(u *Use) error {
	ctx, cancel := context.WithTimeout(context.Background(), registerTimeout)
	defer cancel()
	first, err := f.register.FirstUse(ctx, u.hash, u.at)
	if err == nil && first {
		f.log.Write(ctx, Entry{Time: u.at, Act: CredentialFirstUsed, Property: f.property, Actor: u.party, Object: u.party, Outcome: Success})
	}
	return err
}
