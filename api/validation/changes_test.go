package validation_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
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
retention: {days: 62, maxEvents: 10000000}
limits: {maxBodyBytes: 65536}
exposure: {type: None}
deliverer: {replicas: 1}
query: {replicas: 1}
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
	if got, want := spec.Retention, (v1alpha1.Retention{Days: 90, MaxEvents: 10_000_000}); got != want {
		t.Errorf("retention is %+v, want %+v", got, want)
	}
	if got := spec.AccessTokens[0].Scope; got != "" {
		t.Errorf("the token's scope is filled in: %q", got)
	}
	if got := spec.Deduplication.WindowHours; got != 168 {
		t.Errorf("the window is %d hours where deduplication is null, want 168", got)
	}
	if got := spec.Collector; got.Replicas != nil || got.Autoscaling.MinReplicas != 2 {
		t.Errorf("collector is %+v, want no replicas and 2 at least", got)
	}
}

func TestWhatMayChange(t *testing.T) {
	const redisIsImmutable = "spec.redis: is immutable but for its certificates, because the events would stay behind in the other Redis; make a new Property instead"
	validator := sharedValidator(t)
	for sentence, test := range map[string]struct {
		old, spec string
		want      []string
	}{
		"nothing need change":              {old: "timeZone: Europe/Paris", spec: "timeZone: Europe/Paris"},
		"the time zone may change":         {old: "timeZone: Europe/Paris", spec: "timeZone: UTC"},
		"platforms may come and go":        {old: "platforms: [{name: a, type: Log}]", spec: "platforms: [{name: b, type: Log}]"},
		"platforms may be reordered":       {old: "platforms: [{name: a, type: Log}, {name: b, type: Webhook, webhook: {url: 'http://b'}, credentialsSecretRef: {name: s}}]", spec: "platforms: [{name: b, type: Webhook, webhook: {url: 'http://b'}, credentialsSecretRef: {name: s}}, {name: a, type: Log}]"},
		"a platform's settings may change": {old: "platforms: [{name: a, type: Log}]", spec: "platforms: [{name: a, type: Log, suspend: true}]"},
		"a platform's type is immutable per name": {
			old:  "platforms: [{name: a, type: Log}]",
			spec: "platforms: [{name: a, type: Meta, meta: {pixelID: '1'}, credentialsSecretRef: {name: s}}]",
			want: []string{"spec.platforms[0].type: is immutable, because delivery records go by the platform's name; add a platform of another name instead"},
		},
		"a Redis may not come":        {old: "", spec: "redis: {urlSecretKeyRef: {name: r, key: url}}", want: []string{redisIsImmutable}},
		"a Redis may not go":          {old: "redis: {urlSecretKeyRef: {name: r, key: url}}", spec: "", want: []string{redisIsImmutable}},
		"a Redis may not change":      {old: "redis: {urlSecretKeyRef: {name: r, key: url}}", spec: "redis: {urlSecretKeyRef: {name: r2, key: url}}", want: []string{redisIsImmutable}},
		"its certificates may come":   {old: "redis: {urlSecretKeyRef: {name: r, key: url}}", spec: "redis: {urlSecretKeyRef: {name: r, key: url}, caSecretRef: {name: ca}}"},
		"its certificates may change": {old: "redis: {urlSecretKeyRef: {name: r, key: url}, caSecretRef: {name: ca}}", spec: "redis: {urlSecretKeyRef: {name: r, key: url}, caSecretRef: {name: ca, key: root.pem}, clientCertificateSecretRef: {name: c}}"},
		"its certificates may go":     {old: "redis: {urlSecretKeyRef: {name: r, key: url}, clientCertificateSecretRef: {name: c}}", spec: "redis: {urlSecretKeyRef: {name: r, key: url}}"},
		"a Redis may stay":            {old: "redis: {urlSecretKeyRef: {name: r, key: url}}", spec: "redis: {urlSecretKeyRef: {name: r, key: url}}\ntimeZone: Asia/Tokyo"},
		"a change is checked like a new one": {
			old: "", spec: "deletionPolicy: Orphan\ncolour: green",
			want: []string{
				"spec.colour: is no field here; the fields are accessTokens, apiKeys, collector, currency, deduplication, deletionPolicy, deliverer, eventAliases, exposure, limits, platforms, query, redis, retention, timeZone",
				`spec.deletionPolicy: must be one of "Retain", "Delete"`,
			},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			old := document(t, test.old)
			if _, errs := validator.Create(t.Context(), old); len(errs) > 0 {
				t.Fatal("old:", errs)
			}
			object := document(t, test.spec)
			setResourceVersion(object)
			setResourceVersion(old)
			_, errs := validator.Update(t.Context(), object, old)
			if diff := cmp.Diff(test.want, describe(errs)); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

// setResourceVersion gives an object the version that the API server would have given it.
func setResourceVersion(object map[string]any) {
	object["metadata"].(map[string]any)["resourceVersion"] = "1"
}

func TestWhatWasWrongBeforeAndStaysIsLetThrough(t *testing.T) {
	validator := sharedValidator(t)
	old := document(t, "retention: {days: 1000}")
	setResourceVersion(old)
	object := runtime.DeepCopyJSON(old)
	object["spec"].(map[string]any)["timeZone"] = "Europe/Berlin"
	if _, errs := validator.Update(t.Context(), object, old); len(errs) > 0 {
		t.Errorf("got %v, want none", describe(errs))
	}
}

func TestAnUpdateKeepsTheName(t *testing.T) {
	validator := sharedValidator(t)
	old, object := document(t, ""), document(t, "")
	if _, errs := validator.Create(t.Context(), old); len(errs) > 0 {
		t.Fatal(errs)
	}
	setResourceVersion(old)
	setResourceVersion(object)
	object["metadata"].(map[string]any)["name"] = "other"
	_, errs := validator.Update(t.Context(), object, old)
	if diff := cmp.Diff([]string{"metadata.name: field is immutable"}, describe(errs)); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
}
