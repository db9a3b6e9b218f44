package main

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDevSendsTestEventsAndSaysHowItStandsWithThePlatforms asks for test events as an owner does, through the whole program.
func TestDevSendsTestEventsAndSaysHowItStandsWithThePlatforms(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "shop.yaml")
	text := strings.Replace(everyPlatform, "  currency: EUR\n", "  currency: EUR\n  accessTokens: [{name: ops, scope: write}]\n", 1)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	w := startWeirDev(t, filepath.Join(folder, "state"), "-f", file, "--fake-platforms")
	properties := w.served(filepath.Join(folder, "state"))
	w.devProperty = properties[slices.IndexFunc(properties, func(p devProperty) bool { return p.ID == "shop" })]

	var states map[string]any
	await(t, "a deliverer has reported", func() bool {
		list, _ := w.read("/platforms").object(t)["data"].([]any)
		if len(list) != 19 {
			t.Fatalf("%d platforms are listed, want 19", len(list))
		}
		states, _ = list[0].(map[string]any)
		return states["reported_at"] != nil
	})
	if states["platform"] != "meta" || states["lag_events"] != 0.0 || states["waiting"] != 0.0 || states["paused"] != nil {
		t.Errorf("of the first platform it says %v, want meta without a lag or a pause", states)
	}

	got := map[string]any{}
	for platform, body := range map[string]string{
		"meta": `{"test_event_code":"TEST42"}`, "ads": `{}`, "stream": `{}`, "usage": `{}`, "crm": `{}`, "lake": `{}`,
	} {
		var answer answer
		for range 3 { // a busy machine's deliverer may be late, and whoever asks is told to ask again
			answer = do(t, http.MethodPost, w.BaseURL+"/properties/shop/platforms/"+platform+"/test", body, map[string]string{
				"Authorization": "Bearer " + w.AccessTokens[0].Token, "Content-Type": "application/json",
			})
			if answer.status != http.StatusServiceUnavailable {
				break
			}
			t.Logf("%s: answered %d %s", platform, answer.status, answer.body)
		}
		data, _ := answer.object(t)["data"].(map[string]any)
		got[platform] = data["verdict"]
		for _, secret := range []string{"-for-tests", webhookSecret} {
			if strings.Contains(answer.body, secret) {
				t.Errorf("%s: the answer shows %q", platform, secret)
			}
		}
	}
	want := map[string]any{"meta": "accepted", "ads": "accepted", "stream": "accepted", "usage": "not_sent", "crm": "accepted", "lake": "accepted"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
	if list := w.listing(); len(list) > 0 {
		t.Errorf("the test events are listed: %v", list)
	}
	w.stop()
	printed := w.stdout.String()
	if !strings.Contains(printed, "fake Meta: default/shop/meta · a test · Purchase · id weir-test-") || strings.Contains(printed, "REFUSED") {
		t.Errorf("printed:\n%s", printed)
	}
}
