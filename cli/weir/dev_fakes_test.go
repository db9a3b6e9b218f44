package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/deliver/fakes/fakestest"
)

// everyPlatform is a Property with a platform of each type, and another with a second pixel.
var everyPlatform = `
apiVersion: weir.dev/v1alpha1
kind: Property
metadata: {name: shop}
spec:
  currency: EUR
  platforms:
  - {name: meta, type: Meta, meta: {pixelID: "1"}, credentialsSecretRef: {name: keys}}
  - {name: analytics, type: GA4, ga4: {measurementID: G-1, region: EU}, credentialsSecretRef: {name: keys}}
  - {name: tiktok, type: TikTok, tiktok: {eventSourceID: C1}, credentialsSecretRef: {name: keys}}
  - {name: pinterest, type: Pinterest, pinterest: {adAccountID: "1"}, credentialsSecretRef: {name: keys}}
  - {name: snapchat, type: Snapchat, snapchat: {pixelID: 1ec32188-754e-4be2-8e55-c949a984a39f}, credentialsSecretRef: {name: keys}}
  - {name: reddit, type: Reddit, reddit: {pixelID: a2_1}, credentialsSecretRef: {name: keys}}
  - {name: ads, type: Google, google: {accountID: "1"}, eventNames: {purchase: "7001"}, credentialsSecretRef: {name: keys}}
  - {name: stream, type: Google, google: {product: Analytics, accountID: "2", measurementID: G-2}, credentialsSecretRef: {name: keys}}
  - {name: product, type: Mixpanel, mixpanel: {projectID: "1"}, credentialsSecretRef: {name: keys}}
  - {name: crm, type: Webhook, webhook: {url: "https://crm.example.com/hook"}, credentialsSecretRef: {name: keys}}
  - {name: microsoft, type: Microsoft, microsoft: {tagID: "1"}, credentialsSecretRef: {name: keys}}
  - {name: linkedin, type: LinkedIn, eventNames: {purchase: "104012"}, credentialsSecretRef: {name: keys}}
  - {name: marketing, type: Klaviyo, klaviyo: {}, credentialsSecretRef: {name: keys}}
  - {name: usage, type: Amplitude, amplitude: {region: EU}, credentialsSecretRef: {name: keys}}
  - {name: events, type: PostHog, posthog: {region: EU}, credentialsSecretRef: {name: keys}}
  - {name: cdp, type: Segment, segment: {host: "https://rudder.example.com"}, credentialsSecretRef: {name: keys}}
  - {name: chatgpt, type: OpenAI, openai: {pixelID: px-1}, credentialsSecretRef: {name: keys}}
  - {name: lake, type: S3, s3: {bucket: shop-events, region: eu-central-1, flushMinutes: 1}, credentialsSecretRef: {name: keys}}
  - {name: console, type: Log}
---
apiVersion: weir.dev/v1alpha1
kind: Property
metadata: {name: outlet}
spec:
  currency: EUR
  platforms:
  - {name: meta, type: Meta, meta: {pixelID: "2"}, credentialsSecretRef: {name: keys}}
  - {name: crm, type: Webhook, webhook: {url: "https://crm.example.com/hook"}, credentialsSecretRef: {name: keys}}
---
apiVersion: v1
kind: Secret
metadata: {name: keys}
stringData:
  accessToken: access-token-for-tests
  apiSecret: api-secret-for-tests
  conversionToken: conversion-token-for-tests
  serviceAccountUsername: weir.1.mp-service-account
  serviceAccountSecret: service-account-secret-for-tests
  projectToken: project-token-for-tests
  writeKey: write-key-for-tests
  apiKey: api-key-for-tests
  accessKeyID: access-key-for-tests
  secretAccessKey: secret-key-for-tests
  signingSecret: ` + webhookSecret + `
  serviceAccountKey: '` + strings.ReplaceAll(fakestest.ServiceAccountKey(), "'", "''") + `'
`

func TestDevDeliversToFakesOfThePlatforms(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "shop.yaml")
	if err := os.WriteFile(file, []byte(everyPlatform), 0o600); err != nil {
		t.Fatal(err)
	}
	w := startWeirDev(t, filepath.Join(folder, "state"), "-f", file, "--fake-platforms")
	if got := w.collect(`{"event":"purchase","event_id":"A-1","client_id":"1234.5678",
		"user":{"email":"Jane.Doe+news@gmail.com","phone":"+14155550123","first_name":"Jane"},
		"data":{"value":49.9,"currency":"EUR","order_id":"O-1"}}`); got.status != 202 {
		t.Fatalf("collect: %d %s", got.status, got.body)
	}

	want := map[string]string{
		"meta": "delivered", "analytics": "delivered", "tiktok": "delivered", "pinterest": "delivered",
		"ads": "delivered", "stream": "delivered",
		"product": "delivered", "crm": "delivered", "console": "delivered",
		"snapchat": "delivered", "reddit": "delivered",
		"microsoft": "delivered", "linkedin": "delivered",
		"marketing": "delivered", "usage": "delivered",
		"events": "delivered", "cdp": "delivered", "chatgpt": "delivered",
		"lake": "pending", // in a file after a minute
	}
	diff := "never listed"
	await(t, "the event is delivered everywhere", func() bool {
		if list := w.listing(); len(list) == 1 {
			diff = cmp.Diff(want, list[0].statuses())
		}
		return diff == ""
	})
	if code := w.stop(); code != 0 {
		t.Errorf("ended with %d:\n%s", code, w.stderr.String())
	}

	printed := w.stdout.String()
	for _, line := range []string{
		"fake Meta: default/shop/meta · Purchase · id A-1 · 49.9 EUR · em ",
		"fake GA4: default/shop/analytics · purchase · id O-1 · 49.9 EUR\n",
		"fake TikTok: default/shop/tiktok · Purchase · id A-1 · 49.9 EUR · email ",
		"fake Pinterest: default/shop/pinterest · checkout · id A-1 · 49.9 EUR · em ",
		"fake Snapchat: default/shop/snapchat · PURCHASE · id A-1 · 49.9 EUR · em ",
		"fake Reddit: default/shop/reddit · PURCHASE · id A-1 · 49.9 EUR · email ",
		"fake Google: default/shop/ads · 7001 · id O-1 · 49.9 EUR · emailAddress ",
		"fake Google: default/shop/stream · purchase · id O-1 · 49.9 EUR · emailAddress ",
		"fake Mixpanel: default/shop/product · purchase · id A-1 · 49.9 EUR\n",
		"fake Klaviyo: default/shop/marketing · Placed Order · id A-1 · 49.9 EUR\n",
		"fake Amplitude: default/shop/usage · purchase · id A-1 · 49.9 EUR\n",
		"fake PostHog: default/shop/events · purchase · id A-1 · 49.9 EUR\n",
		"fake Segment: default/shop/cdp · Order Completed · id A-1 · 49.9 EUR\n",
		"fake OpenAI: default/shop/chatgpt · order_created · id A-1 · 49.9 EUR · emails_sha256 ",
		"fake S3 at http://127.0.0.1:",
		"fake Webhook: default/shop/crm · purchase · id ",
		"fake Microsoft: default/shop/microsoft · purchase · id A-1 · 49.9 EUR · em ",
		"fake LinkedIn: default/shop/linkedin · 104012 · id A-1 · 49.9 EUR · SHA256_EMAIL ",
	} {
		if !strings.Contains(printed, line) {
			t.Errorf("%q was not printed:\n%s", line, printed)
		}
	}
	if strings.Contains(printed, "REFUSED") {
		t.Errorf("a fake has refused something:\n%s", printed)
	}
	before, _, _ := strings.Cut(printed, "curl ")
	for _, secret := range []string{"jane.doe", "4155550123", "-for-tests", webhookSecret} {
		if strings.Contains(strings.ToLower(before+w.stderr.String()), strings.ToLower(secret)) {
			t.Errorf("the output shows %q", secret)
		}
	}
}

func TestDevPutsNoFakeWhereAnEndpointIsGiven(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "shop.yaml")
	if err := os.WriteFile(file, []byte(everyPlatform), 0o600); err != nil {
		t.Fatal(err)
	}
	w := startWeirDev(t, filepath.Join(folder, "state"), "-f", file, "--fake-platforms", "--platform-endpoint", "Meta=http://127.0.0.1:1")
	if printed := w.stdout.String(); strings.Contains(printed, "fake Meta") || !strings.Contains(printed, "fake GA4 at http://127.0.0.1:") {
		t.Errorf("printed:\n%s", printed)
	}
}
