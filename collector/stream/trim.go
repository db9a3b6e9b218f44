package stream

import (
	"context"
	"time"
)

// trimLimit is about how many entries one call removes, so that none blocks Redis for long.
const trimLimit = 1000

// TrimPolicy says which events may go.
type TrimPolicy struct {
	// Age: older events go unless a group still has to hand them out, a deliverer holds them or they wait for another
	// attempt. 0 keeps all. Ages go by Redis's clock as far as it is believed; see [Clock].
	Age time.Duration
	// HardAge: older events go whoever still needs them. 0 is no such ceiling.
	HardAge time.Duration
	// MaxEvents is how many events stay at most, whoever still needs the oldest; 0 is no such ceiling.
	MaxEvents int64
	// Archived says that a history takes all events: what its archive has not confirmed goes beyond MaxEvents alone, whatever its
	// age, and delivery records with their events.
	Archived bool
}

// Undelivered is an event that a ceiling took from a platform before it was settled.
type Undelivered struct {
	Platform string
	// Entry tells whether the platform had a part in it at all; Data is empty where the event was gone before.
	Entry Entry
}

// TrimResult is what one [Stream.Trim] did.
type TrimResult struct {
	// Removed counts the events that went.
	Removed int64
	// More says that there are more to remove.
	More bool
	// Undelivered are the events that a ceiling took from a platform. The platform's group knows nothing of them
	// any more; they are to be recorded as expired.
	Undelivered []Undelivered
}

// Trim removes events that the policy lets go, in one step of about 1,000, and the delivery records older than the
// oldest event that stays. Deduplication keys that no window reaches any more go too, as do identifiers that stand for
// nobody any more. Call it again while More.
func (s *Stream) Trim(ctx context.Context, policy TrimPolicy) (TrimResult, error) {
	archived := ""
	if policy.Archived {
		archived = "1"
	}
	reply, err := s.redis.FCall(ctx, functionRetain,
		[]string{s.keys.events(), s.keys.deliveries(), s.keys.retryPrefix(), s.keys.dedup(), s.keys.clock(), s.keys.join(), s.keys.archive()},
		ageArgument(policy.Age), ageArgument(policy.HardAge), policy.MaxEvents, trimLimit, archived).Slice()
	if err != nil {
		return TrimResult{}, describe("trim events", err)
	}
	if len(reply) != 3 {
		return TrimResult{}, malformedReply(functionRetain)
	}
	var result TrimResult
	result.Removed, _ = reply[0].(int64)
	result.More = reply[1] == int64(1)
	lost, _ := reply[2].([]any)
	for _, item := range lost {
		fields, ok := item.([]any)
		if !ok || len(fields) != 3 {
			return result, malformedReply(functionRetain)
		}
		p, err := positionOf(fields[1])
		if err != nil {
			return result, err
		}
		platform, _ := fields[0].(string)
		data, _ := fields[2].(string)
		result.Undelivered = append(result.Undelivered, Undelivered{platform, Entry{Position: p, Data: []byte(data)}})
	}
	return result, nil
}

func ageArgument(age time.Duration) any {
	if age <= 0 {
		return ""
	}
	return age.Milliseconds()
}
