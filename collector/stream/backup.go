package stream

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// ErrMissing says that Redis has nothing of a property.
var ErrMissing = errors.New("redis has nothing of the Property")

// Backup hands on all that Redis has of the property, as of one moment, the cut: what moves is read in one step, and then the
// streams up to where they ended in it. So deliveries, appends and trimming go on. Erasures wait until it is over, and it fails with
// [ErrErased] where one did not. A progress with a cut is gone on with: emit is then not called for what that has. It is noted in
// the progress once emit has returned. It fails with [ErrMissing] where there is nothing.
//
// Redis is asked for steps that it answers at once, the cut apart, which takes longer the more events wait for another attempt.
func (s *Stream) Backup(ctx context.Context, progress *BackupProgress, emit func(*Piece) error) error {
	noted := func(p *Piece) error {
		if err := p.Check(); err != nil {
			return fmt.Errorf("redis has something under key %s that is not Weir's", p.Key)
		}
		if err := emit(p); err != nil {
			return err
		}
		return progress.Note(p)
	}
	release, err := s.holdErasures(ctx)
	if err != nil {
		return err
	}
	defer release()
	if progress.whole {
		if err := s.checkUnerased(ctx, progress); err != nil {
			return err
		}
	} else if err := s.beginBackup(ctx, noted); err != nil {
		return err
	}
	for _, key := range s.keys.endedStreams() {
		if err := s.backUpStream(ctx, progress, key, noted); err != nil {
			return err
		}
	}
	if err := s.backUpBuckets(ctx, progress, noted); err != nil {
		return err
	}
	if err := s.backUpNamed(ctx, progress, noted); err != nil {
		return err
	}
	return s.checkUnerased(ctx, progress)
}

// beginBackup hands on what is read before the streams.
func (s *Stream) beginBackup(ctx context.Context, emit func(*Piece) error) error {
	known, err := s.redis.Exists(ctx, s.keys.events(), s.keys.deliveries(), s.keys.erasureLedger()).Result()
	if err != nil {
		return fmt.Errorf("look for the property: %w", err)
	}
	if known == 0 {
		return ErrMissing
	}
	// How far shops were read is read before the cut: an order that is read twice is stored once.
	err = s.eachKey(ctx, s.keys.source("*"), func(ctx context.Context, names []string) error {
		for _, key := range names {
			text, err := s.redis.Get(ctx, key).Result()
			if errors.Is(err, redis.Nil) {
				continue
			}
			if err != nil {
				return fmt.Errorf("read how far a shop was read: %w", err)
			}
			expires, err := s.expiry(ctx, key)
			if err != nil {
				return err
			}
			if err := emit(&Piece{Kind: PieceText, Key: s.keys.within(key), Expires: expires, Items: []string{text}}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return s.cut(ctx, emit)
}

// expiry returns the millisecond at which a key expires, 0 for never.
func (s *Stream) expiry(ctx context.Context, key string) (int64, error) {
	at, err := s.redis.Do(ctx, "PEXPIRETIME", key).Int64()
	if err != nil {
		return 0, fmt.Errorf("look when something expires: %w", err)
	}
	return max(at, 0), nil
}

// eachKey calls do with the property's keys that a pattern matches, some at a time. A key may be in it twice.
func (s *Stream) eachKey(ctx context.Context, pattern string, do func(context.Context, []string) error) error {
	client := &Client{redis: s.redis}
	return client.eachPrimary(ctx, func(ctx context.Context, node redis.Cmdable) error {
		for cursor := uint64(0); ; {
			found, next, err := node.Scan(ctx, cursor, pattern, scanBatch).Result()
			if err == nil && len(found) > 0 {
				err = do(ctx, found)
			}
			if err != nil {
				return fmt.Errorf("look through the property's keys: %w", err)
			}
			if cursor = next; cursor == 0 {
				return nil
			}
		}
	})
}

const (
	// readFirst is how many entries of a stream are read first; of how large those were the next number is made.
	readFirst = 100
	// readMost is how many entries are read at once at most.
	readMost = 5000
)

// backUpStream hands on a stream's entries up to where it ended at the cut.
func (s *Stream) backUpStream(ctx context.Context, progress *BackupProgress, key string, emit func(*Piece) error) error {
	name := s.keys.within(key)
	end, there := progress.ends[name]
	if !there {
		return nil
	}
	count, from := int64(readFirst), "-"
	if last, begun := progress.last[name]; begun {
		from = "(" + last.String()
	}
	e := pieceEmitter{piece: Piece{Kind: PieceEntries, Key: name}, emit: emit}
	for {
		list, err := s.redis.Do(ctx, "XRANGE", key, from, end.String(), "COUNT", count).Slice()
		if err != nil {
			return fmt.Errorf("read a stream: %w", err)
		}
		items, bytes := itemsOf(list), 0
		for i := 0; i < len(items); i += 3 {
			bytes += len(items[i+2])
			if err := e.add(items[i : i+3]...); err != nil {
				return err
			}
		}
		if int64(len(list)) < count {
			return e.flush()
		}
		last, _ := list[len(list)-1].([]any)
		from = "(" + textsOf(last)[0]
		count = int64(min(max(pieceBytes/(bytes/len(list)+1), 1), readMost))
	}
}

// backUpNamed hands on the hashes of which there may be many, orders and states of erasures, without what came after the cut.
func (s *Stream) backUpNamed(ctx context.Context, progress *BackupProgress, emit func(*Piece) error) error {
	after := func(id string) bool {
		position, err := ParsePosition(id)
		return err == nil && position > progress.ends["events"]
	}
	return s.eachKey(ctx, s.keys.pattern(), func(ctx context.Context, names []string) error {
		var wanted []string
		for _, key := range names {
			name := s.keys.within(key)
			if orderName.MatchString(name) || strings.HasPrefix(name, "erasure:state:") {
				wanted = append(wanted, key)
			}
		}
		if len(wanted) == 0 {
			return nil
		}
		values, expiries := make([]*redis.MapStringStringCmd, len(wanted)), make([]*redis.Cmd, len(wanted))
		_, err := s.redis.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for i, key := range wanted {
				values[i], expiries[i] = pipe.HGetAll(ctx, key), pipe.Do(ctx, "PEXPIRETIME", key)
			}
			return nil
		})
		if err != nil {
			return err
		}
		for i, key := range wanted {
			fields, name := values[i].Val(), s.keys.within(key)
			if orderName.MatchString(name) {
				withoutLater(fields, after)
			} else if at, err := strconv.ParseInt(fields[stateRequested], 10, 64); err == nil && at > progress.at {
				continue
			}
			expires, _ := expiries[i].Int64()
			if expires == -2 || len(fields) == 0 { // it has gone meanwhile
				continue
			}
			var items []string
			for _, field := range slices.Sorted(maps.Keys(fields)) {
				items = append(items, field, fields[field])
			}
			if err := emitAll(PieceHash, name, max(expires, 0), items, emit); err != nil {
				return err
			}
		}
		return nil
	})
}

// withoutLater takes out of what is known of an order the refunds that came after the cut: they will come again, as other events.
func withoutLater(fields map[string]string, after func(id string) bool) {
	for name := range fields {
		if id, refund := strings.CutPrefix(name, "refund:"); refund && after(id) {
			delete(fields, name)
		}
	}
	if after(fields["busy"]) {
		delete(fields, "busy")
		delete(fields, "busy_until")
	}
}

// checkUnerased fails with [ErrErased] where an erasure has taken something since the cut: it announces so among the records, or
// finishes what was open.
func (s *Stream) checkUnerased(ctx context.Context, progress *BackupProgress) error {
	open, err := s.redis.Do(ctx, "ZRANGE", s.keys.openErasures(), 0, -1, "WITHSCORES").Slice()
	if err != nil {
		return fmt.Errorf("look which erasures are open: %w", err)
	}
	now := pairsOf(open)
	for id, at := range progress.open {
		if now[id] != at {
			return ErrErased
		}
	}
	for after := progress.ends["deliveries"]; ; {
		records, err := s.ReadRecords(ctx, after, readFirst*10, 0)
		if _, unreadable := errors.AsType[*RecordsError](err); err != nil && !unreadable {
			return err
		}
		if len(records.Erased) > 0 {
			return ErrErased
		}
		if records.Last == after {
			return nil
		}
		after = records.Last
	}
}

// propertyName is what NAMESPACE/NAME looks like, eventsName the name of a property's stream of events.
var (
	propertyName = regexp.MustCompile(`^` + label + `/` + label + `$`)
	eventsName   = regexp.MustCompile(`^weir:\{(` + label + `/` + label + `)\}:events$`)
)

// label is a name as Kubernetes has them.
const label = `[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?`

// IsProperty says whether a text can be a Property's NAMESPACE/NAME.
func IsProperty(text string) bool { return propertyName.MatchString(text) }

// Properties returns the properties that Redis has events of, as NAMESPACE/NAME, in order. It looks through all keys.
func (c *Client) Properties(ctx context.Context) ([]string, error) {
	var mu sync.Mutex
	found := map[string]struct{}{}
	err := c.eachPrimary(ctx, func(ctx context.Context, node redis.Cmdable) error {
		for cursor := uint64(0); ; {
			names, next, err := node.ScanType(ctx, cursor, "weir:{*}:events", scanBatch, "stream").Result()
			if err != nil {
				return fmt.Errorf("look for properties: %w", err)
			}
			mu.Lock()
			for _, key := range names {
				if match := eventsName.FindStringSubmatch(key); match != nil {
					found[match[1]] = struct{}{}
				}
			}
			mu.Unlock()
			if cursor = next; cursor == 0 {
				return nil
			}
		}
	})
	return slices.Sorted(maps.Keys(found)), err
}
