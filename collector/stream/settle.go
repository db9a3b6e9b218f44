package stream

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// settleCap is the most events of one call to Redis, so that none blocks it for long.
const settleCap = 512

// unsent is when events are due with which no attempt was made: before any time that another may be due at, so that they
// can be asked for apart.
var unsent = time.Time{}.Add(-time.Hour)

// Due takes up to count of the platform's waiting events whose next attempt is due at now, the longest overdue
// first, except those of [Stream.PutBack]. Each is leased until now+lease: unless it is settled by then it comes again,
// so that a deliverer that died loses nothing. gone are positions whose events were trimmed away meanwhile. Of events that are
// in the history alone there are no data: see [Delivery].
func (s *Stream) Due(
	ctx context.Context, platform string, now time.Time, lease time.Duration, count int,
) (taken []Delivery, gone []Position, err error) {
	return s.lease(ctx, platform, unsent.Add(time.Millisecond), now, now.Add(lease), count)
}

// Unsent is [Stream.Due] for the events of [Stream.PutBack], the oldest first. One that is not settled before its lease
// ends counts as attempted from then on.
func (s *Stream) Unsent(
	ctx context.Context, platform string, now time.Time, lease time.Duration, count int,
) (taken []Delivery, gone []Position, err error) {
	return s.lease(ctx, platform, unsent, unsent, now.Add(lease), count)
}

// Hasten makes up to count of the platform's waiting events that are due between since and to due at an earlier time
// instead, the first ones first, and returns how many those are. Nothing else of them changes.
func (s *Stream) Hasten(ctx context.Context, platform string, since, to, earlier time.Time, count int) (int, error) {
	moved, gone, err := s.lease(ctx, platform, since, to, earlier, count)
	return len(moved) + len(gone), err
}

// lease takes waiting events that are due from since to now.
func (s *Stream) lease(
	ctx context.Context, platform string, since, now, until time.Time, count int,
) (taken []Delivery, gone []Position, err error) {
	reply, err := s.redis.FCall(ctx, functionTake,
		[]string{s.keys.events(), s.keys.due(platform), s.keys.open(platform), s.keys.attempts(platform)},
		since.UnixMilli(), now.UnixMilli(), until.UnixMilli(), count).Slice()
	if err != nil {
		return nil, nil, describe("take due events of platform "+platform, err)
	}
	if len(reply) != 2 {
		return nil, nil, malformedReply(functionTake)
	}
	entries, _ := reply[0].([]any)
	for _, entry := range entries {
		fields, ok := entry.([]any)
		if !ok || len(fields) != 6 {
			return nil, nil, malformedReply(functionTake)
		}
		p, err := positionOf(fields[0])
		if err != nil {
			return nil, nil, err
		}
		attempts, _ := fields[1].(int64)
		data, _ := fields[2].(string)
		delivery := Delivery{Entry: Entry{Position: p, Data: []byte(data)}, Attempts: int(attempts)}
		if replayed, _ := fields[3].(int64); replayed > 0 {
			delivery.Replayed = time.UnixMilli(replayed).UTC()
		}
		delivery.Past = fields[5] == int64(1)
		text, _ := fields[4].(string)
		if delivery.Ticket, err = parseTicket(text); err != nil {
			return nil, nil, err
		}
		taken = append(taken, delivery)
	}
	ids, _ := reply[1].([]any)
	for _, id := range ids {
		p, err := positionOf(id)
		if err != nil {
			return nil, nil, err
		}
		gone = append(gone, p)
	}
	taken, err = s.opener.deliveries(ctx, taken)
	return taken, gone, err
}

// Settle closes or reschedules deliveries of one platform: in one atomic step their pending entries are acknowledged or
// their retries removed, those of status [Retrying] are scheduled for RetryAt, and all are recorded as one entry. (More
// than 512 take several such steps.) The settlements' own Platform is not read.
//
// A settlement of an event that is neither pending in the group nor waiting is passed over: it has been settled
// already, by this call's first sending or by another deliverer. So Settle may be repeated, and an event gets one final
// record however many deliverers held it. One that is final and silent leaves no record: of an event that is there no more.
func (s *Stream) Settle(ctx context.Context, platform string, settlements []Settlement) error {
	for len(settlements) > 0 {
		n := min(len(settlements), settleCap)
		if err := s.settle(ctx, platform, settlements[:n]); err != nil {
			return err
		}
		settlements = settlements[n:]
	}
	return nil
}

// Postpone moves deliveries of a platform to until without an attempt being counted or a record written: for a
// platform whose circuit breaker is open. Those settled already stay so.
func (s *Stream) Postpone(ctx context.Context, platform string, deliveries []Delivery, until time.Time) error {
	for len(deliveries) > 0 {
		n := min(len(deliveries), settleCap)
		settlements := make([]Settlement, n)
		for i, d := range deliveries[:n] {
			settlements[i] = Settlement{
				Record: Record{Event: d.Position, Status: Retrying, Attempts: d.Attempts}, RetryAt: until, Ticket: d.Ticket, Silent: true,
			}
		}
		if err := s.settle(ctx, platform, settlements); err != nil {
			return err
		}
		deliveries = deliveries[n:]
	}
	return nil
}

// PutBack is [Stream.Postpone] for deliveries with which no attempt was made: they are due at once, and to be had from
// [Stream.Unsent].
func (s *Stream) PutBack(ctx context.Context, platform string, deliveries []Delivery) error {
	return s.Postpone(ctx, platform, deliveries, unsent)
}

func (s *Stream) settle(ctx context.Context, platform string, settlements []Settlement) error {
	base, highest, record := settlements[0].Event, settlements[0].Event, false
	for i := range settlements {
		base, highest = min(base, settlements[i].Event), max(highest, settlements[i].Event)
		record = record || !settlements[i].Silent
	}
	var head []byte
	if record {
		head = recordsHead(platform, base)
	}
	args := make([]any, 0, 4+6*len(settlements))
	args = append(args, platform, head, base.String(), highest.String())
	for i := range settlements {
		settlement := &settlements[i]
		var again any = ""
		switch {
		case settlement.Status == Retrying:
			again = settlement.RetryAt.Add(time.Millisecond - 1).UnixMilli() // never earlier
		case !settlement.Status.Final():
			return fmt.Errorf("settle event %s: status must be retrying or final, not %s", settlement.Event, settlement.Status)
		}
		var encoded []byte
		if !settlement.Silent {
			encoded = appendRecord(nil, base, &settlement.Record)
		}
		args = append(args, settlement.Event.String(), again, settlement.Attempts, encoded, settlement.Ticket.text(), settlement.Order.text())
	}
	names := append([]string{s.keys.events(), s.keys.deliveries()}, s.keys.retries(platform)...)
	err := s.redis.FCall(ctx, functionConclude, names, args...).Err()
	return describe("settle deliveries of platform "+platform, err)
}

// Record writes records of one platform without touching its group: for events that the group never handed out,
// because the platform was removed or the events were trimmed away. A repetition writes them again; readers take the
// last. The records' own Platform is not read.
func (s *Stream) Record(ctx context.Context, platform string, records []Record) error {
	for len(records) > 0 {
		n := min(len(records), settleCap)
		err := s.redis.XAdd(ctx, recordsEntry(s.keys.deliveries(), platform, records[:n])).Err()
		if err != nil {
			return fmt.Errorf("record deliveries of platform %s: %w", platform, err)
		}
		records = records[n:]
	}
	return nil
}

func malformedReply(function string) error {
	return errors.New(function + " replied with something else than it should; is Redis's function library of this version?")
}

// positionOf reads a stream id out of a reply.
func positionOf(value any) (Position, error) {
	id, ok := value.(string)
	if !ok {
		return 0, fmt.Errorf("stream id must be a string, not %T", value)
	}
	return ParsePosition(id)
}
