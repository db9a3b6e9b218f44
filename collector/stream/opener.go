package stream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/weir-dev/weir/collector/event/wire"
)

const (
	// heldFor is for how long a key is held in memory, or its absence: one that is dropped opens nothing for longer.
	heldFor = time.Minute
	// mostHeld bounds how many are held. Entries may name any number of periods.
	mostHeld = 10_000
)

// Opening returns the stream for a reader of sealed parts: the entries that it hands out have these parts opened, as far as
// their keys are still there. The keys are asked for once a minute. A read fails where Redis does not say which there are.
func (s *Stream) Opening(parts ...wire.Part) *Stream {
	return &Stream{redis: s.redis, keys: s.keys, opener: &opener{stream: s, parts: parts, held: map[keyOf]heldKey{}}}
}

// opener opens parts of entries.
type opener struct {
	stream *Stream
	parts  []wire.Part
	mutex  sync.Mutex
	held   map[keyOf]heldKey
}

// keyOf says which key it is: that of a part's period.
type keyOf struct {
	part   wire.Part
	period uint64
}

// heldKey is what Redis said of a key, nil where it has none, and until when that is taken for true.
type heldKey struct {
	*wire.Key
	until time.Time
}

// entries opens the parts of entries.
func (o *opener) entries(ctx context.Context, entries []Entry) error {
	return o.open(ctx, len(entries), func(i int) *Entry { return &entries[i] })
}

// deliveries opens the parts of deliveries' entries. Where that fails it returns none: they come again, like those that a
// deliverer has taken that died.
func (o *opener) deliveries(ctx context.Context, deliveries []Delivery) ([]Delivery, error) {
	if err := o.open(ctx, len(deliveries), func(i int) *Entry { return &deliveries[i].Entry }); err != nil {
		return nil, err
	}
	return deliveries, nil
}

// open opens the parts of n entries.
func (o *opener) open(ctx context.Context, n int, at func(int) *Entry) error {
	if o == nil {
		return nil
	}
	sealed, wanted := make([][]byte, n), map[keyOf]bool{}
	for i := range n {
		data := at(i).Data
		for _, box := range wire.Boxes(data) {
			if slices.Contains(o.parts, box.Part) {
				sealed[i], wanted[keyOf{box.Part, box.Period}] = data, true
			}
		}
	}
	// Redis may have come back without a key that is held, and have another by now. What the second time does not open is no
	// more: nobody has the key that it was sealed under.
	for _, anew := range []bool{false, true} {
		if len(wanted) == 0 {
			return nil
		}
		keys, err := o.keys(ctx, wanted, anew)
		if err != nil {
			return err
		}
		wanted = map[keyOf]bool{}
		for i, data := range sealed {
			if data == nil {
				continue
			}
			if at(i).Data, err = wire.Open(data, keys.get); err == nil {
				sealed[i] = nil
				continue
			}
			for _, box := range wire.Boxes(data) {
				if slices.Contains(o.parts, box.Part) {
					wanted[keyOf{box.Part, box.Period}] = true
				}
			}
		}
	}
	return nil
}

// keyset are keys by what they are for, nil those that are gone.
type keyset map[keyOf]*wire.Key

func (k keyset) get(part wire.Part, period uint64) *wire.Key { return k[keyOf{part, period}] }

// keys returns those that are wanted, as they are held or, anew or where none is held, as Redis has them.
func (o *opener) keys(ctx context.Context, wanted map[keyOf]bool, anew bool) (keyset, error) {
	found, missing := keyset{}, make([][]string, wire.PartCount)
	o.mutex.Lock()
	now := time.Now()
	for of := range wanted {
		if held, known := o.held[of]; known && now.Before(held.until) && !anew {
			found[of] = held.Key
		} else {
			missing[of.part] = append(missing[of.part], strconv.FormatUint(of.period, 10))
		}
	}
	o.mutex.Unlock()
	for part, periods := range missing {
		if len(periods) == 0 {
			continue
		}
		if err := o.ask(ctx, wire.Part(part), periods, found); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// ask has Redis say which keys of a part's periods there are.
func (o *opener) ask(ctx context.Context, part wire.Part, periods []string, found keyset) error {
	asked := time.Now()
	values, err := o.stream.redis.HMGet(ctx, o.stream.keys.seal(part), periods...).Result()
	if err != nil {
		return fmt.Errorf("read keys of sealed parts: %w", err)
	}
	if len(values) != len(periods) {
		return errors.New("redis did not say of each key of sealed parts whether it is there")
	}
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if len(o.held)+len(periods) > mostHeld {
		clear(o.held)
	}
	for i, value := range values {
		period, err := strconv.ParseUint(periods[i], 10, 64)
		if err != nil {
			return err
		}
		stored, _ := value.(string)
		_, key, _ := parseKey(stored) // nil for what is no key
		found[keyOf{part, period}] = key
		o.held[keyOf{part, period}] = heldKey{key, asked.Add(heldFor)}
	}
	return nil
}
