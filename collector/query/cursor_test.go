package query

import (
	"strings"
	"testing"
	"time"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/stream"
)

func TestCursorSurvivesItsText(t *testing.T) {
	for name, c := range map[string]cursor{
		"an event in the middle of a period": {last: stream.At(time.UnixMilli(1_795_000_000_123)) + 7, from: time.UnixMilli(1_794_000_000_000).UTC()},
		"an event at the period's start":     {last: stream.At(time.UnixMilli(1_795_000_000_000)), from: time.UnixMilli(1_795_000_000_000).UTC(), query: 1<<63 + 1},
		"a period from the epoch":            {last: 1, from: time.UnixMilli(0).UTC()},
		"a walk from the oldest event on": {
			last: stream.At(time.UnixMilli(1_795_000_000_123)) + 7, from: time.UnixMilli(1_794_000_000_000).UTC(), to: time.UnixMilli(1_795_000_000_124).UTC(), query: 5,
		},
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
	good := cursor{last: stream.At(time.UnixMilli(1_795_000_000_123)), from: time.UnixMilli(1_794_000_000_000)}.String()
	ascending := cursor{last: stream.At(time.UnixMilli(5)), from: time.UnixMilli(1), to: time.UnixMilli(6)}.String()
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
		"a period that begins behind it":       encode(cursor{last: stream.At(time.UnixMilli(5)), from: time.UnixMilli(6)}),
		"a period that ends before it":         encode(cursor{last: stream.At(time.UnixMilli(5)), from: time.UnixMilli(1), to: time.UnixMilli(5)}),
		"an end where there is none":           "Ag" + strings.TrimPrefix(ascending, "BA"),
		"no end where there is one":            "BA" + strings.TrimPrefix(good, "Ag"),
		"a place in event statistics":          statsCursor{after: analytics.StatsPlace{Count: 1, Event: "purchase"}}.String(),
		"a period that begins before all time": encode(cursor{last: stream.At(time.UnixMilli(5)), from: time.UnixMilli(-1)}),
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := parseCursor(text); err == nil {
				t.Errorf("%q was read as %+v", text, got)
			}
		})
	}
}

func FuzzCursor(f *testing.F) {
	f.Add(cursor{last: 1 << 40, from: time.UnixMilli(1)}.String())
	f.Add(cursor{last: 1 << 40, from: time.UnixMilli(1), to: time.UnixMilli(1 << 30)}.String())
	f.Add("")
	f.Add("Ag")
	f.Add("BA")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := parseCursor(text)
		if err == nil && c.String() != text {
			t.Errorf("%q was read, but its own text is %q", text, c)
		}
	})
}
