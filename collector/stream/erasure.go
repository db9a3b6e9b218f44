package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
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

// The fields of an erasure's state.
const (
	stateRequested   = "requested"
	stateLedgered    = "ledgered"
	stateHidden      = "hidden"
	statePurged      = "purged"
	stateEvents      = "events"
	stateRecords     = "records"
	stateIdentifiers = "identifiers"
	stateLinked      = "linked"
	// stateFollow is "1" where what was seen with the subject is to go too, stateFollowed when that has been found.
	stateFollow   = "follow"
	stateFollowed = "followed"
	stateSuppress = "suppress"
	// statePlatform begins a field for each platform that may have got something.
	statePlatform = "platform:"
)

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

// ErasureRequests returns up to limit requests, the oldest first. What is none among them is removed.
func (s *Stream) ErasureRequests(ctx context.Context, limit int) ([]ErasureRequest, error) {
	messages, err := s.redis.XRangeN(ctx, s.keys.erasureRequests(), "-", "+", int64(limit)).Result()
	if err != nil {
		return nil, describe("read requests for erasures", err)
	}
	requests, malformed := make([]ErasureRequest, 0, len(messages)), []string(nil)
	for _, message := range messages {
		text, _ := message.Values[requestField].(string)
		r, err := decodeRequest(text)
		at, unreadable := ParsePosition(message.ID)
		if err != nil || unreadable != nil || len(message.Values) > 1 {
			malformed = append(malformed, message.ID)
			continue
		}
		r.At, r.Key = at.Time(), message.ID
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
		pipe.HDel(ctx, state, stateHidden, statePurged)
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

// ErasureState is what has become of an erasure. Times are zero where it has not come that far.
type ErasureState struct {
	ID string
	// Requested is when it was asked for, Ledgered when it was written to the ledger (the last part of it, where what was
	// seen with the subject goes too).
	Requested, Ledgered time.Time
	// Hidden is when nothing that can be asked for or is delivered had the person any more, Purged when Redis's files had
	// not either; PurgeBy is until when that will be.
	Hidden, Purged, PurgeBy time.Time
	// Events, Records and Identifiers count what was removed: events, what became of them on platforms, and who was joined
	// with whom. Linked counts the identifiers that were seen with the subject.
	Events, Records, Identifiers, Linked int64
	// Platforms are those that may have got something of the person, in order; there it has to be deleted by the owner.
	Platforms []string

	// follow says that what was seen with the subject is to go too, followed that it is in the ledger.
	follow, followed, suppress bool
}

// Erasure returns what has become of an erasure, or [ErrNoErasure].
func (s *Stream) Erasure(ctx context.Context, id string) (ErasureState, error) {
	fields, err := s.redis.HGetAll(ctx, s.keys.erasureState(id)).Result()
	if err != nil {
		return ErasureState{}, describe("read an erasure's state", err)
	}
	if len(fields) == 0 {
		return ErasureState{}, ErrNoErasure
	}
	return stateOf(id, fields), nil
}

// stateOf reads an erasure's state; what is no number counts for none.
func stateOf(id string, fields map[string]string) ErasureState {
	number := func(field string) int64 {
		n, err := strconv.ParseInt(fields[field], 10, 64)
		if err != nil {
			return 0
		}
		return n
	}
	moment := func(field string) time.Time {
		if n := number(field); n > 0 {
			return time.UnixMilli(n).UTC()
		}
		return time.Time{}
	}
	state := ErasureState{
		ID: id, Requested: moment(stateRequested), Ledgered: moment(stateLedgered), Hidden: moment(stateHidden), Purged: moment(statePurged),
		Events: number(stateEvents), Records: number(stateRecords), Identifiers: number(stateIdentifiers), Linked: number(stateLinked),
		follow: fields[stateFollow] == "1", followed: number(stateFollowed) > 0, suppress: fields[stateSuppress] == "1",
	}
	if !state.Hidden.IsZero() {
		state.PurgeBy = state.Hidden.Add(PurgedWithin)
	}
	for field := range fields {
		if platform, found := strings.CutPrefix(field, statePlatform); found {
			state.Platforms = append(state.Platforms, platform)
		}
	}
	slices.Sort(state.Platforms)
	return state
}

// HiddenErasures returns the ids of up to limit erasures that are hidden and not purged, the oldest first, and since when
// each is hidden.
func (s *Stream) HiddenErasures(ctx context.Context, limit int) ([]HiddenErasure, error) {
	members, err := s.redis.ZRangeWithScores(ctx, s.keys.hiddenErasures(), 0, int64(limit)-1).Result()
	if err != nil {
		return nil, describe("list erasures that are to be purged", err)
	}
	hidden := make([]HiddenErasure, 0, len(members))
	for _, member := range members {
		id, _ := member.Member.(string)
		hidden = append(hidden, HiddenErasure{ID: id, Hidden: time.UnixMilli(int64(member.Score)).UTC()})
	}
	return hidden, nil
}

// HiddenErasure is an erasure whose bytes may still be in Redis's files.
type HiddenErasure struct {
	ID string
	// Hidden is since when.
	Hidden time.Time
}

// NotePurged notes of erasures that Redis's files have nothing of them any more. They are named as
// [Stream.HiddenErasures] returned them: one that was begun again meanwhile stays to be purged.
func (s *Stream) NotePurged(ctx context.Context, purged []HiddenErasure) error {
	now, err := s.now(ctx)
	if err != nil {
		return err
	}
	for _, one := range purged {
		key, state := s.keys.hiddenErasures(), s.keys.erasureState(one.ID)
		err := s.redis.Watch(ctx, func(tx *redis.Tx) error {
			score, err := tx.ZScore(ctx, key, one.ID).Result()
			if errors.Is(err, redis.Nil) || err == nil && int64(score) != one.Hidden.UnixMilli() {
				return nil
			}
			if err != nil {
				return err
			}
			_, err = tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
				pipe.ZRem(ctx, key, one.ID)
				pipe.HSet(ctx, state, statePurged, now.UnixMilli())
				pipe.PExpire(ctx, state, erasureStateKept)
				return nil
			})
			return err
		}, key)
		if err != nil && !errors.Is(err, redis.TxFailedErr) {
			return describe("note that an erasure is purged", err)
		}
	}
	return nil
}

// now is the time that is believed, as events are dated by it.
func (s *Stream) now(ctx context.Context) (time.Time, error) {
	var clock *redis.TimeCmd
	var seen *redis.StringCmd
	_, err := s.redis.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		clock, seen = pipe.Time(ctx), pipe.GetRange(ctx, s.keys.clock(), 0, 63)
		return nil
	})
	if err != nil {
		return time.Time{}, describe("ask for the time", err)
	}
	return believed(clock.Val(), seen.Val()), nil
}

// believed returns the time that is believed where Redis's clock says now and what a deliverer saw last is as weir.lua
// wrote it down: SEEN:AHEAD:SINCE.
func believed(now time.Time, seen string) time.Time {
	parts := strings.Split(seen, ":")
	if len(parts) != 3 {
		return now.UTC()
	}
	at, err := strconv.ParseInt(parts[0], 10, 64)
	ahead, alsoErr := strconv.ParseInt(parts[1], 10, 64)
	if err != nil || alsoErr != nil {
		return now.UTC()
	}
	if looked := time.UnixMilli(at); now.Sub(looked).Abs() > followed {
		now = looked
	}
	return now.Add(-time.Duration(ahead) * time.Millisecond).UTC()
}
