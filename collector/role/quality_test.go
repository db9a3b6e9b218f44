package role_test

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/quality"
	"github.com/weir-dev/weir/collector/redisserver"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/collector/role"
	"github.com/weir-dev/weir/collector/stream"
)

// found is what the read API says of a property's numbers.
type found struct {
	Data struct {
		State    string
		Weeks    int
		Findings []struct {
			Event, Signal, From, To string
			Actual, Expected        float64
		}
	}
}

// quietFor is what collectors have counted of a shop that had 100 purchases an hour until so many slots ago, none since.
func quietFor(t *testing.T, s *stream.Stream, slots int) {
	t.Helper()
	now := time.Now().UTC()
	hour := func(at time.Time) (counts []stream.Count) {
		for _, counter := range []string{"0", "1", "2", "3"} {
			counts = append(counts, stream.Count{Slot: at, InHour: counter + "purchase", Count: 25}, stream.Count{Slot: at, InHour: counter + "<script>", Count: 25})
		}
		return append(counts, stream.Count{Slot: at, InHour: "+", Count: 1}, stream.Count{Slot: at, InHour: "$EURpurchase", Count: 100})
	}
	var counts []stream.Count
	for week := range 5 {
		for hours := -27; hours <= 3; hours++ {
			if at := now.Add(time.Duration(hours-7*24*week) * time.Hour).Truncate(time.Hour); at.Before(now) {
				counts = append(counts, hour(at)...)
			}
		}
	}
	if _, err := s.AddCounts(t.Context(), counts, now); err != nil {
		t.Fatal(err)
	}
	for i := range 30 {
		slot := now.Truncate(stream.CountSlot).Add(-time.Duration(i) * stream.CountSlot)
		counts := []stream.Count{{Slot: slot, InSlot: "+", InHour: "+", Count: 1}}
		if i > slots {
			counts = append(counts, stream.Count{Slot: slot, InSlot: "spurchase", InHour: "x", Count: 8}, stream.Count{Slot: slot, InSlot: "$EURpurchase", InHour: "x", Count: 8})
		}
		if _, err := s.AddCounts(t.Context(), counts, slot); err != nil {
			t.Fatal(err)
		}
	}
}

// TestReadersFindANumberThatWentWrong runs two readers, one after the other: the second is as one that was restarted.
func TestReadersFindANumberThatWentWrong(t *testing.T) {
	server := redistest.Start(t, redisserver.Options{Loopback: true})
	admin := dial(t, server.URL(), stream.TLS{})
	if err := admin.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	quietFor(t, admin.Stream("default", "reader"), 8)
	var answers [2]found
	for i := range answers {
		p := startReader(t, server)
		p.await("it is judged", func() bool {
			p.read("quality", &answers[i])
			return answers[i].Data.State == string(quality.Watching)
		})
		metrics := p.page(p.metrics + "/metrics")
		for _, want := range []string{
			`weir_quality_finding{event="purchase",namespace="default",property="reader",signal="volume"} 1`,
			`weir_quality_finding{event="other",namespace="default",property="reader",signal="volume"} 1`,
			`weir_quality_watching{namespace="default",property="reader"} 1`,
		} {
			if !strings.Contains(metrics, want+"\n") {
				t.Errorf("there is no metric %s", want)
			}
		}
		if strings.Contains(metrics, "<script") {
			t.Error("a name that somebody made up is in the metrics")
		}
		if err := p.stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
	}
	if diff := cmp.Diff(answers[0].Data.Findings, answers[1].Data.Findings); diff != "" && answers[0].Data.Findings[0].To == answers[1].Data.Findings[0].To {
		t.Errorf("two readers say different things:\n%s", diff)
	}
	var got []string
	for _, f := range answers[0].Data.Findings {
		got = append(got, fmt.Sprintf("%s: %s %.0f of %.0f", f.Event, f.Signal, f.Actual, f.Expected))
	}
	if diff := cmp.Diff([]string{"<script>: volume 0 of 33", "purchase: volume 0 of 33"}, got); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

func TestAReaderWithoutAPastSaysThatItDoesNotKnow(t *testing.T) {
	p := startReader(t, redistest.Start(t, redisserver.Options{Loopback: true}))
	var answer found
	p.await("it is judged", func() bool {
		p.read("quality", &answer)
		return answer.Data.State == string(quality.Interrupted)
	})
	if p.metric("weir_quality_watching") != 0 || len(answer.Data.Findings) > 0 {
		t.Errorf("it knows %+v", answer)
	}
	if err := p.stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
}

// TestACollectorCountsWhatItIsSent sends events of each kind with the Redis user that the operator gives a collector, and reads the counts
// when it has ended.
func TestACollectorCountsWhatItIsSent(t *testing.T) {
	server := redistest.Start(t, redisserver.Options{Loopback: true})
	admin := dial(t, server.URL(), stream.TLS{})
	if err := admin.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	user := stream.User{Name: "collector", Password: "password", Access: stream.AppendAccess, Namespace: "default", Property: "counting"}
	if err := stream.NewUsers(admin).Set(t.Context(), []stream.User{user}); err != nil {
		t.Fatal(err)
	}
	p := &pod{t: t, directory: t.TempDir(), property: shop("counting"), log: &logBuffer{}}
	p.write(config.PropertyFile, p.property)
	p.write(config.APIKeysFile, []auth.Credential{{Name: "first", Hash: auth.HashOf("key-1")}})
	address, err := url.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	address.User = url.UserPassword("collector", "password")
	p.writeText(config.RedisURLFile, address.String())
	p.run(role.Collect)
	p.await("ready", func() bool { return p.request(http.MethodGet, p.metrics+"/readyz", "", nil) == http.StatusOK })
	began := time.Now()
	for _, body := range []string{
		`{"event":"purchase","event_id":"1","client_id":"c.1","user":{"email":"jane@example.com"},"data":{"value":10,"currency":"EUR"},"context":{"click_ids":{"gclid":"g"}}}`,
		`{"event":"purchase","event_id":"1","data":{"value":10,"currency":"EUR"}}`,
		`{"event":"purchase","event_id":"2","client_id":"c.2","data":{"value":"ten","currency":"EUR"}}`,
		`{"event":"lead","event_id":"3","context":{"click_ids":{"fbp":"fb.1.1700000000000.1"}}}`,
		`{"event":"lead","event_id":"4","test":true}`,
		`[]`,
	} {
		p.request(http.MethodPost, p.collect+"/collect/key-1", body, http.Header{"Content-Type": {"application/json"}})
	}
	if err := p.stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
	sum := map[string]int64{}
	counted, err := admin.Stream("default", "counting").SlotCounts(t.Context(), []time.Time{began, began.Add(stream.CountSlot)})
	if err != nil {
		t.Fatal(err)
	}
	for _, counters := range counted {
		for name, count := range counters {
			sum[name] += count
		}
	}
	if sum["+"] == 0 {
		t.Error("it does not say that it was there")
	}
	delete(sum, "+")
	want := map[string]int64{"spurchase": 1, "cpurchase": 1, "epurchase": 1, "kpurchase": 1, "$EURpurchase": 1, "dpurchase": 1, "rpurchase": 1, "slead": 1, "r": 1}
	if diff := cmp.Diff(want, sum); diff != "" {
		t.Errorf("counts (-want +got):\n%s\n%s", diff, p.log)
	}
}

// page reads a page.
func (p *pod) page(address string) string {
	p.t.Helper()
	request, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		p.t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		p.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return string(text)
}
