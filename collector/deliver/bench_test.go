package deliver

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/stream"
)

// BenchmarkDelivery measures events a second from a filled stream to a platform that takes all, records and
// classification included.
func BenchmarkDelivery(b *testing.B) {
	sink := func(latency time.Duration) *httptest.Server {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return
			}
			<-time.After(latency)
			events := strings.Count(string(body), `"event_name"`)
			_, _ = io.WriteString(w, `{"events_received":`+strconv.Itoa(events)+`}`)
		}))
		b.Cleanup(server.Close)
		return server
	}
	for name, platform := range map[string]config.Platform{
		"one a request": {Name: "p", Type: config.TypeWebhook, Webhook: &config.Webhook{URL: sink(0).URL}},
		"a hundred a request": {
			Name: "p", Type: config.TypeMeta, Meta: &config.Meta{PixelID: "42"}, Endpoint: sink(0).URL,
		},
		"a hundred a request, each takes 100 ms": {
			Name: "p", Type: config.TypeMeta, Meta: &config.Meta{PixelID: "42"}, Endpoint: sink(100 * time.Millisecond).URL,
		},
	} {
		b.Run(name, func(b *testing.B) {
			h := newHarness(b, platform)
			fill(b, h, b.N)
			b.ResetTimer()
			h.start("one", func(e *Engine) { e.timing = defaultTiming() })
			delivered := map[string]string{"platform": "p", "status": "delivered"}
			for int(h.metric("weir_deliveries_total", delivered)) < b.N {
				<-time.After(time.Millisecond)
			}
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
		})
	}
}

// fill appends n purchases.
func fill(b *testing.B, h *harness, n int) {
	b.Helper()
	amount := event.Amount(95_000)
	var additions []stream.Addition
	for i := range n {
		id, err := uuid.NewV7()
		if err != nil {
			b.Fatal(err)
		}
		e := event.Event{
			ID: id.String(), DeliveryID: id, Name: "purchase", Value: &amount, Currency: "EUR", OrderID: id.String(),
			ClientID: "123.456", Platforms: h.property.PlatformNames(),
			Contents: []event.Item{{ID: "sku-1", Quantity: &amount, Price: &amount, Name: "Lamp"}},
		}
		additions = append(additions, stream.Addition{Entry: e.Encode(), EventID: e.ID, DeliveryID: id})
		if len(additions) == 500 || i == n-1 {
			if _, err := h.appender.Append(b.Context(), additions); err != nil {
				b.Fatal(err)
			}
			additions = nil
		}
	}
}
