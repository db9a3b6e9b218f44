package history_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/clickhouse/clickhousetest"
	"github.com/weir-dev/weir/collector/history"
	"github.com/weir-dev/weir/collector/history/schema"
)

// counting stands before a server, and adds up how many rows its answers took.
type counting struct{ rows atomic.Int64 }

// startCounting returns it, and a client that asks through it.
func startCounting(t *testing.T, address string) (*counting, *clickhouse.Client) {
	t.Helper()
	target, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	server := *target
	server.Path = ""
	proxy := httputil.NewSingleHostReverseProxy(&server)
	proxy.Transport = &http.Transport{DisableKeepAlives: true}
	count := &counting{}
	proxy.ModifyResponse = func(answer *http.Response) error {
		var summary struct {
			Rows int64 `json:"read_rows,string"`
		}
		if err := json.Unmarshal([]byte(answer.Header.Get("X-ClickHouse-Summary")), &summary); err != nil {
			return err
		}
		count.rows.Add(summary.Rows)
		return nil
	}
	front := httptest.NewServer(proxy)
	t.Cleanup(front.Close)
	target.Host = front.Listener.Addr().String()
	// Changes of tables are done, and how many rows were read is known, before there is an answer.
	client, err := clickhouse.Dial(target.String(), clickhouse.Options{Settings: clickhouse.Settings{"mutations_sync": 2, "wait_end_of_query": true}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return count, client
}

// ordersMade are events a second apart, of which every second has an id that its sender gave, and every tenth an order.
const ordersMade = `INSERT INTO events (at, name, visitor, order_id, delivery_high, delivery_low, event_id)
SELECT bitShiftLeft({begin:UInt64} + 1000 * number, 20), 'purchase', number + 1, if(number % 10 = 0, concat('order-', toString(number)), ''),
	sipHash64(number, 1), sipHash64(number, 2), if(number % 2 = 1, concat('event-', toString(number)), '')
FROM numbers({events:UInt64})`

// TestALookUpReadsFewRows: what is looked up by an id is found without a look at all events, also where the tables were made when there
// was no index.
func TestALookUpReadsFewRows(t *testing.T) {
	const events, few = 200_000, 4 * 8192
	for name, older := range map[string]bool{"tables of today": false, "tables without an index, which then get one": true} {
		t.Run(name, func(t *testing.T) {
			count, client := startCounting(t, clickhousetest.Shared(t))
			exec := func(query clickhouse.Query) {
				t.Helper()
				if err := client.Exec(t.Context(), query); err != nil {
					t.Fatal(err)
				}
			}
			ensure := func() {
				t.Helper()
				if _, err := schema.Ensure(t.Context(), client); err != nil {
					t.Fatal(err)
				}
			}
			ensure()
			if older {
				exec(clickhouse.Query{SQL: "ALTER TABLE events DROP INDEX event_ids"})
				exec(clickhouse.Query{SQL: "ALTER TABLE events DROP INDEX order_ids"})
			}
			exec(clickhouse.Query{SQL: ordersMade, Parameters: map[string]any{"begin": begin.UnixMilli(), "events": events}})
			ensure()
			delivery, err := clickhouse.One[string](t.Context(), client, clickhouse.Query{SQL: "SELECT " + schema.DeliveryID + " FROM events WHERE visitor = 120001"})
			if err != nil {
				t.Fatal(err)
			}
			engine := history.New(history.Options{Client: client, Currency: "EUR"})
			within := analytics.Range{From: begin, To: begin.Add(events * time.Second)}
			for what, test := range map[string]struct {
				ask  analytics.ListingQuery
				want int // which of the events; -1 is none
			}{
				"an id that a sender gave":      {analytics.ListingQuery{EventIDs: []string{"event-33333"}}, 33_333},
				"the id of a delivery":          {analytics.ListingQuery{EventIDs: []string{"unknown", delivery}}, 120_000},
				"an order":                      {analytics.ListingQuery{OrderIDs: []string{"order-70000", "order-1"}}, 70_000},
				"an order, and how many it has": {analytics.ListingQuery{OrderIDs: []string{"order-70000"}, Count: true}, 70_000},
				"an id that nothing has":        {analytics.ListingQuery{EventIDs: []string{"event-0"}}, -1},
			} {
				q := test.ask
				q.Range, q.Limit, q.AnyClass = within, 10, true
				before := count.rows.Load()
				page, err := engine.Listing(t.Context(), q)
				read := count.rows.Load() - before
				found := -1
				if len(page.Records) == 1 {
					found = int(page.Records[0].ReceivedAt.Sub(begin) / time.Second)
				}
				if err != nil || found != test.want || len(page.Records) > 1 {
					t.Errorf("%s: got %d of %d events (%v), want %d", what, found, len(page.Records), err, test.want)
				}
				if read > few {
					t.Errorf("%s: took %d of %d rows, want %d at most", what, read, events, few)
				}
			}
		})
	}
}
