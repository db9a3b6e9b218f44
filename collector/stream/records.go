package stream

import (
	"fmt"
	"math"
	"time"

	"github.com/redis/go-redis/v9"
	"google.golang.org/protobuf/encoding/protowire"
)

// recordField is the one field of an entry of the deliveries stream, recordVersion the version of its encoding,
// which deliveries.proto describes.
const (
	recordField   = "d"
	recordVersion = 1
)

// The field numbers of deliveries.proto.
const (
	headVersion    protowire.Number = 1
	headPlatform   protowire.Number = 2
	headBase       protowire.Number = 3
	headDeliveries protowire.Number = 4
	headErased     protowire.Number = 5
	headErasure    protowire.Number = 6

	deliveryEvent    protowire.Number = 1
	deliveryStatus   protowire.Number = 2
	deliveryAttempts protowire.Number = 3
	deliveryLatency  protowire.Number = 4
	deliveryReason   protowire.Number = 5
	deliveryAt       protowire.Number = 6
)

// recordsHead returns the fields that stand before an entry's records.
func recordsHead(platform string, base Position) []byte {
	b := protowire.AppendTag(nil, headVersion, protowire.VarintType)
	b = protowire.AppendVarint(b, recordVersion)
	b = append(b, headOf(platform)...)
	b = protowire.AppendTag(b, headBase, protowire.Fixed64Type)
	return protowire.AppendFixed64(b, uint64(base))
}

// headOf returns what tells a platform's entries from others': the field that stands behind the version's two bytes.
func headOf(platform string) []byte {
	b := protowire.AppendTag(nil, headPlatform, protowire.BytesType)
	return protowire.AppendString(b, platform)
}

// announcementHead returns the fields that stand before the positions of events that were erased.
func announcementHead(erasure string) []byte {
	b := protowire.AppendTag(nil, headVersion, protowire.VarintType)
	b = protowire.AppendVarint(b, recordVersion)
	b = protowire.AppendTag(b, headErasure, protowire.BytesType)
	return protowire.AppendString(b, erasure)
}

// announced returns what an announcement says of one event. Like records they stand independently of each other.
func announced(event Position) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(nil, headErased, protowire.Fixed64Type), uint64(event))
}

// appendRecord appends one record, whose event must not lie before base. Records stand independently of each other,
// so that Redis may leave some out.
func appendRecord(b []byte, base Position, r *Record) []byte {
	var d []byte
	varint := func(field protowire.Number, value uint64) {
		if value != 0 {
			d = protowire.AppendTag(d, field, protowire.VarintType)
			d = protowire.AppendVarint(d, value)
		}
	}
	varint(deliveryEvent, uint64(r.Event-base))
	varint(deliveryStatus, uint64(r.Status))
	varint(deliveryAttempts, uint64(max(r.Attempts, 0)))
	varint(deliveryLatency, uint64(min(max(r.Latency.Milliseconds(), 0), math.MaxUint32)))
	if r.Reason != "" {
		d = protowire.AppendTag(d, deliveryReason, protowire.BytesType)
		d = protowire.AppendString(d, r.Reason)
	}
	varint(deliveryAt, protowire.EncodeZigZag(r.At.Sub(r.Event.Time()).Milliseconds()))
	b = protowire.AppendTag(b, headDeliveries, protowire.BytesType)
	return protowire.AppendBytes(b, d)
}

// encodeRecords returns an entry with records of one platform, at least one.
func encodeRecords(platform string, records []Record) []byte {
	base := records[0].Event
	for i := range records {
		base = min(base, records[i].Event)
	}
	b := recordsHead(platform, base)
	for i := range records {
		b = appendRecord(b, base, &records[i])
	}
	return b
}

// recordsEntry is the command that adds one entry with all the records.
func recordsEntry(key, platform string, records []Record) *redis.XAddArgs {
	return &redis.XAddArgs{Stream: key, Values: []any{recordField, encodeRecords(platform, records)}}
}

// decode adds what an entry says. Fields it does not know are passed over.
func (r *Records) decode(b []byte) error {
	var platform string
	var base Position
	for len(b) > 0 {
		field, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		switch {
		case field == headVersion && kind == protowire.VarintType:
			var version uint64
			if version, n = protowire.ConsumeVarint(b); n >= 0 && version > recordVersion {
				return fmt.Errorf("delivery records have version %d; this Weir knows %d", version, recordVersion)
			}
		case field == headPlatform && kind == protowire.BytesType:
			platform, n = protowire.ConsumeString(b)
		case field == headBase && kind == protowire.Fixed64Type:
			var value uint64
			value, n = protowire.ConsumeFixed64(b)
			base = Position(value)
		case field == headDeliveries && kind == protowire.BytesType:
			var d []byte
			if d, n = protowire.ConsumeBytes(b); n >= 0 {
				record, err := decodeRecord(base, platform, d)
				if err != nil {
					return err
				}
				r.Records = append(r.Records, record)
			}
		case field == headErased && kind == protowire.Fixed64Type:
			var value uint64
			value, n = protowire.ConsumeFixed64(b)
			r.Erased = append(r.Erased, Position(value))
		case field == headErasure && kind == protowire.BytesType:
			r.erasure, n = protowire.ConsumeString(b)
		default:
			n = protowire.ConsumeFieldValue(field, kind, b)
		}
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
	}
	return nil
}

func decodeRecord(base Position, platform string, b []byte) (Record, error) {
	r := Record{Event: base, Platform: platform}
	var after time.Duration
	for len(b) > 0 {
		field, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return r, protowire.ParseError(n)
		}
		b = b[n:]
		var value uint64
		switch kind {
		case protowire.VarintType:
			value, n = protowire.ConsumeVarint(b)
		case protowire.BytesType:
			var text []byte
			if text, n = protowire.ConsumeBytes(b); n >= 0 && field == deliveryReason {
				r.Reason = string(text)
			}
		default:
			n = protowire.ConsumeFieldValue(field, kind, b)
		}
		if n < 0 {
			return r, protowire.ParseError(n)
		}
		b = b[n:]
		switch field {
		case deliveryEvent:
			r.Event = base + Position(value)
		case deliveryStatus:
			if value > uint64(Expired) {
				return r, fmt.Errorf("delivery status %d is unknown", value)
			}
			r.Status = Status(value)
		case deliveryAttempts:
			r.Attempts = int(min(value, math.MaxInt32))
		case deliveryLatency:
			r.Latency = time.Duration(min(value, math.MaxUint32)) * time.Millisecond
		case deliveryAt:
			after = time.Duration(protowire.DecodeZigZag(value)) * time.Millisecond
		}
	}
	r.At = r.Event.Time().Add(after)
	return r, nil
}
