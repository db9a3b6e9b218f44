package history_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/clickhouse/clickhousetest"
	"github.com/weir-dev/weir/collector/history"
	"github.com/weir-dev/weir/collector/history/rows"
	"github.com/weir-dev/weir/collector/history/schema"
	"github.com/weir-dev/weir/collector/stream"
)

// distant returns an engine whose history lies behind a proxy, and a client that is not.
func distant(t *testing.T) (*history.Engine, *clickhousetest.Proxy, *clickhouse.Client) {
	t.Helper()
	address := clickhousetest.Shared(t)
	proxy := clickhousetest.StartProxy(t, address)
	dial := func(address string) *clickhouse.Client {
		client, err := clickhouse.Dial(address, clickhouse.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(client.Close)
		return client
	}
	client := dial(address)
	if _, err := schema.Ensure(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	return history.New(history.Options{Client: dial(proxy.URL()), Currency: "EUR"}), proxy, client
}

func TestAHistorySaysHowFarItIs(t *testing.T) {
	at := stream.At(begin)
	for name, test := range map[string]struct {
		rows []rows.Event
		gaps string
		want analytics.Status
	}{
		"nothing is there yet": {want: analytics.Status{Ready: true, Connected: true}},
		"events are":           {rows: []rows.Event{{At: uint64(at)}, {At: uint64(at) + 7}}, want: analytics.Status{Ready: true, Connected: true, Last: at + 7, AsOf: begin, Events: 2}},
		"some are missing, up to the newest gap's end": {
			gaps: "(0, 5), (1, 1048576000), (7, 9)", want: analytics.Status{Ready: true, Connected: true, CompleteFrom: time.UnixMilli(1001).UTC()}},
	} {
		t.Run(name, func(t *testing.T) {
			engine, _, client := distant(t)
			if err := clickhouse.Insert(t.Context(), client, schema.Events, test.rows, ""); err != nil {
				t.Fatal(err)
			}
			if test.gaps != "" {
				run(t, client, "INSERT INTO gaps VALUES "+test.gaps)
			}
			if diff := cmp.Diff(test.want, engine.Status(t.Context())); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
			page, err := engine.Listing(t.Context(), analytics.ListingQuery{Range: analytics.Range{To: begin.Add(time.Hour)}, Limit: 10, Count: true})
			if err != nil || len(page.Records) != test.want.Events || *page.Total != test.want.Events || !page.CompleteFrom.Equal(test.want.CompleteFrom) {
				t.Errorf("the page is %+v, %v", page, err)
			}
		})
	}
}

func TestAHistoryThatIsAwayIsAsFarAsItWasLast(t *testing.T) {
	engine, proxy, client := distant(t)
	proxy.Add(clickhousetest.Fault{CutBefore: true})
	if got := engine.Status(t.Context()); got != (analytics.Status{}) {
		t.Errorf("before it was ever reached its status is %+v", got)
	}
	proxy.Heal()
	if err := clickhouse.Insert(t.Context(), client, schema.Events, []rows.Event{{At: uint64(stream.At(begin))}}, ""); err != nil {
		t.Fatal(err)
	}
	want := engine.Status(t.Context())
	if !want.Ready || !want.Connected || want.Last != stream.At(begin) {
		t.Fatalf("the status is %+v", want)
	}
	proxy.Add(clickhousetest.Fault{CutBefore: true})
	want.Connected = false
	if got := engine.Status(t.Context()); got != want {
		t.Errorf("when it is away its status is %+v, want %+v", got, want)
	}
	everything := analytics.Range{To: begin.Add(time.Hour)}
	if _, err := engine.Listing(t.Context(), analytics.ListingQuery{Range: everything, Limit: 1}); !errors.Is(err, analytics.ErrUnavailable) {
		t.Errorf("a listing fails with %v", err)
	}
	if _, err := engine.Entries(t.Context(), []stream.Position{1}); !errors.Is(err, analytics.ErrUnavailable) {
		t.Errorf("reading an event fails with %v", err)
	}
}
