package deliver

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/weir-dev/weir/collector/deliver/lake"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/stream"
)

const (
	// sweepRead is how many events are read at a time, and sweepFlush how many are erased at a time.
	sweepRead, sweepFlush = 1000, 256
)

// sweep is one way through a property's events, for some erasures.
type sweep struct {
	stream   *stream.Stream
	erasures *erasures
	// erased are the events that went, with the erasures that they went by.
	erased map[stream.Position][]string
	// linked are what was seen with the subjects of those erasures that ask for it.
	linked map[string]map[event.Identifier]struct{}
	// waiting are the erasures that have an event which cannot go yet.
	waiting map[string]bool
	// forwarders hand the erasures on to platforms.
	forwarders []*forwarder
	// platforms are those on which something may be known of orders, and refunded the orders of refunds that are to go next: with a
	// purchase what is known of its order goes by itself.
	platforms []string
	refunded  []stream.OrderKey
	// unreadable counts entries that do not say whose they are.
	unreadable int

	// doomed are events that are to go next, and texts their ids, client ids and user ids.
	doomed []stream.ErasedEvent
	texts  map[string]struct{}
}

// events goes through the events behind a position, and erases those that have to go. The next ones are read while some are
// looked at.
func (s *sweep) events(ctx context.Context, after stream.Position) error {
	type batch struct {
		entries []stream.Entry
		err     error
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	batches := make(chan batch)
	go func() {
		defer close(batches)
		for next := after; ; {
			entries, err := s.stream.ReadEvents(ctx, next, sweepRead, 0)
			if err == nil && len(entries) == 0 {
				return
			}
			select {
			case batches <- batch{entries, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
			next = entries[len(entries)-1].Position
		}
	}()
	for b := range batches {
		if b.err != nil {
			return b.err
		}
		for _, entry := range b.entries {
			s.look(entry)
			if len(s.doomed) >= sweepFlush {
				if err := s.flush(ctx); err != nil {
					return err
				}
			}
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.flush(ctx)
}

// look looks whose an event is.
func (s *sweep) look(entry stream.Entry) {
	identity, err := wire.DecodeIdentity(entry.Data)
	if err != nil {
		s.unreadable++
		return
	}
	by := s.erasures.of(&identity, entry.Position.Time())
	if len(by) == 0 || s.waits(&identity, by) {
		return
	}
	doomed := stream.ErasedEvent{Position: entry.Position, Erasures: by}
	texts := []string{identity.ClientID, identity.UserID}
	if whole, err := wire.Decode(entry.Data); err == nil {
		doomed.EventID, doomed.IDSpace = whole.ID, uint8(whole.Class)
		texts = append(texts, whole.ID)
		if whole.Name == event.Purchase {
			doomed.OrderID = whole.OrderID
		}
		if whole.Name == event.Refund && whole.OrderID != "" {
			s.refunded = append(s.refunded, stream.OrderKey{ID: whole.OrderID, IDSpace: uint8(whole.Class)})
		}
		for _, f := range s.forwarders {
			f.note(&whole, entry.Position.Time(), by, s.erasures)
		}
	}
	s.doomed = append(s.doomed, doomed)
	for _, text := range texts {
		if text != "" {
			s.texts[text] = struct{}{}
		}
	}
}

// waits says whether an event that goes by some erasures has to wait: what it was seen with has to stand in the ledger first. It
// notes what that is.
func (s *sweep) waits(identity *event.Event, by []string) bool {
	waits := false
	for _, id := range by {
		if !s.erasures.follow[id] {
			continue
		}
		waits = true
		if s.linked[id] == nil {
			s.linked[id] = map[event.Identifier]struct{}{}
		}
		for _, linked := range s.erasures.linkedBy(id, identity) {
			s.linked[id][linked] = struct{}{}
		}
	}
	if waits {
		for _, id := range by {
			s.waiting[id] = true
		}
	}
	return waits
}

// row says whether a row of a file is to go.
func (s *sweep) row(identity *lake.Identity) bool {
	person, received := identity.Person()
	by := s.erasures.of(&person, received)
	return len(by) > 0 && !s.waits(&person, by)
}

// flush erases the events that are to go, and before them what senders were replied that has an id of theirs: what is gone
// tells nobody any more which those are.
func (s *sweep) flush(ctx context.Context) error {
	if len(s.doomed) == 0 {
		return nil
	}
	if err := s.replies(ctx); err != nil {
		return err
	}
	if err := s.forward(ctx); err != nil {
		return err
	}
	if err := s.stream.ForgetOrders(ctx, s.platforms, s.refunded); err != nil {
		return err
	}
	if err := s.stream.EraseEvents(ctx, s.doomed); err != nil {
		return err
	}
	for _, one := range s.doomed {
		s.erased[one.Position] = one.Erasures
	}
	s.doomed, s.refunded = s.doomed[:0], s.refunded[:0]
	return nil
}

// forward hands the erasures of the events that are to go on to platforms, to all of them at the same time, and notes what became
// of that: whoever dies then is followed by one that does it once more, since what the platforms have to know is there still.
func (s *sweep) forward(ctx context.Context) error {
	lists, errs := make([][]stream.Forwarding, len(s.forwarders)), make([]error, len(s.forwarders))
	var all sync.WaitGroup
	for i, f := range s.forwarders {
		all.Go(func() { lists[i], errs[i] = f.send(ctx) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return s.stream.NoteForwarded(ctx, slices.Concat(lists...))
}

// replies erases what senders were told of events whose id is one of somebody who is to be erased: rejections, and answers
// that are remembered for when a batch is sent once more.
func (s *sweep) replies(ctx context.Context) error {
	doomed := func(text string) bool {
		_, known := s.texts[text]
		return known || text != "" && s.erasures.spelled(text)
	}
	if err := s.stream.EraseReplies(ctx, doomed); err != nil {
		return err
	}
	return s.stream.EraseRejections(ctx, doomed)
}

// rest erases what is left when the events are gone: who was joined with whom, what became of the events, and what was kept of
// platforms in the mode Shadow. All of that goes: it is there for a look, and new events bring more.
func (s *sweep) rest(ctx context.Context) error {
	if err := s.replies(ctx); err != nil {
		return err
	}
	groups, err := s.stream.Groups(ctx)
	if err != nil {
		return err
	}
	names := slices.Clone(s.platforms) // a group may be lost, or of a platform that has been removed
	for _, group := range groups {
		names = append(names, group.Platform)
	}
	if err := s.stream.DropShadow(ctx, names...); err != nil {
		return err
	}
	if err := s.stream.EraseJoins(ctx, s.erasures.ofIdentifier); err != nil {
		return err
	}
	return s.stream.EraseRecords(ctx, s.erased, func(id string) bool { _, ours := s.erasures.follow[id]; return ours })
}

// request asks for what was seen with an erasure's subject, here or by what is known, as a further part of the same erasure.
func (s *sweep) request(ctx context.Context, open stream.OpenErasure, known []event.Identifier) error {
	linked := slices.Clone(known)
	for id := range s.linked[open.ID] {
		if !slices.Contains(known, id) {
			linked = append(linked, id)
		}
	}
	for part := range slices.Chunk(linked, stream.MaxErasureIdentifiers) {
		err := s.stream.RequestErasure(ctx, stream.ErasureRequest{
			ID: open.ID, Identifiers: part, Suppress: open.Suppress, Origin: stream.OriginLinked,
		})
		if err != nil {
			return err
		}
	}
	return s.stream.NoteLinked(ctx, open.ID, len(linked))
}
