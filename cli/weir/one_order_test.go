package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/weir-dev/weir/hack/browser"
)

// orderedShop is a shop whose orders come by its server and from Shopify, and whose pages send events.
const orderedShop = `
apiVersion: weir.dev/v1alpha1
kind: Property
metadata: {name: shop}
spec:
  currency: EUR
  apiKeys:
  - {name: server}
  - {name: web, type: Publishable, allowedOrigins: ["ORIGIN"]}
  accessTokens: [{name: admin, scope: admin}]
  exclude: {bots: false} # a browser for tests says that it is one
  sources:
  - {name: shopify, type: Shopify, secretRef: {name: shopify}}
  platforms:
  - {name: meta, type: Meta, meta: {pixelID: "1"}, credentialsSecretRef: {name: keys}}
---
apiVersion: v1
kind: Secret
metadata: {name: keys}
stringData: {accessToken: access-token-for-tests}
---
apiVersion: v1
kind: Secret
metadata: {name: shopify}
stringData: {signingSecret: signing-secret-for-tests}
`

// pixel is Meta's server as its pixel reaches it: it wants what the pixel sends, and keeps it.
type pixel struct {
	mu   sync.Mutex
	seen []url.Values
}

func (p *pixel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	if r.URL.Path != "/tr/" || query.Get("id") != "1" || query.Get("ev") == "" || query.Get("eid") == "" || query.Get("dl") == "" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = append(p.seen, query)
}

// ids are those of the events that were taken, by their names.
func (p *pixel) ids() map[string]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	ids := map[string]string{}
	for _, query := range p.seen {
		ids[query.Get("ev")] = query.Get("eid")
	}
	return ids
}

// TestPixelServerAndShopNameAnOrderAlike holds that Meta sees one id of an order, whoever reports it, and that it counts once.
func TestPixelServerAndShopNameAnOrderAlike(t *testing.T) {
	meta := new(pixel)
	facebook := httptest.NewServer(meta)
	t.Cleanup(facebook.Close)
	var page string
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, page)
	}))
	t.Cleanup(shop.Close)
	folder := t.TempDir()
	file := filepath.Join(folder, "shop.yaml")
	if err := os.WriteFile(file, []byte(strings.Replace(orderedShop, "ORIGIN", shop.URL, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	weir := startWeirDev(t, filepath.Join(folder, "state"), "-f", file, "--fake-platforms")

	_, lines, printed := strings.Cut(weir.stdout.String(), "# pages: ")
	if !printed {
		t.Fatalf("weir dev does not say what goes into a page:\n%s", weir.stdout.String())
	}
	stub, rest, _ := strings.Cut(lines, "\n#")
	script, _, _ := strings.Cut(rest, "\n")
	page = `<!doctype html><title>Thank you</title>` + stub + script + `<script>
const fbq = (_, name, data, {eventID}) => { new Image().src = '` + facebook.URL + `/tr/?id=1&ev=' + name + '&eid=' + eventID + '&dl=' + encodeURIComponent(location); };
const order = '820982911946154508';
weir('consent', 'granted');
weir('event', 'view_content', {event_id: 'view-1', content_id: 'sku-1'});
fbq('track', 'ViewContent', {content_ids: ['sku-1']}, {eventID: 'view-1'});
fbq('track', 'Purchase', {value: 49.90, currency: 'EUR'}, {eventID: 'purchase-' + order});
</script>`
	tab := browser.Open(t, browser.Options{})
	tab.Do(chromedp.Navigate(shop.URL + "/thanks?utm_source=news"))
	await(t, "the pixel has reported both", func() bool { return len(meta.ids()) == 2 })
	await(t, "the page's events are stored", func() bool { return len(weir.listing()) == 2 })

	order, err := os.ReadFile("../../collector/sources/shop/testdata/shopify-order.json")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // a shop may report an order again
		if got := weir.collect(`{"event": "purchase", "event_id": "purchase-820982911946154508", "user": {"email": "jane@example.com"},
			"data": {"value": "49.90", "currency": "EUR", "order_id": "820982911946154508"}}`); got.status != http.StatusAccepted {
			t.Fatalf("the server's purchase: %d %s", got.status, got.body)
		}
		mac := hmac.New(sha256.New, []byte("signing-secret-for-tests"))
		mac.Write(order)
		got := do(t, http.MethodPost, weir.CollectURL+"/sources/"+weir.APIKeys[0].Key+"/shopify", string(order), map[string]string{
			"Content-Type": "application/json", "X-Shopify-Topic": "orders/paid", "X-Shopify-Event-Id": "e-1",
			"X-Shopify-Hmac-Sha256": base64.StdEncoding.EncodeToString(mac.Sum(nil)),
		})
		if got.status != http.StatusOK {
			t.Fatalf("the shop's order: %d %s", got.status, got.body)
		}
	}
	await(t, "the page's event and the purchase are delivered", func() bool {
		return strings.Contains(weir.stdout.String(), "meta · Purchase · id ") && strings.Contains(weir.stdout.String(), "meta · ViewContent · id ")
	})
	for pixels, id := range meta.ids() {
		name := map[string]string{"Purchase": "purchase", "ViewContent": "view_content"}[pixels]
		seen := 0
		for _, record := range weir.listing() {
			if record.Event == name && record.EventID == id {
				seen++
			}
		}
		if line := fmt.Sprintf("meta · %s · id %s", pixels, id); seen != 1 || strings.Count(weir.stdout.String(), line) != 1 {
			t.Errorf("%s with the pixel's id %s is stored %d times, want once, and delivered once:\n%s", name, id, seen, weir.stdout.String())
		}
	}
	if listed := len(weir.listing()); listed != 3 {
		t.Errorf("%d events are stored, want the page's two and the order", listed)
	}
	if strings.Contains(weir.stdout.String(), "REFUSED") {
		t.Errorf("Meta refuses some:\n%s", weir.stdout.String())
	}
}
