package stream

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/wire"
)

const (
	// bucketScan is how many fields of a bucket are read at once.
	bucketScan = 2000
	// bucketSteps, withID and clockSlack are STEPS, WITH_ID and SLACK of weir.lua; claimHead is how long a record is without an id.
	bucketSteps, withID, clockSlack, claimHead = 10_000, 32_768, 60_000, 6
)

// errBucket says that a bucket was let go of while it was read.
var errBucket = errors.New("the time of some deduplication keys was up meanwhile, so that the backup has to begin anew")

// backUpBuckets hands on the buckets that were in use at the cut.
func (s *Stream) backUpBuckets(ctx context.Context, progress *BackupProgress, emit func(*Piece) error) error {
	for _, name := range slices.Sorted(maps.Keys(progress.buckets)) {
		root, slot, _ := strings.Cut(name, ":")
		value := progress.buckets[name]
		in := func() (bool, error) {
			now, err := s.redis.HMGet(ctx, s.keys.prefix+root, slot).Result()
			if err != nil {
				return false, fmt.Errorf("look which buckets are in use: %w", err)
			}
			return now[0] == value, nil
		}
		used, err := in()
		if err != nil {
			return err
		}
		if !used { // nothing reaches it any more
			continue
		}
		if err := s.backUpBucket(ctx, progress, name, value, emit); err != nil {
			return err
		}
		if used, err = in(); err != nil {
			return err
		}
		if !used {
			return errBucket
		}
	}
	return nil
}

// backUpBucket hands on a bucket. Of identifiers all that is there is right, whenever it was found out. Of deduplication keys those
// of later events must not be in the backup, which does not have these: whoever sends them again would be told that they are there.
func (s *Stream) backUpBucket(ctx context.Context, progress *BackupProgress, name, value string, emit func(*Piece) error) error {
	e := pieceEmitter{piece: Piece{Kind: PieceHash, Key: name}, emit: emit}
	var claims *claimSieve
	if strings.HasPrefix(name, "dedup:") {
		var err error
		if claims, err = newClaimSieve(value, progress.at); err != nil {
			return err
		}
	}
	for cursor := uint64(0); ; {
		found, next, err := s.redis.HScan(ctx, s.keys.prefix+name, cursor, "", bucketScan).Result()
		if err != nil {
			return fmt.Errorf("read a bucket: %w", err)
		}
		for i := 0; i+1 < len(found); i += 2 {
			field, records := found[i], found[i+1]
			if claims != nil {
				if records = claims.certain(field, records); records == "" {
					continue
				}
			}
			if err := e.add(field, records); err != nil {
				return err
			}
		}
		if cursor = next; cursor == 0 {
			break
		}
	}
	if claims != nil && len(claims.doubtful) > 0 {
		later, err := s.laterClaims(ctx, progress, claims.unit)
		if err != nil {
			return err
		}
		for _, field := range slices.Sorted(maps.Keys(claims.doubtful)) {
			if records := claims.without(claims.doubtful[field], field, later); records != "" {
				if err := e.add(field, records); err != nil {
					return err
				}
			}
		}
	}
	return e.flush()
}

// claimSieve parts the deduplication keys of a bucket that were recorded before the cut from those that came later. When one was
// recorded is known to a unit: those of the cut's own are doubtful until the events are known that came later.
type claimSieve struct {
	opened, unit, cut int64
	// doubtful are the records of fields of which some are.
	doubtful map[string]string
}

func newClaimSieve(value string, cut int64) (*claimSieve, error) {
	length, opened, _ := strings.Cut(value, ":")
	long, err := strconv.ParseInt(length, 10, 64)
	at, alsoErr := strconv.ParseInt(opened, 10, 64)
	if err != nil || alsoErr != nil || long < 1 {
		return nil, errors.New("what is noted of a bucket of deduplication keys is not Weir's")
	}
	return &claimSieve{opened: at, unit: (long + bucketSteps - 1) / bucketSteps, cut: cut, doubtful: map[string]string{}}, nil
}

// began returns the time from which on, and ended that up to which, a record may have been made.
func (c *claimSieve) time(record string) (from, to int64) {
	step := int64(binary.BigEndian.Uint16([]byte(record[4:claimHead]))) % withID
	from = c.opened + step*c.unit
	if step == 0 {
		from -= clockSlack
	}
	return from, c.opened + (step+1)*c.unit
}

// certain returns the records of a field that are of before the cut, "" where there are none, or where that is not known yet.
func (c *claimSieve) certain(field, records string) string {
	var kept strings.Builder
	for record := range eachClaim(records) {
		from, to := c.time(record)
		switch {
		case from > c.cut:
		case to > c.cut:
			c.doubtful[field] = records
			return ""
		default:
			kept.WriteString(record)
		}
	}
	return kept.String()
}

// without returns the records of a field that are not of later events, by their digests.
func (c *claimSieve) without(records, field string, later map[string]bool) string {
	var kept strings.Builder
	for record := range eachClaim(records) {
		from, to := c.time(record)
		if from <= c.cut && (to <= c.cut || !later[field+record[:4]]) {
			kept.WriteString(record)
		}
	}
	return kept.String()
}

// eachClaim returns the records of a field one by one, as far as they are whole.
func eachClaim(records string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for len(records) >= claimHead {
			n := claimHead
			if binary.BigEndian.Uint16([]byte(records[4:claimHead])) >= withID {
				if len(records) < claimHead+2 {
					return
				}
				n += 2 + int(binary.BigEndian.Uint16([]byte(records[claimHead:claimHead+2])))
			}
			if len(records) < n || !yield(records[:n]) {
				return
			}
			records = records[n:]
		}
	}
}

// laterClaims returns the digests of the deduplication keys of the events that came after the cut, up to a unit after it.
func (s *Stream) laterClaims(ctx context.Context, progress *BackupProgress, unit int64) (map[string]bool, error) {
	later := map[string]bool{}
	for after := progress.ends["events"]; ; {
		entries, err := s.ReadEvents(ctx, after, readFirst*10, 0)
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			after = entry.Position
			e, err := wire.Decode(entry.Data)
			if err != nil {
				continue
			}
			one := ErasedEvent{EventID: e.ID, IDSpace: uint8(e.Class)}
			if e.Name == event.Purchase {
				one.OrderID = e.OrderID
			}
			for digest := range slices.Chunk(one.digests(), digestSize) {
				later[string(digest)] = true
			}
		}
		if len(entries) == 0 || after.Milliseconds() > progress.at+unit+clockSlack {
			return later, nil
		}
	}
}
