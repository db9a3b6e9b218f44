package stream

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/collector/event/wire"
)

// DropKeys drops the keys of sealed parts that are older than an age each, from when their period ended: what was sealed
// under them is gone. Ages go by Redis's clock as far as it is believed; see [Clock]. It returns how many keys went. Call it as
// often as [Stream.Trim].
func (s *Stream) DropKeys(ctx context.Context, device, identity time.Duration) (went int64, err error) {
	reply, err := s.redis.FCall(ctx, functionDrop,
		[]string{s.keys.clock(), s.keys.seal(wire.Device), s.keys.seal(wire.Identity), s.keys.sealDropped()},
		device.Milliseconds(), identity.Milliseconds()).Int64Slice()
	if err != nil {
		return 0, describe("drop keys of sealed parts", err)
	}
	for _, n := range reply {
		went += n
	}
	return went, nil
}

// Dropped is what was dropped of the keys of sealed parts.
type Dropped struct {
	// Devices and Identities are the times before which no event has what was sealed; zero where nothing was dropped yet.
	Devices, Identities time.Time
	// At is when a key went last, by [Clock]; zero where none did. Redis's append-only file may have keys that are dropped until
	// it is rewritten.
	At time.Time
	// Rewritten is when the last rewrite began that [Stream.NoteRewritten] was told of; zero where none was. Where it is before At
	// there is a key in the file that is dropped, and the first of them has been there since Rewritten at the longest.
	Rewritten time.Time
}

// Dropped returns what was dropped.
func (s *Stream) Dropped(ctx context.Context) (Dropped, error) {
	return droppedOf(s.askDropped(ctx, s.redis))
}

func (s *Stream) askDropped(ctx context.Context, by redis.Cmdable) *redis.SliceCmd {
	return by.HMGet(ctx, s.keys.sealDropped(), wire.Device.String(), wire.Identity.String(), "at", "rewritten")
}

// droppedOf reads what [Stream.askDropped] has asked for.
func droppedOf(reply *redis.SliceCmd) (Dropped, error) {
	values, err := reply.Result()
	if err != nil {
		return Dropped{}, fmt.Errorf("read which keys of sealed parts were dropped: %w", err)
	}
	var numbers [4]int64
	for i, value := range values {
		if text, noted := value.(string); noted {
			if numbers[i], err = strconv.ParseInt(text, 10, 64); err != nil {
				return Dropped{}, errors.New("what is noted of dropped keys is no number")
			}
		}
	}
	var d Dropped
	for part, end := range [...]*time.Time{&d.Devices, &d.Identities} {
		if last := numbers[part]; last > 0 {
			*end = time.UnixMilli((last + 1) * wire.Part(part).Period().Milliseconds()).UTC()
		}
	}
	for i, at := range [...]*time.Time{&d.At, &d.Rewritten} {
		if ms := numbers[2+i]; ms > 0 {
			*at = time.UnixMilli(ms).UTC()
		}
	}
	return d, nil
}

// Now is the time that is believed, by which keys are dropped; see [Clock].
func (s *Stream) Now(ctx context.Context) (time.Time, error) { return s.now(ctx) }

// NoteRewritten notes that Redis has rewritten its append-only file, and when it began to, by [Stream.Now].
func (s *Stream) NoteRewritten(ctx context.Context, began time.Time) error {
	if err := s.redis.HSet(ctx, s.keys.sealDropped(), "rewritten", began.UnixMilli()).Err(); err != nil {
		return fmt.Errorf("note a rewrite of the append-only file: %w", err)
	}
	return nil
}
