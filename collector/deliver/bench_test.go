package deliver

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/deliver/adapter"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/stream"
)

// BenchmarkDelivery measures events a second from a filled stream to a platform that takes all, in turn with a bare
// consumer of the same stream that maps, sends as many requests at a time and acknowledges, but neither judges the
// answers nor records, retries or watches anything. An iteration is a round of both; "ratio" is the median of the rounds'.
func BenchmarkDelivery(b *testing.B) {
	for _, run := range []struct {
		name    string
		kind    platforms.Type
		batch   int
		latency time.Duration
		events  int
	}{
		{"1 a request", platforms.TypeMeta, 1, 0, 5_000},
		{"100 a request", platforms.TypeMeta, 100, 0, 50_000},
		{"1000 a request", platforms.TypeMeta, 1000, 0, 50_000},
		{"100 a request and 100 ms each", platforms.TypeMeta, 100, 100 * time.Millisecond, 50_000},
		{"Microsoft", platforms.TypeMicrosoft, 200, 0, 50_000},
		{"LinkedIn", platforms.TypeLinkedIn, 100, 0, 50_000},
		{"Snapchat", platforms.TypeSnapchat, 200, 0, 50_000},
		{"Reddit", platforms.TypeReddit, 100, 0, 50_000},
		{"Klaviyo", platforms.TypeKlaviyo, 500, 0, 50_000},
		{"Amplitude", platforms.TypeAmplitude, 200, 0, 50_000},
		{"PostHog", platforms.TypePostHog, 200, 0, 50_000},
		{"Segment", platforms.TypeSegment, 100, 0, 50_000},
		{"OpenAI", platforms.TypeOpenAI, 100, 0, 50_000},
	} {
		b.Run(run.name, func(b *testing.B) {
			sink := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					return
				}
				<-time.After(run.latency)
				_, _ = io.WriteString(w, takenBy[run.kind](body))
			}))
			b.Cleanup(sink.Close)
			cfg := subjects[run.kind].cfg
			cfg.Name, cfg.Type, cfg.Endpoint = "p", run.kind, sink.URL
			bare := cfg
			bare.Name, bare.Suspend = "bare", true // its group is left to the bare consumer
			h := newHarness(b, cfg, bare)
			h.credentials["p"] = suiteCredentials
			var ours, theirs, ratios []float64
			for round := range b.N {
				fill(b, h, run.events)
				measures := []func(){
					func() { ours = append(ours, deliverAll(b, h, run.batch, run.events)) },
					func() { theirs = append(theirs, consumeAll(b, h, bare, run.batch, run.events)) },
				}
				if round%2 == 1 {
					slices.Reverse(measures)
				}
				for _, measure := range measures {
					measure()
				}
				ratios = append(ratios, ours[round]/theirs[round])
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(median(ours), "events/s")
			b.ReportMetric(median(theirs), "bare-events/s")
			b.ReportMetric(median(ratios), "ratio")
		})
	}
}

// takenBy are what platforms answer to a request of which they take all events.
var takenBy = map[platforms.Type]func(body []byte) string{
	platforms.TypeMeta: func(body []byte) string {
		return `{"events_received":` + strconv.Itoa(bytes.Count(body, []byte(`"event_name"`))) + `}`
	},
	platforms.TypeMicrosoft: func(body []byte) string {
		return `{"eventsReceived":` + strconv.Itoa(bytes.Count(body, []byte(`"eventTime"`))) + `}`
	},
	platforms.TypeLinkedIn: func(body []byte) string {
		created := strings.Repeat(`{"status":201},`, bytes.Count(body, []byte(`"conversionHappenedAt"`)))
		return `{"elements":[` + strings.TrimSuffix(created, ",") + `]}`
	},
	platforms.TypeSnapchat:  func([]byte) string { return `{"status":"VALID","reason":"Events have been processed successfully."}` },
	platforms.TypeReddit:    func([]byte) string { return `{"data":{"message":"Successfully processed 100 conversion events."}}` },
	platforms.TypeKlaviyo:   func([]byte) string { return "" },
	platforms.TypeAmplitude: func([]byte) string { return `{"code":200}` },
	platforms.TypePostHog:   func([]byte) string { return `{"status":"Ok"}` },
	platforms.TypeSegment:   func([]byte) string { return `{"success":true}` },
	platforms.TypeOpenAI:    func([]byte) string { return `{}` },
}

// BenchmarkQueuedDelivery is [BenchmarkDelivery] of a platform that queues what it is sent: Google, whose sink says at the first look that
// it is done with it. "ratio" is of the time until all are delivered, the second that the first look waits included, and
// "queued-ratio" of that until all are queued.
func BenchmarkQueuedDelivery(b *testing.B) {
	for _, batch := range []int{100, 1000} {
		b.Run(strconv.Itoa(batch)+" a request", func(b *testing.B) {
			const events = 50_000
			sink := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if _, err := io.Copy(io.Discard, r.Body); err != nil {
					return
				}
				answer := `{"requestId":"` + uuid.NewString() + `"}`
				switch r.URL.Path {
				case "/token":
					answer = `{"access_token":"token-for-tests","expires_in":3600,"token_type":"Bearer"}`
				case "/v1/requestStatus:retrieve":
					answer = `{"requestStatusPerDestination":[{"requestStatus":"SUCCESS"}]}`
				}
				_, _ = io.WriteString(w, answer)
			}))
			b.Cleanup(sink.Close)
			cfg := platforms.Platform{
				Name: "p", Type: platforms.TypeGoogle, Endpoint: sink.URL,
				Settings: platforms.Settings{Google: &platforms.Google{Product: platforms.GoogleAnalytics, AccountID: "1", MeasurementID: "G-1"}},
			}
			bare := cfg
			bare.Name, bare.Suspend = "bare", true
			h := newHarness(b, cfg, bare)
			h.setCredential("p", "serviceAccountKey", suiteCredentials["serviceAccountKey"])
			var ours, queued, theirs, ratios, queuedRatios []float64
			for round := range b.N {
				fill(b, h, events)
				measures := []func(){
					func() {
						began, queuing := time.Now(), make(chan float64, 1)
						want := h.settledAs("retrying") + events
						go func() {
							for h.settledAs("retrying") < want {
								<-time.After(time.Millisecond)
							}
							queuing <- events / time.Since(began).Seconds()
						}()
						ours = append(ours, deliverAll(b, h, batch, events))
						queued = append(queued, <-queuing)
					},
					func() { theirs = append(theirs, consumeAll(b, h, bare, batch, events)) },
				}
				if round%2 == 1 {
					slices.Reverse(measures)
				}
				for _, measure := range measures {
					measure()
				}
				ratios, queuedRatios = append(ratios, ours[round]/theirs[round]), append(queuedRatios, queued[round]/theirs[round])
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(median(ours), "events/s")
			b.ReportMetric(median(theirs), "bare-events/s")
			b.ReportMetric(median(ratios), "ratio")
			b.ReportMetric(median(queuedRatios), "queued-ratio")
		})
	}
}

// settledAs is how many events have got a record of a status.
func (h *harness) settledAs(status string) int {
	return int(h.metric("weir_deliveries_total", map[string]string{"platform": "p", "status": status}))
}

func median(list []float64) float64 {
	list = slices.Sorted(slices.Values(list))
	return list[len(list)/2]
}

// deliverAll runs an engine until n more events are delivered and recorded, and returns how many that is a second.
func deliverAll(b *testing.B, h *harness, batch, n int) float64 {
	delivered := func() int { return h.settledAs("delivered") }
	want := delivered() + n
	start := time.Now()
	r := h.start("one", func(e *Engine) { e.timing, e.batch = defaultTiming(), batch })
	for delivered() < want {
		<-time.After(time.Millisecond)
	}
	rate := float64(n) / time.Since(start).Seconds()
	r.stop()
	return rate
}

// consumeAll reads, maps, sends and acknowledges n events, and returns how many that is a second.
func consumeAll(b *testing.B, h *harness, cfg platforms.Platform, batch, n int) float64 {
	opened, err := adapter.Open(cfg, suiteCredentials, new(config.Consent).Rule(&cfg))
	if err != nil {
		b.Fatal(err)
	}
	if _, err := h.stream.EnsureGroup(b.Context(), cfg.Name, stream.GroupState{}); err != nil {
		b.Fatal(err)
	}
	client := newClient(loopback, time.Minute, time.Now)
	defer client.close()
	slots := make(chan struct{}, min(parallelRequests, parallelEvents/batch))
	var requests sync.WaitGroup
	start := time.Now()
	for read := 0; read < n; {
		deliveries, err := h.stream.Read(b.Context(), cfg.Name, "one", maxTaken, time.Second)
		if err != nil {
			b.Fatal(err)
		}
		read += len(deliveries)
		for taken := range slices.Chunk(deliveries, batch) {
			slots <- struct{}{}
			requests.Go(func() {
				defer func() { <-slots }()
				payloads, positions := make([]adapter.Payload, 0, len(taken)), make([]stream.Position, 0, len(taken))
				for _, d := range taken {
					e, err := wire.Decode(d.Data)
					if err != nil {
						b.Error(err)
					}
					payload, _ := opened.Map(&adapter.Event{Event: e, ReceivedAt: d.Position.Time()})
					payloads, positions = append(payloads, payload), append(positions, d.Position)
				}
				if _, failure := client.exchange(b.Context(), opened.Build(payloads, time.Now())); failure != nil {
					b.Error(failure.Reason)
				}
				if err := h.stream.Acknowledge(b.Context(), cfg.Name, positions); err != nil {
					b.Error(err)
				}
			})
		}
	}
	requests.Wait()
	return float64(n) / time.Since(start).Seconds()
}

// fill appends n purchases.
func fill(b testing.TB, h *harness, n int) {
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
			Context:  event.Context{IP: "203.0.113.7", UserAgent: "Mozilla/5.0"},
			Contents: []event.Item{{ID: "sku-1", Quantity: &amount, Price: &amount, Name: "Lamp"}},
		}
		additions = append(additions, stream.Addition{Entry: wire.Encode(&e), EventID: e.ID})
		if len(additions) == 500 || i == n-1 {
			if _, err := h.appender.Append(b.Context(), additions); err != nil {
				b.Fatal(err)
			}
			additions = nil
		}
	}
}
