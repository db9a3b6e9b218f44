package validation_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/api/v1alpha1"
)

func TestOnlyTheCurrencyIsRequired(t *testing.T) {
	property, errs := sharedValidator(t).Create(t.Context(), document(t, ""))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	var got, want map[string]any
	text, err := json.Marshal(property.Spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal([]byte(`
currency: EUR
timeZone: UTC
apiKeys: [{name: default}]
accessTokens: [{name: default}]
deduplication: {windowHours: 168}
retention: {days: 62, deviceHours: 72, maxEvents: 10000000}
exclude: {bots: true}
identity: {join: true}
suppression: Anonymize
limits: {maxBodyBytes: 65536}
history: {type: Memory}
exposure: {type: None}
deletionPolicy: Retain
`), &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the spec with its defaults (-want +got):\n%s", diff)
	}
}

func TestDefaultsWithinWhatIsGiven(t *testing.T) {
	property, errs := sharedValidator(t).Create(t.Context(), document(t, `
retention: {days: 90}
accessTokens: [{name: bi}]
deduplication:
collector: {autoscaling: {maxReplicas: 5}}
`))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	spec := property.Spec
	if got, want := spec.Retention, (v1alpha1.Retention{Days: 90, DeviceHours: 72, MaxEvents: 10_000_000}); got != want {
		t.Errorf("retention is %+v, want %+v", got, want)
	}
	if got := spec.AccessTokens[0].Scope; got != "" {
		t.Errorf("the token's scope is filled in: %q", got)
	}
	if got := spec.Deduplication.WindowHours; got != 168 {
		t.Errorf("the window is %d hours where deduplication is null, want 168", got)
	}
	if got := spec.Collector; got.Replicas != nil || got.Autoscaling.Type != v1alpha1.AutoscalingCPU {
		t.Errorf("collector is %+v, want no replicas and an autoscaler by CPU", got)
	}
}
