package deliver

import (
	"context"
	"slices"

	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/stream"
)

// reasonTrimmed is what deliveries end with whose event has left the stream by age or number.
const reasonTrimmed = "trimmed"

// trim keeps the streams within the property's retention, until taking ends. Several deliverers may do so at
// a time.
func (e *Engine) trim(taking context.Context) {
	for {
		if err := e.trimOnce(taking); err != nil && taking.Err() == nil {
			e.options.Logger.Error("the streams cannot be trimmed", "error", err)
		}
		if !pause(taking, e.timing.trim) {
			return
		}
	}
}

func (e *Engine) trimOnce(ctx context.Context) error {
	if err := e.lookAtClock(ctx); err != nil {
		return err
	}
	retention := e.options.Property.Retention
	policy := stream.TrimPolicy{MaxEvents: retention.MaxEvents, Archived: e.options.Property.History != nil}
	if retention.Days > 0 {
		// What is older than the retention goes even if a platform still waits for it.
		policy.HardAge = e.options.Property.RetentionAge()
		policy.Age = policy.HardAge
	}
	// Before the events: what has no key is as good as gone.
	if _, err := e.options.Stream.DropKeys(ctx, retention.DeviceAge(), retention.IdentityAge()); err != nil {
		return err
	}
	names := e.options.Property.PlatformNames()
	if err := e.options.Stream.TrimShadow(ctx, e.clock.Now(), shadowAge(retention), names...); err != nil {
		return err
	}
	for {
		result, err := e.options.Stream.Trim(ctx, policy)
		if err != nil {
			return err
		}
		if err := e.recordTrimmed(ctx, result.Undelivered); err != nil {
			return err
		}
		if !result.More {
			return nil
		}
	}
}

// recordTrimmed records events that left the stream before they were settled as expired. It goes on for a
// moment when the context ends: nobody else knows of them any more.
func (e *Engine) recordTrimmed(ctx context.Context, lost []stream.Undelivered) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.timing.settle)
	defer cancel()
	records := map[string][]stream.Record{}
	for _, item := range lost {
		decoded, err := wire.Decode(item.Entry.Data)
		if err != nil || !slices.Contains(decoded.Platforms, item.Platform) {
			continue // none of the platform's, or not to be told any more
		}
		records[item.Platform] = append(records[item.Platform], stream.Record{
			Event: item.Entry.Position, Platform: item.Platform, Status: stream.Expired, Reason: reasonTrimmed, At: e.clock.Now(),
		})
	}
	for name, list := range records {
		if err := e.options.Stream.Record(ctx, name, list); err != nil {
			return err
		}
		e.options.Metrics.expired(name, reasonTrimmed, len(list))
		e.options.Logger.Warn("events left the stream undelivered", "platform", name, "events", len(list))
	}
	return nil
}
