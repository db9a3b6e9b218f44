package ingest_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/collector/ingest"
	"github.com/weir-dev/weir/collector/server"
)

// FuzzSegment sends anything to Segment's calls: the answer is JSON with a status of the contract, and neither the answer nor
// the log repeats the key.
func FuzzSegment(f *testing.F) {
	f.Add("/v1/batch", shopKey, "", []byte(`{"batch":[`+typicalMessage+`,7,{"type":"page","properties":{"url":"https://shop.example/"}}],"sentAt":"2026-11-20T12:00:00Z"}`))
	f.Add("/v1/track", shopKey, "", []byte(typicalMessage))
	f.Add("/v1/p", "", "", []byte(`{"writeKey":"`+shopKey+`","name":"Home"}`))
	f.Add("/v1/b", "wk_unknown_to_anybody_at_all", "gzip", gzipped(f, []byte(`{"batch":[{"type":"identify"}]}`)))
	f.Fuzz(func(t *testing.T, path, key, coding string, body []byte) {
		if !slices.Contains([]string{"/v1/batch", "/v1/b", "/v1/track", "/v1/t", "/v1/page", "/v1/p", "/v1/screen", "/v1/i", "/v1/group", "/v1/a"}, path) {
			return
		}
		var log bytes.Buffer
		registry := prometheus.NewRegistry()
		handler := ingest.New(ingest.Options{Now: func() time.Time { return noon }, Registerer: registry})
		tenant, _ := inMemory()
		handler.Serve([]ingest.Tenant{tenant})
		router := server.NewRouter(server.NewObserver(slog.New(slog.NewTextHandler(&log, nil)), registry))
		handler.Routes(router)

		request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, bytes.NewReader(body))
		request.Header["Content-Encoding"] = []string{coding}
		if key != "" {
			request.SetBasicAuth(key, "")
		}
		answer := httptest.NewRecorder()
		router.ServeHTTP(answer, request)

		if !slices.Contains([]int{200, 400, 401, 413, 415}, answer.Code) || !jsontext.Value(answer.Body.Bytes()).IsValid() {
			t.Errorf("got %d %s", answer.Code, answer.Body)
		}
		if key != "" && !strings.Contains(key, ":") && key != shopKey && answer.Code != 401 {
			t.Errorf("the key %q got %d", key, answer.Code)
		}
		if len(key) > 20 && (strings.Contains(log.String(), key) || strings.Contains(answer.Body.String(), key)) {
			t.Errorf("the key %q is repeated: %s %s", key, log.String(), answer.Body)
		}
	})
}

// FuzzSources has a shop of each type sign anything: the answer is JSON with a status of the contract, and the log has
// nothing of what was sent.
func FuzzSources(f *testing.F) {
	f.Add(uint8(0), "orders/paid", fixture(f, "shopify-order"))
	f.Add(uint8(0), "refunds/create", fixture(f, "shopify-refund"))
	f.Add(uint8(1), "order.updated", fixture(f, "woocommerce-order"))
	f.Add(uint8(2), "", fixture(f, "stripe-session"))
	f.Add(uint8(2), "", fixture(f, "stripe-refund"))
	f.Add(uint8(1), "order.updated", []byte("webhook_id=1"))
	f.Add(uint8(0), "orders/paid", []byte(`{"id": "jane@example.com", "financial_status": "paid", "total_price": -1, "line_items": [[]], "customer": {"email": 7}}`))
	f.Fuzz(func(t *testing.T, source uint8, topic string, body []byte) {
		if strings.ContainsFunc(topic, func(r rune) bool { return r < ' ' || r > '~' }) {
			return // no header has that
		}
		r := signed([]string{"shopify", "woo", "stripe"}[source%3], topic, body, signingSecret)
		var log bytes.Buffer
		registry := prometheus.NewRegistry()
		handler := ingest.New(ingest.Options{Now: func() time.Time { return noon }, Registerer: registry})
		tenant, _ := inMemory()
		handler.Serve([]ingest.Tenant{withSources(tenant)})
		router := server.NewRouter(server.NewObserver(slog.New(slog.NewTextHandler(&log, nil)), registry))
		handler.Routes(router)
		request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, r.path, bytes.NewReader(body))
		request.Header.Set("Content-Type", "application/json")
		for name, value := range r.header {
			request.Header.Set(name, value)
		}
		answer := httptest.NewRecorder()
		router.ServeHTTP(answer, request)
		if !slices.Contains([]int{200, 400, 413}, answer.Code) || !jsontext.Value(answer.Body.Bytes()).IsValid() {
			t.Errorf("got %d %s", answer.Code, answer.Body)
		}
		if strings.Contains(log.String(), "@") || strings.Contains(log.String(), shopKey) {
			t.Errorf("the log says %s", log.String())
		}
	})
}

// FuzzCollect sends anything to both calls: the answer is JSON with a status of the contract, and neither the answer to
// a wrong key nor the log repeats the key.
func FuzzCollect(f *testing.F) {
	f.Add(shopKey, false, "application/json", "", []byte(purchase))
	f.Add(shopKey, true, "application/json; charset=UTF-8", "", []byte(`{"events": [`+purchase+`, 7]}`))
	f.Add(shopKey, false, "application/json", "gzip", gzipped(f, []byte(purchase)))
	f.Add(shopKey, true, "application/json", "zstd", zstandard(f, []byte(`{"events": [`+purchase+`]}`)))
	f.Add("wk_unknown/../batch", true, "text/plain", "br", []byte("\xff"))
	f.Fuzz(func(t *testing.T, key string, batch bool, contentType, coding string, body []byte) {
		var log bytes.Buffer
		registry := prometheus.NewRegistry()
		handler := ingest.New(ingest.Options{Now: func() time.Time { return noon }, Registerer: registry})
		tenant, _ := inMemory()
		handler.Serve([]ingest.Tenant{tenant})
		router := server.NewRouter(server.NewObserver(slog.New(slog.NewTextHandler(&log, nil)), registry))
		handler.Routes(router)

		path := "/collect/" + url.PathEscape(key)
		if batch {
			path += "/batch"
		}
		request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, bytes.NewReader(body))
		request.Header["Content-Type"], request.Header["Content-Encoding"] = []string{contentType}, []string{coding}
		answer := httptest.NewRecorder()
		router.ServeHTTP(answer, request)

		if !slices.Contains([]int{202, 400, 401, 404, 413, 415, 422}, answer.Code) || !jsontext.Value(answer.Body.Bytes()).IsValid() {
			t.Errorf("got %d %s", answer.Code, answer.Body)
		}
		if key != shopKey && !slices.Contains([]int{401, 404}, answer.Code) {
			t.Errorf("the key %q got %d", key, answer.Code)
		}
		const route = "/collect/{api_key}/batch" // what the log may say
		if len(key) > 20 && !strings.Contains(route, key) && (strings.Contains(log.String(), key) || strings.Contains(answer.Body.String(), key)) {
			t.Errorf("the key %q is repeated: %s %s", key, log.String(), answer.Body)
		}
	})
}
