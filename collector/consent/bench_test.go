package consent_test

import (
	"testing"

	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/consent"
	"github.com/weir-dev/weir/collector/consent/consenttest"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/platforms"
)

// What accepting an event costs for its consent, and a delivery.
func BenchmarkConsent(b *testing.B) {
	tcf := consenttest.TCF{Purposes: all, Vendors: []int{755}, Interests: []int{7}, InterestVendors: []int{755}}
	rule := consent.NewRule(new(config.Consent).Rule(&platforms.Platform{Type: platforms.TypeGA4}))
	for _, c := range []struct {
		name string
		said event.Consent
	}{
		{"of members", event.Consent{AdUserData: event.Granted, AdPersonalization: event.Granted}},
		{"of categories", event.Consent{Categories: map[string]bool{"C0001": true, "C0002": true, "C0004": true}}},
		{"of a TCF string", event.Consent{TCF: tcf.String()}},
		{"of a GPP string", event.Consent{GPP: consenttest.GPP(map[int]string{2: tcf.String(), 7: consenttest.States{Sale: 2}.National()})}},
	} {
		b.Run("accept one "+c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				consent.DeniesAnalytics(&c.said, nil)
			}
		})
		b.Run("deliver one "+c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				rule.Judge(&c.said)
			}
		})
	}
}
