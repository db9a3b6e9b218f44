package role_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/redisserver"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/collector/role"
	"github.com/weir-dev/weir/collector/sources"
	"github.com/weir-dev/weir/collector/sources/fakes"
	"github.com/weir-dev/weir/collector/stream"
)

// paidOrder is an order of Shopify's that was paid just now.
func paidOrder(id int) []byte {
	now := time.Now().UTC().Format(time.RFC3339)
	return fmt.Appendf(nil, `{"id": %d, "financial_status": "paid", "processed_at": %q, "updated_at": %q, "total_price": "10.00", "currency": "EUR"}`, id, now, now)
}

// TestADelivererStoresWhatAShopsWebhooksHaveMissed runs a deliverer alone, with the Redis user that the operator gives one
// whose Property reads a shop, and with the one that all others have.
func TestADelivererStoresWhatAShopsWebhooksHaveMissed(t *testing.T) {
	for name, c := range map[string]struct {
		access stream.Access
		want   int
	}{
		"with the user of a Property that reads a shop": {stream.FetchAccess, 1},
		"with any other deliverer's user":               {stream.DeliverAccess, 0},
	} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t, redisserver.Options{Loopback: true})
			admin := dial(t, server.URL(), stream.TLS{})
			if err := admin.Load(t.Context()); err != nil {
				t.Fatal(err)
			}
			p := &pod{t: t, directory: t.TempDir(), property: shop("fetching"), log: &logBuffer{}}
			user := stream.User{Name: "deliverer", Password: "password", Access: c.access, Namespace: "default", Property: "fetching"}
			if err := stream.NewUsers(admin).Set(t.Context(), []stream.User{user}); err != nil {
				t.Fatal(err)
			}
			events := admin.Stream("default", "fetching")
			if err := events.MoveSource(t.Context(), "shopify", time.Now()); err != nil {
				t.Fatal(err)
			}
			shopify := fakes.New(t, sources.Shopify, "http://127.0.0.1:1/sources/key/shopify", time.Now)
			shopify.Put(t.Context(), t, "orders/paid", "1", paidOrder(1)) // which reaches nobody

			p.property.Sources = []sources.Source{{Name: "shopify", Type: sources.Shopify, ReadsOrders: true, Settings: sources.Settings{URL: shopify.URL}}}
			if err := json.Unmarshal([]byte(`{"allowCIDRs": ["127.0.0.0/8"]}`), &p.property.Egress); err != nil {
				t.Fatal(err)
			}
			address, err := url.Parse(server.URL())
			if err != nil {
				t.Fatal(err)
			}
			address.User = url.UserPassword("deliverer", "password")
			p.write(config.PropertyFile, p.property)
			p.writeText(config.RedisURLFile, address.String())
			p.run(role.Deliver)
			p.await("the missing key is told", func() bool {
				problems, err := events.PausedPlatforms(t.Context(), []string{stream.SourceName("shopify")})
				return err == nil && problems[stream.SourceName("shopify")] == "SecretInvalid"
			})
			p.writeText(config.SourcesDir+"/shopify/accessToken", fakes.Credentials[sources.Shopify]["accessToken"])
			stored := func() int {
				entries, err := events.ReadEvents(t.Context(), 0, 10, -1)
				if err != nil {
					t.Fatal(err)
				}
				return len(entries)
			}
			if c.want == 0 {
				p.await("it may not", func() bool { return strings.Contains(p.log.String(), "NOPERM") })
			} else {
				p.await("the order is stored", func() bool { return stored() > 0 })
				p.await("the mended key is told", func() bool {
					problems, err := events.PausedPlatforms(t.Context(), []string{stream.SourceName("shopify")})
					return err == nil && len(problems) == 0
				})
			}
			if got := stored(); got != c.want {
				t.Errorf("%d events are stored, want %d", got, c.want)
			}
			if got := p.request(http.MethodPost, p.collect+"/sources/key-1/shopify", "{}", http.Header{"Content-Type": {"application/json"}}); got == http.StatusOK {
				t.Error("a deliverer answers webhooks")
			}
			if err := p.stop(); err != nil {
				t.Errorf("stop: %v", err)
			}
			if wrong := shopify.Wrong(); len(wrong) > 0 {
				t.Errorf("the shop refuses %q", wrong)
			}
		})
	}
}

// TestASigningSecretRotatesWithoutARestart has a source wait for its Secret, and then know two.
func TestASigningSecretRotatesWithoutARestart(t *testing.T) {
	property := shop("rotating")
	property.Sources = []sources.Source{{Name: "shopify", Type: sources.Shopify}}
	p := startPod(t, property)
	p.await("ready", func() bool { return p.request(http.MethodGet, p.metrics+"/readyz", "", nil) == http.StatusOK })
	shopify := fakes.New(t, sources.Shopify, p.collect+"/sources/key-1/shopify", time.Now)
	send := func() int { return shopify.Put(t.Context(), t, "orders/paid", "1", paidOrder(1)) }
	if got := send(); got != http.StatusServiceUnavailable {
		t.Errorf("without a secret: %d, want 503", got)
	}
	for _, step := range []struct {
		secrets string
		want    int
	}{
		{fakes.Secret, http.StatusOK}, {"another", http.StatusUnauthorized}, {"another " + fakes.Secret + "\n", http.StatusOK},
	} {
		p.writeText(config.SourcesDir+"/shopify/"+sources.SigningSecret, step.secrets)
		p.await(fmt.Sprint("an answer of ", step.want), func() bool { return send() == step.want })
	}
	if text := p.log.String(); strings.Contains(text, fakes.Secret) || strings.Contains(text, "key-1") {
		t.Errorf("the log holds a secret: %s", text)
	}
	if err := p.stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
}
