package imports_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/clickhouse/clickhousetest"
	"github.com/weir-dev/weir/collector/history/imports"
)

// nth is a fault at the nth statement that a server is asked.
func nth(n int, fault clickhousetest.Fault) clickhousetest.Fault {
	asked := 0
	fault.Matching = func(string) bool { asked++; return asked == n }
	return fault
}

func TestAnImportThatWasBrokenOffGoesOn(t *testing.T) {
	lines := many(0, 400)
	path := file(t, "a.json", lines...)
	whole := newPlace(t)
	whole.run(path)
	want := whole.events()
	for name, fault := range map[string]clickhousetest.Fault{
		"before a statement is carried out": {CutBefore: true},
		"when it was":                       {CutAfter: true},
	} {
		broken := true
		for n := 1; broken; n++ {
			t.Run(fmt.Sprint(name, " ", n), func(t *testing.T) {
				address := clickhousetest.Shared(t)
				placeAt(t, address)
				proxy := clickhousetest.StartProxy(t, address)
				proxy.Add(nth(n, fault))
				client, err := clickhouse.Dial(proxy.URL(), clickhouse.Options{})
				if err != nil {
					t.Fatal(err)
				}
				defer client.Close()
				p := placeAt(t, address)
				p.Client, p.BlockRows, p.Pauses, p.Paths = client, 150, []time.Duration{}, []string{path}
				_, err = imports.Run(context.Background(), p.Options)
				broken = err != nil
				proxy.Heal()
				p.run(path)
				if diff := cmp.Diff(want, p.events()); diff != "" {
					t.Errorf("the history (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestAServerThatIsAwayForAWhileIsWaitedFor(t *testing.T) {
	address := clickhousetest.Shared(t)
	p := placeAt(t, address)
	proxy := clickhousetest.StartProxy(t, address)
	proxy.Add(clickhousetest.Fault{CutAfter: true, Times: 1, Matching: func(sql string) bool { return strings.HasPrefix(sql, "INSERT") }})
	proxy.Add(clickhousetest.Fault{Code: 252, Message: "too many parts", Times: 1, Matching: func(sql string) bool { return strings.HasPrefix(sql, "INSERT") }})
	client, err := clickhouse.Dial(proxy.URL(), clickhouse.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	p.Client, p.BlockRows, p.Pauses = client, 100, []time.Duration{time.Millisecond, time.Millisecond, time.Millisecond}
	report := p.run(file(t, "a.json", many(0, 250)...))
	if got := len(p.events()); got != 250 || report.Imported+report.There != 250 {
		t.Errorf("there are %d events, and it says %+v", got, report)
	}
}

// TestABlockThatComesLateIsTakenBack: its writer was killed, and another has looked before it came.
func TestABlockThatComesLateIsTakenBack(t *testing.T) {
	p := newPlace(t)
	path := file(t, "a.json", many(0, 300)...)
	p.run(path)
	want := p.events()
	p.add(want[20:90]...)
	if report := p.run(path); report.Imported != 0 {
		t.Errorf("report %+v", report)
	}
	if diff := cmp.Diff(want, p.events()); diff != "" {
		t.Errorf("the history (-want +got):\n%s", diff)
	}
}

// TestWhatWasDeletedIsImportedAgain although the table remembers the block that it came in.
func TestWhatWasDeletedIsImportedAgain(t *testing.T) {
	p := newPlace(t)
	path := file(t, "a.json", many(0, 100)...)
	p.run(path)
	want := p.events()
	p.exec("ALTER TABLE events DELETE WHERE 1 SETTINGS mutations_sync = 2")
	if report := p.run(path); report.Imported != 100 {
		t.Errorf("report %+v", report)
	}
	if diff := cmp.Diff(want, p.events()); diff != "" {
		t.Errorf("the history (-want +got):\n%s", diff)
	}
}
