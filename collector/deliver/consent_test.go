package deliver

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/stream"
)

// The rules of now hold for what waits for another attempt, and for what a replay puts back.
func TestTheRulesOfNowHoldForEventsFromBefore(t *testing.T) {
	fb := newMeta(t, always(answer{status: 500}))
	h := newHarness(t, fb.platform("meta"))
	said := h.accept(`{"event":"lead","client_id":"1.2","user":{"email":"ada@example.com"},"consent":{"ad_storage":"granted","ad_user_data":"granted","ad_personalization":"granted"}}`)
	unsaid := h.accept(pageview)
	first := h.start("one", nil)
	h.await("an attempt with each", func() string {
		return cmp.Diff([]string{"retrying", "retrying"}, []string{h.last("meta", said).Status, h.last("meta", unsaid).Status})
	})
	first.stop()

	h.property.Consent = config.Consent{WhenAbsent: platforms.Withhold}
	second := h.start("one", nil)
	h.await("the event of which nothing was said is withheld", func() string { return cmp.Diff("consent_absent", h.last("meta", unsaid).Reason) })
	if got := h.last("meta", unsaid).Status; got != "skipped" {
		t.Errorf("its status is %s", got)
	}
	fb.set(always(answer{status: 400, body: `{"error":{"code":100,"error_subcode":2804009}}`}), accessToken)
	h.await("the other one is refused", func() string { return cmp.Diff("failed", h.last("meta", said).Status) })
	second.stop()

	fb.set(nil, accessToken)
	h.property.Consent.Platforms = []config.PlatformConsent{{Name: "meta", Requires: []platforms.Purpose{platforms.AnalyticsStorage}}}
	h.start("one", nil)
	n, err := h.stream.Replay(t.Context(), stream.ReplayRequest{
		Platform: "meta", To: h.now(), Statuses: []stream.Status{stream.Failed, stream.Expired}, Now: h.now(),
	})
	if err != nil || n != 1 {
		t.Fatalf("Replay = %d, %v, want 1", n, err)
	}
	h.await("the replayed event is withheld by the rule of now", func() string { return cmp.Diff("consent_absent", h.last("meta", said).Reason) })
}
