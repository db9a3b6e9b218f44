package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/erasure"
)

// ErrNoErasure says that nothing is known of an erasure: it was never asked for, waits to be written to the ledger, or was
// so long ago that its state has expired.
var ErrNoErasure = errors.New("there is no erasure of this id")

// OriginLinked is the origin of a request that a deliverer makes for what it has seen together with an erasure's subject. It
// is a part of that erasure, and has its id.
const OriginLinked = "linked"

const (
	// MaxErasureIdentifiers is how many identifiers a request may have.
	MaxErasureIdentifiers = 1000
	// maxErasureRequest is how long a request may be as it is stored, in bytes; maxErasureOrigin how long its origin.
	maxErasureRequest, maxErasureOrigin = 16 << 10, 255
	// maxErasureRequests is how many requests are read at once.
	maxErasureRequests = 1000
	// erasureStateKept is for how long it is remembered what became of an erasure.
	erasureStateKept = 400 * 24 * time.Hour
	// PurgedWithin is how long after an erasure was hidden its bytes may still be in Redis's files.
	PurgedWithin = 24 * time.Hour
	// ledgerAtOnce is how many identifiers an entry of the ledger stream has, and ledgerRead how many entries are read at once
	// where all are.
	ledgerAtOnce, ledgerRead = 4096, 1000
)

// The one field of an entry of the requests, and of the ledger stream.
const (
	requestField = "r"
	ledgerField  = "l"
)

// RestoredErasure begins the ids of erasures that nobody has asked for anew: of persons whom an older backup has brought back.
const RestoredErasure = "restored-"

// ErasureRequest asks for a person's erasure.
type ErasureRequest struct {
	// ID is a UUID in lower case. A request of the same id and identifiers asks for the same again.
	ID string
	// At is when it was made, by the clock that dates events; it is set where a request is read.
	At time.Time
	// Identifiers are what the person is known by: as [event.Event.Identifiers] makes them, at most [MaxErasureIdentifiers].
	Identifiers []event.Identifier
	// Linked asks for what was seen together with them too, one hop far.
	Linked bool
	// Suppress says that later events of the person are to be nobody's.
	Suppress bool
	// Origin is who asks: "api:TOKENNAME", "sources/NAME" or [OriginLinked].
	Origin string
	// Key is the request's place among the requests, by which it is removed; it is set where a request is read.
	Key string
}

// requestMessage is a request on its way to whoever keeps the ledger.
type requestMessage struct {
	ID          string `json:"id"`
	Identifiers []byte `json:"identifiers"` // one behind the other
	Linked      bool   `json:"linked,omitempty"`
	Suppress    bool   `json:"suppress,omitempty"`
	Origin      string `json:"origin"`
}

// RequestErasure has a person erased: whoever keeps the ledger takes the request, then the deliverer does the rest.
// [Stream.Erasure] says how far that is. Asking again is harmless.
func (s *Stream) RequestErasure(ctx context.Context, r ErasureRequest) error {
	text, err := encodeRequest(r)
	if err != nil {
		return fmt.Errorf("request an erasure: %w", err)
	}
	err = s.redis.XAdd(ctx, &redis.XAddArgs{Stream: s.keys.erasureRequests(), Values: []any{requestField, text}}).Err()
	return describe("request an erasure", err)
}

func encodeRequest(r ErasureRequest) ([]byte, error) {
	if err := checkRequest(r); err != nil {
		return nil, err
	}
	message := requestMessage{ID: r.ID, Linked: r.Linked, Suppress: r.Suppress, Origin: r.Origin}
	for _, id := range r.Identifiers {
		message.Identifiers = append(message.Identifiers, id[:]...)
	}
	return json.Marshal(message)
}

// decodeRequest reads what encodeRequest wrote.
func decodeRequest(text string) (ErasureRequest, error) {
	var message requestMessage
	if len(text) > maxErasureRequest {
		return ErasureRequest{}, fmt.Errorf("a request must have at most %d bytes", maxErasureRequest)
	}
	if json.Unmarshal([]byte(text), &message) != nil {
		return ErasureRequest{}, errors.New("a request must be a JSON object")
	}
	r := ErasureRequest{ID: message.ID, Linked: message.Linked, Suppress: message.Suppress, Origin: message.Origin}
	if len(message.Identifiers)%len(event.Identifier{}) != 0 {
		return ErasureRequest{}, fmt.Errorf("identifiers must have %d bytes each", len(event.Identifier{}))
	}
	for id := range slices.Chunk(message.Identifiers, len(event.Identifier{})) {
		r.Identifiers = append(r.Identifiers, event.Identifier(id))
	}
	return r, checkRequest(r)
}

func checkRequest(r ErasureRequest) error {
	switch {
	case !isErasureID(r.ID):
		return errors.New("id must be a UUID in lower case")
	case len(r.Identifiers) == 0 || len(r.Identifiers) > MaxErasureIdentifiers:
		return fmt.Errorf("there must be 1 to %d identifiers", MaxErasureIdentifiers)
	case r.Origin == "" || len(r.Origin) > maxErasureOrigin:
		return fmt.Errorf("origin must have 1 to %d bytes", maxErasureOrigin)
	}
	return nil
}

func isErasureID(id string) bool {
	return len(id) == 36 && uuid.Validate(id) == nil && strings.ToLower(id) == id
}

// ErasureRequests returns up to limit requests, the oldest first, or fewer where they are large. What is none among them is
// removed.
func (s *Stream) ErasureRequests(ctx context.Context, limit int) ([]ErasureRequest, error) {
	var reply *redis.Cmd
	var seen *redis.StringCmd
	_, err := s.redis.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		reply = pipe.FCall(ctx, functionRequests, []string{s.keys.erasureRequests()}, min(limit, maxErasureRequests))
		seen = pipe.GetRange(ctx, s.keys.clock(), 0, 63)
		return nil
	})
	if err != nil {
		return nil, describe("read requests for erasures", err)
	}
	list, err := reply.StringSlice()
	if err != nil || len(list)%2 != 0 {
		return nil, malformedReply(functionRequests)
	}
	requests, malformed := make([]ErasureRequest, 0, len(list)/2), []string(nil)
	for message := range slices.Chunk(list, 2) {
		r, err := decodeRequest(message[1])
		at, unreadable := ParsePosition(message[0])
		if err != nil || unreadable != nil {
			malformed = append(malformed, message[0])
			continue
		}
		r.At, r.Key = believed(at.Time(), seen.Val()), message[0]
		requests = append(requests, r)
	}
	if len(malformed) > 0 {
		err = s.redis.XDel(ctx, s.keys.erasureRequests(), malformed...).Err()
	}
	return requests, describe("remove what is no request for an erasure", err)
}

// Ledgered notes that a request stands in the ledger: its entries are appended to the ledger stream, deliverers take the
// erasure up, and the request is removed, in one step. A request without a Key is one that was never made, as after a
// restore; its Key is passed over.
func (s *Stream) Ledgered(ctx context.Context, r ErasureRequest, entries []erasure.Entry) error {
	if r.ID == "" || len(r.ID) > maxErasureOrigin || len(entries) == 0 {
		return errors.New("note an erasure in the ledger stream: there must be an id and an entry")
	}
	now, err := s.now(ctx)
	if err != nil {
		return err
	}
	state := s.keys.erasureState(r.ID)
	_, err = s.redis.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		for some := range slices.Chunk(entries, ledgerAtOnce) {
			pipe.XAdd(ctx, &redis.XAddArgs{Stream: s.keys.erasureLedger(), Values: []any{ledgerField, encodeLedger(r.ID, some)}})
		}
		fields := []any{stateLedgered, now.UnixMilli()}
		switch {
		case r.Origin == OriginLinked:
			fields = append(fields, stateFollowed, now.UnixMilli())
		case r.Linked:
			fields = append(fields, stateFollow, "1")
			pipe.HDel(ctx, state, stateFollowed)
		}
		if r.Suppress {
			fields = append(fields, stateSuppress, "1")
		}
		pipe.HSet(ctx, state, fields...)
		requested := r.At
		if requested.IsZero() {
			requested = now
		}
		pipe.HSetNX(ctx, state, stateRequested, requested.UnixMilli())
		pipe.HDel(ctx, state, stateHidden, statePurged, stateUnpurged, stateUnhidden)
		pipe.PExpire(ctx, state, erasureStateKept)
		pipe.ZAdd(ctx, s.keys.openErasures(), redis.Z{Score: float64(now.UnixMilli()), Member: r.ID})
		pipe.ZRem(ctx, s.keys.hiddenErasures(), r.ID)
		if r.Key != "" {
			pipe.XDel(ctx, s.keys.erasureRequests(), r.Key)
		}
		return nil
	})
	return describe("note an erasure in the ledger stream", err)
}

// LedgerEntry is an entry of the ledger stream: identifiers that one erasure has.
type LedgerEntry struct {
	ErasureID string
	Entries   []erasure.Entry
}

// encodeLedger returns the bytes of an entry of the ledger stream: the length of the erasure's id, the id, and the ledger's
// entries.
func encodeLedger(id string, entries []erasure.Entry) []byte {
	b := append([]byte{byte(len(id))}, id...)
	for _, entry := range entries {
		b = entry.Append(b)
	}
	return b
}

func decodeLedger(b []byte) (LedgerEntry, error) {
	if len(b) == 0 || len(b) < 1+int(b[0]) {
		return LedgerEntry{}, erasure.ErrMalformed
	}
	end := 1 + int(b[0])
	entries, err := erasure.DecodeEntries(b[end:])
	return LedgerEntry{ErasureID: string(b[1:end]), Entries: entries}, err
}

// ReadLedger returns up to count entries of the ledger stream behind after, in order, and the position from which to read
// on; that is after itself where there are none. What is no entry is passed over.
func (s *Stream) ReadLedger(ctx context.Context, after Position, count int) ([]LedgerEntry, Position, error) {
	entries, err := s.read(ctx, s.keys.erasureLedger(), ledgerField, after, count, 0)
	if err != nil {
		return nil, after, describe("read the ledger of erasures", err)
	}
	list := make([]LedgerEntry, 0, len(entries))
	for _, entry := range entries {
		after = entry.Position
		if decoded, err := decodeLedger(entry.Data); err == nil {
			list = append(list, decoded)
		}
	}
	return list, after, nil
}

// LedgerLength returns how many identifiers the ledger stream has, each counted once.
func (s *Stream) LedgerLength(ctx context.Context) (identifiers int64, err error) {
	seen := map[erasure.Digest]struct{}{}
	for after := Position(0); ; {
		list, last, err := s.ReadLedger(ctx, after, ledgerRead)
		if err != nil {
			return 0, err
		}
		if last == after {
			return int64(len(seen)), nil
		}
		for _, entry := range list {
			for _, one := range entry.Entries {
				seen[one.Digest] = struct{}{}
			}
		}
		after = last
	}
}
