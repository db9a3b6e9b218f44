package main

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// visitor is a browser that keeps cookies, and says that a request is the page's own.
type visitor struct {
	t      *testing.T
	client *http.Client
}

func (b *visitor) ask(method, address, body string) answer {
	b.t.Helper()
	request, err := http.NewRequestWithContext(b.t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Sec-Fetch-Site", "same-origin")
	response, err := b.client.Do(request)
	if err != nil {
		b.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	response.Header.Set("Address", response.Request.URL.String())
	return answer{response.StatusCode, response.Header, string(text)}
}

// TestOneClickShowsTheNumbers does what somebody does who has run `weir dev` and opens what it prints.
func TestOneClickShowsTheNumbers(t *testing.T) {
	state, shop := filepath.Join(t.TempDir(), "state"), shopFile(t, "http://127.0.0.1:9/")
	weir := startWeirDev(t, state, "-f", shop)
	page := weir.CollectURL + "/properties/shop/"
	if want := "The numbers, in a browser on this machine:\n\n  " + page + "\n"; !strings.HasSuffix(weir.stdout.String(), want) {
		t.Errorf("it ends with\n%s\nwant\n%s", weir.stdout.String(), want)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	b := &visitor{t, &http.Client{Jar: jar}}
	home := b.ask(http.MethodGet, weir.CollectURL+"/", "")
	if home.status != http.StatusOK || home.header.Get("Address") != page || !strings.Contains(home.header.Get("Content-Security-Policy"), "frame-ancestors 'none'") {
		t.Errorf("got %d %v", home.status, home.header)
	}
	if got := b.ask(http.MethodGet, page+"session", ""); got.status != http.StatusUnauthorized || got.body != `{"message":"Unauthenticated.","loopback":true}` {
		t.Fatalf("got %d %s", got.status, got.body)
	}
	if got := b.ask(http.MethodPost, page+"session", `{"loopback":true}`); got.status != http.StatusNoContent {
		t.Fatalf("got %d %s", got.status, got.body)
	}
	if got := b.ask(http.MethodGet, page+"api/settings", ""); got.status != http.StatusOK || !strings.Contains(got.body, `"key":"`+weir.APIKeys[0].Key+`"`) ||
		!strings.Contains(got.body, `"collect_url":"`+weir.CollectURL+`"`) {
		t.Errorf("got %d %s", got.status, got.body)
	}
	if got := weir.collect(`{"event": "purchase", "data": {"value": 1, "currency": "EUR"}}`); got.status != http.StatusAccepted {
		t.Fatalf("%d %s", got.status, got.body)
	}
	await(t, "the purchase is counted", func() bool {
		return strings.Contains(b.ask(http.MethodGet, page+"api/analytics/summary?period=7d", "").body, `"purchases":1,`)
	})
	weir.stop()

	// What the read API is told for the page has no keys, and a session outlives a restart at the same port.
	text, err := os.ReadFile(filepath.Join(state, "pods", "default", "shop", "property", "settings.json"))
	if err != nil || strings.Contains(string(text), weir.APIKeys[0].Key) {
		t.Errorf("%v: %s", err, text)
	}
	again := startWeirDev(t, state, "-f", shop, "--listen", strings.TrimPrefix(weir.CollectURL, "http://"))
	page = again.CollectURL + "/properties/shop/"
	if got := b.ask(http.MethodGet, page+"session", ""); got.status != http.StatusOK || !strings.Contains(got.body, `"token":"weir dev","scope":"admin"`) {
		t.Errorf("after a restart: got %d %s", got.status, got.body)
	}
	if got := b.ask(http.MethodDelete, page+"session", ""); got.status != http.StatusNoContent {
		t.Errorf("got %d %s", got.status, got.body)
	}
	if got := b.ask(http.MethodGet, page+"api/settings", ""); got.status != http.StatusUnauthorized {
		t.Errorf("after signing out: got %d %s", got.status, got.body)
	}
	again.stop()
}

func TestSessionKeysThatAreBrokenAreNamedAndNotRepeated(t *testing.T) {
	state, err := openStateDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer state.Close()
	first, err := state.sessionKeys()
	if err != nil {
		t.Fatal(err)
	}
	if second, err := state.sessionKeys(); err != nil || second != first {
		t.Errorf("another run has other keys: %v", err)
	}
	if err := os.WriteFile(filepath.Join(state.path, "sessions"), []byte("a secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := state.sessionKeys(); err == nil || !strings.Contains(err.Error(), "sessions must be keys") || strings.Contains(err.Error(), "a secret") {
		t.Errorf("got %v", err)
	}
}
