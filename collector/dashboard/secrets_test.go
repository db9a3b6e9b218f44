package dashboard_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/hack/browser"
)

// made is a secret that the page has made, and its hash as the page sends it.
type made struct{ Secret, SHA256 string }

// TestSecretsMadeInTheBrowserAreOurs holds that what a browser makes is what the programs make: of the form that pods accept, and
// known by the hash that they have of it.
func TestSecretsMadeInTheBrowserAreOurs(t *testing.T) {
	server := serve(t)
	tab := browser.Open(t, browser.Options{})
	tab.Do(chromedp.Navigate(server.URL))
	const many = 300
	for _, prefix := range []string{auth.APIKeyPrefix, auth.AccessTokenPrefix} {
		seen := map[string]bool{}
		for _, one := range browser.Look[[]made](tab, fmt.Sprintf(`import('./static/views/access/secret.js').then(({newSecret, sha256}) =>
	Promise.all(Array.from({length: %d}, async () => { const Secret = newSecret('%s'); return {Secret, SHA256: await sha256(Secret)}; })))`, many, prefix)) {
			seen[one.Secret] = true
			if !auth.WellFormed(one.Secret) || !strings.HasPrefix(one.Secret, prefix) {
				t.Errorf("%s is not well-formed", one.Secret)
			}
			if hash, err := auth.HashOf(one.Secret).MarshalText(); err != nil || one.SHA256 != string(hash) {
				t.Errorf("the hash of %s is %s, want %s", one.Secret, one.SHA256, hash)
			}
		}
		if len(seen) != many {
			t.Errorf("%d secrets differ, want %d", len(seen), many)
		}
	}
}

// TestNoDigitOfASecretIsLikelier holds that each of the 62 digits comes from as many bytes as any other: every byte is given once.
func TestNoDigitOfASecretIsLikelier(t *testing.T) {
	server := serve(t)
	tab := browser.Open(t, browser.Options{})
	tab.Do(chromedp.Navigate(server.URL))
	counts := browser.Look[map[string]int](tab, `import('./static/views/access/secret.js').then(({newSecret}) => {
	const counts = {};
	for (let byte = 0; byte < 256; byte += 1) {
		let calls = 0;
		const secret = newSecret('wt_', (bytes) => { calls += 1; return bytes.fill(calls === 1 ? byte : 0); });
		if (calls === 1) counts[secret[3]] = (counts[secret[3]] ?? 0) + 1;
	}
	return counts;
})`)
	if len(counts) != 62 {
		t.Errorf("%d digits are there, want 62", len(counts))
	}
	for digit, count := range counts {
		if count != 4 {
			t.Errorf("the digit %s comes from %d bytes, want 4", digit, count)
		}
	}
}
