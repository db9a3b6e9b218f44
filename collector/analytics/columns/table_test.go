package columns

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/stream"
)

var begin = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)

// rowAt is the n-th of a stream's events: every tenth has a name of its own, every third a touch, every fifth a value.
func rowAt(n int) *Row {
	r := &Row{
		Position: stream.At(begin.Add(time.Duration(n) * time.Second)), Name: "pageview", Value: NoValue,
		Visitor: event.Person{byte(n % 100)}, IsSomeone: true, Platforms: ListPlatforms([]string{"meta", "crm"}), EventID: fmt.Sprint(n),
	}
	if n%10 == 0 {
		r.Name = fmt.Sprint("name ", n)
	}
	if n%3 == 0 {
		r.Touch, r.IsTouch = Touch{Source: fmt.Sprint("source ", n)}, true
	}
	if n%5 == 0 {
		r.Value, r.Currency = 100, "EUR"
		r.Page, r.IsSale, r.Products = fmt.Sprint("/", n), n%2 == 0, []Product{{ID: fmt.Sprint(n)}, {ID: "p"}}
	}
	return r
}

// addRows adds the events from one number to before another.
func addRows(t *testing.T, table *Table, from, to int) {
	t.Helper()
	for n := from; n < to; n++ {
		if err := table.Add(rowAt(n)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWhatIsForgottenTakesNoRoom(t *testing.T) {
	table := NewTable()
	addRows(t, table, 0, 2*ChunkRows)
	table.Apply(stream.Record{Event: table.Last() + 1, Platform: "crm", Status: stream.Failed})
	if !table.Forget(table.Last() + 2) {
		t.Fatal("no chunk can be dropped")
	}
	table.Drop()
	for what, left := range map[string]int{
		"chunks": len(table.chunks), "names": len(table.names.numbers) - 1, "touches": len(table.touches.numbers) - 1,
		"currencies": len(table.currencies.numbers) - 1, "lists of platforms": len(table.platforms.numbers),
		"pages": len(table.pages.numbers) - 1, "products": len(table.products.numbers) - 1,
		"visitors": len(table.visitors.numbers), "early records": len(table.early),
	} {
		if left != 0 {
			t.Errorf("%d %s are left", left, what)
		}
	}
	known := len(table.visitors.keys)
	addRows(t, table, 2*ChunkRows, 2*ChunkRows+1000)
	if len(table.visitors.keys) > known {
		t.Errorf("numbers of visitors grew from %d to %d though all were free", known, len(table.visitors.keys))
	}
}

func TestRecordsWhoseEventNeverComesAreForgotten(t *testing.T) {
	table := NewTable()
	addRows(t, table, 0, 1)
	table.Apply(stream.Record{Event: table.Last() + 1, Platform: "crm", Status: stream.Failed, At: begin})
	if got := len(table.early); got != 1 {
		t.Fatalf("%d early records wait, want 1", got)
	}
	addRows(t, table, 1, 2)
	table.DiscardOrphans()
	if got := len(table.early); got != 0 {
		t.Errorf("%d early records wait for an event that cannot come any more", got)
	}
}

func TestRecordsThatWaitForTheirEventAreBounded(t *testing.T) {
	table := NewTable()
	for i := range stream.Position(2 * maxEarly) {
		table.Apply(stream.Record{Event: stream.At(begin) + i, Platform: "crm", Status: stream.Delivered, At: begin})
	}
	if got := table.earlyCount; got != maxEarly {
		t.Errorf("%d records wait, want %d", got, maxEarly)
	}
	table.Forget(stream.At(begin.Add(time.Hour)))
	if got := table.earlyCount; got != 0 || len(table.early) != 0 {
		t.Errorf("%d records wait for events that are gone", got)
	}
}

func TestAnEventOfTooManyPlatformsIsLeftOut(t *testing.T) {
	table, r := NewTable(), rowAt(0)
	var names []string
	for n := range maxPlatforms + 1 {
		names = append(names, fmt.Sprint("platform", n))
	}
	r.Platforms = ListPlatforms(names)
	if err := table.Add(r); !errors.Is(err, errTooManyPlatforms) {
		t.Errorf("got %v, want %v", err, errTooManyPlatforms)
	}
	r.Platforms = ListPlatforms(names[:maxPlatforms])
	if err := table.Add(r); err != nil {
		t.Errorf("as many as there may be are refused: %v", err)
	}
}

func TestPlaces(t *testing.T) {
	list := ListPlatforms([]string{"meta", "crm", "log"})
	for name, want := range map[string]int{"meta": 0, "crm": 1, "log": 2, "cr": -1, "": -1} {
		if got := list.placeOf(name); got != want {
			t.Errorf("%q stands at %d, want %d", name, got, want)
		}
	}
	if got := ListPlatforms(nil).Count(); got != 0 {
		t.Errorf("no names are %d", got)
	}
}
