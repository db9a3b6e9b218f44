package role_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/platforms"
)

func TestAnEventIsShownWithTheAttemptsThatADelivererHasMade(t *testing.T) {
	var asked atomic.Int32
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer receiver.Close()
	property := shop("reader")
	property.Egress = config.Egress{AllowCIDRs: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	hook := platforms.Platform{Name: "crm", Type: platforms.TypeWebhook}
	hook.Webhook = &platforms.Webhook{URL: receiver.URL}
	property.Platforms = []platforms.Platform{hook}
	p := startPod(t, property)
	p.writeText("platforms/crm/signingSecret", "whsec_"+strings.Repeat("A", 43)+"=")
	p.await("ready", func() bool { return p.request(http.MethodGet, p.metrics+"/readyz", "", nil) == http.StatusOK })
	header := http.Header{"Content-Type": {"application/json"}}
	if got := p.request(http.MethodPost, p.collect+"/collect/key-1", `{"event":"lead","event_id":"e/1"}`, header); got != http.StatusAccepted {
		t.Fatalf("collect: %d", got)
	}

	type attempt struct {
		Platform, Status string
		Attempt          int
		Reason           *string
	}
	var answer struct {
		Data struct {
			Attempts   []attempt
			IsComplete bool `json:"attempts_complete"`
			Delivery   []struct{ Type, Status string }
		}
	}
	p.await("the event is delivered", func() bool {
		response := p.read("events/e%2F1", &answer)
		return response.StatusCode == http.StatusOK && len(answer.Data.Delivery) == 1 && answer.Data.Delivery[0].Status == "delivered"
	})
	reason := "http_503"
	want := []attempt{{"crm", "retrying", 1, &reason}, {"crm", "delivered", 2, nil}}
	if diff := cmp.Diff(want, answer.Data.Attempts); diff != "" || !answer.Data.IsComplete || answer.Data.Delivery[0].Type != "Webhook" {
		t.Errorf("(-want +got):\n%s\nin %+v", diff, answer.Data)
	}
	if err := p.stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
}
