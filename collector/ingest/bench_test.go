package ingest_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/collector/ingest"
	"github.com/weir-dev/weir/collector/server"
	"github.com/weir-dev/weir/collector/stream"
)

// typical is a purchase of 560 bytes: user, context and two items.
const typical = `{"event":"purchase","event_id":"0193485a-7b1c-7d2e-9f3a-4b5c6d7e8f90","client_id":"1234567890.1700000000",` +
	`"user":{"email":"jane.roe@example.com","phone":"+14155550123","first_name":"Jane"},` +
	`"data":{"value":49.9,"currency":"EUR","order_id":"ORD-2026-0004711","contents":[{"id":"SKU-1","quantity":1,"price":29.9},{"id":"SKU-2","quantity":2,"price":10}]},` +
	`"context":{"page_url":"https://shop.example.com/thanks?utm_source=google&utm_medium=cpc","user_agent":"Mozilla/5.0 (X11; Linux x86_64)","ip":"203.0.113.7"}}`

// typicalMessage is the same purchase as a client of Segment's API sends it.
const typicalMessage = `{"type":"track","event":"Order Completed","messageId":"0193485a-7b1c-7d2e-9f3a-4b5c6d7e8f90","anonymousId":"1234567890.1700000000",` +
	`"timestamp":"2026-11-20T12:00:00.000Z","context":{"traits":{"email":"jane.roe@example.com","phone":"+14155550123","firstName":"Jane"},` +
	`"page":{"url":"https://shop.example.com/thanks?utm_source=google&utm_medium=cpc"},"userAgent":"Mozilla/5.0 (X11; Linux x86_64)","ip":"203.0.113.7",` +
	`"library":{"name":"@segment/analytics-node","version":"3.1.0"}},"integrations":{},` +
	`"properties":{"total":49.9,"currency":"EUR","order_id":"ORD-2026-0004711","products":[{"product_id":"SKU-1","quantity":1,"price":29.9},{"product_id":"SKU-2","quantity":2,"price":10}]}}`

// discard is an appender that costs nothing.
type discard struct{}

func (discard) Append(_ context.Context, additions []stream.Addition) ([]stream.Added, error) {
	added := make([]stream.Added, len(additions))
	for i := range additions {
		added[i].EventID = additions[i].EventID
	}
	return added, nil
}

// collecting is the collector as it is served, without a Redis.
func collecting() http.Handler {
	registry := prometheus.NewRegistry()
	handler := ingest.New(ingest.Options{Now: time.Now, Registerer: registry})
	handler.Serve([]ingest.Tenant{{Property: property("shop"), Keys: keysOf(shopKey), Appender: discard{}, Suppression: suppression(nil)}})
	router := server.NewRouter(server.NewObserver(slog.New(slog.DiscardHandler), registry))
	handler.Routes(router)
	return router
}

// bare is what a handler cannot do without: a route, the body, an answer.
func bare() http.Handler {
	router := chi.NewRouter()
	router.Post("/collect/{api_key}", func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, `{"ok":true,"event_id":"0193485a-7b1c-7d2e-9f3a-4b5c6d7e8f90"}`)
	})
	return router
}

// BenchmarkHandlers compares the collector with a bare handler, without the network: what is left between the two
// is authentication, decoding, validation, hashing, encoding and metrics.
func BenchmarkHandlers(b *testing.B) {
	batch := []byte(`{"events": [` + strings.TrimSuffix(strings.Repeat(typical+",", 100), ",") + `]}`)
	messages := []byte(`{"batch": [` + strings.TrimSuffix(strings.Repeat(typicalMessage+",", 100), ",") + `], "sentAt": "2026-11-20T12:00:01.000Z"}`)
	// Segment's clients say when each event happened; for the comparison our own sender does too.
	dated := strings.Replace(typical, `{`, `{"timestamp":"`+time.Now().UTC().Format(time.RFC3339)+`",`, 1)
	datedBatch := []byte(`{"events": [` + strings.TrimSuffix(strings.Repeat(dated+",", 100), ",") + `]}`)
	const collect = "/collect/" + shopKey
	for _, c := range []struct {
		name    string
		handler http.Handler
		path    string
		body    []byte
		header  string
	}{
		{"bare", bare(), collect, []byte(typical), ""},
		{"collect", collecting(), collect, []byte(typical), ""},
		{"collect gzip", collecting(), collect, gzipped(b, []byte(typical)), "gzip"},
		{"collect zstd", collecting(), collect, zstandard(b, []byte(typical)), "zstd"},
		{"batch of 100", collecting(), collect + "/batch", batch, ""},
		{"batch of 100 with times", collecting(), collect + "/batch", datedBatch, ""},
		{"segment's batch of 100", collecting(), "/v1/batch", messages, ""},
	} {
		b.Run(c.name, func(b *testing.B) {
			r := httptest.NewRequestWithContext(b.Context(), http.MethodPost, c.path, nil)
			r.Header.Set("Content-Type", "application/json")
			r.SetBasicAuth(shopKey, "") // which Segment's API reads
			if c.header != "" {
				r.Header.Set("Content-Encoding", c.header)
			}
			r.ContentLength = int64(len(c.body))
			b.ReportAllocs()
			for b.Loop() {
				r.Body = io.NopCloser(bytes.NewReader(c.body))
				w := answering{header: http.Header{}}
				c.handler.ServeHTTP(&w, r)
				if w.status != 0 && w.status != http.StatusAccepted {
					b.Fatal(w.status, w.body)
				}
			}
		})
	}
}

// BenchmarkServers compares the two over loopback connections, client included.
func BenchmarkServers(b *testing.B) {
	for _, c := range []struct {
		name    string
		handler http.Handler
	}{{"bare", bare()}, {"collect", collecting()}} {
		b.Run(c.name, func(b *testing.B) {
			s := httptest.NewServer(c.handler)
			defer s.Close()
			client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
			b.SetParallelism(16)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					request, err := http.NewRequestWithContext(b.Context(), http.MethodPost, s.URL+"/collect/"+shopKey, strings.NewReader(typical))
					if err != nil {
						b.Error(err)
						return
					}
					request.Header.Set("Content-Type", "application/json")
					response, err := client.Do(request)
					if err != nil {
						b.Error(err)
						return
					}
					_, err = io.Copy(io.Discard, response.Body)
					response.Body.Close()
					if err != nil || response.StatusCode != http.StatusAccepted {
						b.Error(fmt.Errorf("%d %w", response.StatusCode, err))
						return
					}
				}
			})
		})
	}
}

// answering is a ResponseWriter without a recorder's cost.
type answering struct {
	header http.Header
	status int
	body   []byte
}

func (a *answering) Header() http.Header    { return a.header }
func (a *answering) WriteHeader(status int) { a.status = status }
func (a *answering) Write(p []byte) (int, error) {
	a.body = append(a.body[:0], p...)
	return len(p), nil
}
