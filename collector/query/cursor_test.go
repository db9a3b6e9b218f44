package query

import (
	"strings"
	"testing"
	"time"

	"github.com/weir-dev/weir/collector/stream"
)

func TestCursorSurvivesItsText(t *testing.T) {
	for name, c := range map[string]cursor{
		"an event in the middle of a period": {before: stream.At(time.UnixMilli(1_795_000_000_123)) + 7, from: time.UnixMilli(1_794_000_000_000).UTC()},
		"an event at the period's start":     {before: stream.At(time.UnixMilli(1_795_000_000_000)), from: time.UnixMilli(1_795_000_000_000).UTC(), query: 1<<63 + 1},
		"a period from the epoch":            {before: 1, from: time.UnixMilli(0).UTC()},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseCursor(c.String())
			if err != nil || got != c {
				t.Errorf("got %+v, %v, want %+v", got, err, c)
			}
		})
	}
}

func TestCursorRefuses(t *testing.T) {
	good := cursor{before: stream.At(time.UnixMilli(1_795_000_000_123)), from: time.UnixMilli(1_794_000_000_000)}.String()
	encode := func(c cursor) string { return c.String() }
	for name, text := range map[string]string{
		"nothing":                              "",
		"a position of its own making":         "1795000000123-0",
		"a cut text":                           good[:len(good)-4],
		"a longer text":                        good + "AAAA",
		"another version":                      "AQ" + strings.TrimPrefix(good, "Ag"),
		"standard base64 padding":              good + "=",
		"bits behind the end":                  good[:len(good)-1] + "B",
		"line breaks that decoders skip":       good[:4] + "\n" + good[4:],
		"no position":                          encode(cursor{from: time.UnixMilli(0)}),
		"a period that begins behind it":       encode(cursor{before: stream.At(time.UnixMilli(5)), from: time.UnixMilli(6)}),
		"a period that begins before all time": encode(cursor{before: stream.At(time.UnixMilli(5)), from: time.UnixMilli(-1)}),
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := parseCursor(text); err == nil {
				t.Errorf("%q was read as %+v", text, got)
			}
		})
	}
}

func FuzzCursor(f *testing.F) {
	f.Add(cursor{before: 1 << 40, from: time.UnixMilli(1)}.String())
	f.Add("")
	f.Add("Ag")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := parseCursor(text)
		if err == nil && c.String() != text {
			t.Errorf("%q was read, but its own text is %q", text, c)
		}
	})
}
