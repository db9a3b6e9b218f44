package e2e

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/platforms"
)

func reportsErrors(t *testing.T, s *suite) {
	shop := s.tenantOf(t, "shop")
	key := shop.key(t, "second")

	refused := shop.get(t)
	before := refused.DeepCopy()
	refused.Spec.Currency = "euro"
	if err := s.Patch(t.Context(), refused, client.MergeFrom(before)); err == nil || !strings.Contains(err.Error(), "spec.currency") || !strings.Contains(err.Error(), "ISO 4217") {
		t.Errorf("the currency euro: %v, want an error of the API server that names the field and what would be right", err)
	}

	mistakes := map[string]struct {
		edit                       func(*v1alpha1.PropertySpec)
		condition, reason, message string
		// staysReady says that the mistake touches neither collecting nor reading.
		staysReady bool
		node       bool
	}{
		"an API key whose Secret is not there": {
			edit: func(spec *v1alpha1.PropertySpec) {
				spec.APIKeys = append(spec.APIKeys, v1alpha1.PropertyAPIKey{Name: "brought", SecretKeyRef: &v1alpha1.SecretKeyReference{Name: "nowhere", Key: "weir"}})
			},
			condition: v1alpha1.ConditionCredentialsReady, reason: v1alpha1.ReasonSecretMissing, message: "nowhere",
		},
		"a platform whose Secret is not there": {
			edit: func(spec *v1alpha1.PropertySpec) {
				spec.Platforms = append(spec.Platforms, v1alpha1.Platform{
					Name: "ads", Type: "Meta", Settings: platforms.Settings{Meta: &platforms.Meta{PixelID: "1234567890"}},
					CredentialsSecretRef: &v1alpha1.SecretReference{Name: "no-ads"},
				})
			},
			condition: v1alpha1.ConditionPlatformsReady, reason: v1alpha1.ReasonSecretMissing, message: "no-ads", staysReady: true,
		},
		"the host of an older Property": {
			edit:      func(spec *v1alpha1.PropertySpec) { spec.Exposure.CollectHost = collectHost("shop") },
			condition: v1alpha1.ConditionExposed, reason: v1alpha1.ReasonHostConflict, message: collectHost("shop"), node: true,
		},
		"a node selector that no node has": {
			edit: func(spec *v1alpha1.PropertySpec) {
				spec.Collector.NodeSelector = map[string]string{"weir.dev/no-such-node": "true"}
			},
			condition: v1alpha1.ConditionWorkloadsAvailable, reason: v1alpha1.ReasonProgressing, message: "shop-collector",
		},
	}
	for _, mistake := range slices.Sorted(maps.Keys(mistakes)) {
		what := mistakes[mistake]
		if what.node && !s.node {
			continue
		}
		t.Run(mistake, func(t *testing.T) {
			it := shop
			if what.node { // the younger one has to give way
				it = s.tenantOf(t, "books")
			}
			good := it.get(t).Spec
			it.change(t, what.edit)
			took := it.settled(t, it.namespace, it.name, what.condition, "False", what.reason)
			s.figure(t, mistake+", until "+what.reason, "%.1f s", took.Seconds())
			now := it.get(t)
			if found := meta.FindStatusCondition(now.Status.Conditions, what.condition); !strings.Contains(found.Message, what.message) {
				t.Errorf("the condition says %q, want something of %q", found.Message, what.message)
			}
			if what.staysReady { // once the deliverer has been replaced
				it.ready(t)
			} else if meta.IsStatusConditionTrue(now.Status.Conditions, v1alpha1.ConditionReady) {
				t.Error("Ready is true")
			}
			if status, body := shop.send(t, key, `{"event": "meanwhile"}`); status != http.StatusAccepted {
				t.Errorf("an event meanwhile: %d %s, want 202", status, body)
			}
			it.change(t, func(spec *v1alpha1.PropertySpec) { *spec = good })
			took = it.ready(t)
			took += it.settled(t, it.namespace, it.name, v1alpha1.ConditionPlatformsReady, "True", "")
			s.figure(t, mistake+", mended, until Ready", "%.1f s", took.Seconds())
		})
	}
}
