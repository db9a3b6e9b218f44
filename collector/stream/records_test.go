package stream

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
)

func TestRecordsReadBack(t *testing.T) {
	event := At(time.Date(2026, 7, 8, 9, 10, 11, 120e6, time.UTC)) | 17
	for name, want := range map[string]Record{
		"with everything":             {event + 5, "meta", Delivered, 3, 1234 * time.Millisecond, "partial_match", event.Time().Add(time.Minute)},
		"with nothing":                {event, "meta", Pending, 0, 0, "", event.Time()},
		"decided before the event":    {event, "meta", Skipped, 0, 0, "clock", event.Time().Add(-time.Second)},
		"with the highest status":     {event, "meta", Expired, 99, time.Hour, "max_age", event.Time().Add(62 * 24 * time.Hour)},
		"of the last position":        {1<<64 - 1, "x", Failed, 1, time.Millisecond, "r", Position(1<<64 - 1).Time()},
		"much later than the base":    {event + 1<<50, "meta", Retrying, 1, 0, "timeout", (event + 1<<50).Time()},
		"of a platform with no name":  {event, "", Retrying, 1, 0, "", event.Time()},
		"with a reason of any length": {event, "meta", Failed, 1, 0, string(make([]byte, 300)), event.Time()},
	} {
		t.Run(name, func(t *testing.T) {
			var got Records
			if err := got.decode(encodeRecords(want.Platform, []Record{want})); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]Record{want}, got.Records); diff != "" {
				t.Errorf("record (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRecordsAreCompact(t *testing.T) {
	base := At(time.Now())
	r := Record{Event: base + 20<<20, Status: Delivered, Attempts: 1, Latency: 120 * time.Millisecond, At: base.Time().Add(900 * time.Millisecond)}
	if n := len(appendRecord(nil, base, &r)); n > 18 {
		t.Errorf("a common record takes %d bytes, want at most 18", n)
	}
}

func TestRecordsOfAnotherVersion(t *testing.T) {
	record := decided(At(time.UnixMilli(5)), Delivered, 1).Record
	known := encodeRecords("meta", []Record{record})
	for name, test := range map[string]struct {
		encoded []byte
		bad     bool
	}{
		"are read where they have fields more":  {protowire.AppendString(protowire.AppendTag(known, 99, protowire.BytesType), "new"), false},
		"are refused where the version says so": {protowire.AppendVarint(protowire.AppendTag(nil, headVersion, protowire.VarintType), 2), true},
		"are refused where a status is unknown": {append(recordsHead("meta", 0), 0x22, 2, 0x10, 9), true},
		"are refused where they are cut off":    {known[:len(known)-1], true},
	} {
		t.Run(name, func(t *testing.T) {
			if err := new(Records).decode(test.encoded); (err != nil) != test.bad {
				t.Errorf("error = %v, want one: %v", err, test.bad)
			}
		})
	}
}

func FuzzDecodeRecords(f *testing.F) {
	event := At(time.UnixMilli(1_700_000_000_000))
	f.Add(encodeRecords("meta", []Record{decided(event, Delivered, 1).Record, decided(event+9, Failed, 2).Record}))
	f.Add([]byte{0x22, 2, 0x10, 9})
	f.Fuzz(func(t *testing.T, b []byte) {
		var records Records
		if records.decode(b) != nil {
			return
		}
		for _, r := range records.Records {
			if r.Status > Expired {
				t.Errorf("status %d", r.Status)
			}
			_ = r.Status.String()
		}
	})
}
