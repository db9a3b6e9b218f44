package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestDevTakesWhatShopsReport has the order of a shop's webhook and the same order by a server counted once.
func TestDevTakesWhatShopsReport(t *testing.T) {
	file := filepath.Join(t.TempDir(), "shop.yaml")
	const manifests = `
apiVersion: weir.dev/v1alpha1
kind: Property
metadata: {name: shop}
spec:
  currency: EUR
  sources: [{name: woo, type: WooCommerce, secretRef: {name: woo}}]
---
apiVersion: v1
kind: Secret
metadata: {name: woo}
stringData: {signingSecret: a-text-of-the-owners}
`
	if err := os.WriteFile(file, []byte(manifests), 0o600); err != nil {
		t.Fatal(err)
	}
	weir := startWeirDev(t, filepath.Join(t.TempDir(), "state"), "-f", file)
	now := time.Now().UTC().Format("2006-01-02T15:04:05")
	order := `{"id": 727, "status": "processing", "total": "49.90", "currency": "EUR", "date_created_gmt": "` + now + `", "billing": {"email": "` + personEmail + `"}}`
	mac := hmac.New(sha256.New, []byte("a-text-of-the-owners"))
	mac.Write([]byte(order))
	header := map[string]string{
		"Content-Type": "application/json", "X-WC-Webhook-Topic": "order.created",
		"X-WC-Webhook-Signature": base64.StdEncoding.EncodeToString(mac.Sum(nil)),
	}
	address := weir.CollectURL + "/sources/" + weir.APIKeys[0].Key + "/woo"
	if got := do(t, http.MethodPost, address, order, header); got.status != http.StatusOK || got.body != `{"ok":true,"event_ids":["purchase-727"]}` {
		t.Fatalf("the webhook: %d %s", got.status, got.body)
	}
	if got := do(t, http.MethodPost, address, order+" ", header); got.status != http.StatusUnauthorized {
		t.Errorf("another body: %d %s", got.status, got.body)
	}
	if got := weir.collect(`{"event": "purchase", "event_id": "purchase-727", "data": {"value": 49.90, "currency": "EUR", "order_id": "727"}}`); got.status != http.StatusAccepted {
		t.Errorf("the server's event: %d %s", got.status, got.body)
	}
	await(t, "the order is listed once", func() bool {
		list := weir.listing()
		return len(list) == 1 && list[0].EventID == "purchase-727" && list[0].Value == "49.9"
	})
}
