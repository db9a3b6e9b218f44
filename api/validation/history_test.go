package validation_test

import (
	"testing"

	"github.com/weir-dev/weir/api/v1alpha1"
)

func TestHistory(t *testing.T) {
	testRules(t, map[string]rule{
		"none is needed":                            {spec: "history: {}"},
		"Memory is one":                             {spec: "history: {type: Memory}"},
		"ClickHouse needs nothing else":             {spec: "history: {type: ClickHouse}"},
		"a server of the Property's own":            {spec: "history: {type: ClickHouse, clickHouse: {urlSecretKeyRef: {name: s, key: url}, caSecretRef: {name: ca}, clientCertificateSecretRef: {name: tls}}}"},
		"a cluster and a number of days":            {spec: "history: {type: ClickHouse, clickHouse: {cluster: analytics_1, retentionDays: 400}}"},
		"the archive's pod is told of as any other": {spec: "archive: {resources: {limits: {memory: 1Gi}}, nodeSelector: {disk: fast}}"},
		"another type is refused":                   {spec: "history: {type: Postgres}", want: []string{`spec.history.type: must be one of "Memory", "ClickHouse"`}},
		"what is ClickHouse's is refused beside Memory": {
			spec: "history: {type: Memory, clickHouse: {retentionDays: 400}}", want: []string{"spec.history.clickHouse: must be absent unless type is ClickHouse"},
		},
		"what is ClickHouse's is refused without a type": {
			spec: "history: {clickHouse: {retentionDays: 400}}", want: []string{"spec.history.clickHouse: must be absent unless type is ClickHouse"},
		},
		"a history shorter than what Redis keeps is refused": {
			spec: "history: {type: ClickHouse, clickHouse: {retentionDays: 61}}",
			want: []string{"spec.history.clickHouse.retentionDays: must be at least retention.days: Redis keeps the newest part of what the history keeps"},
		},
		"a history of ten years and a day is refused": {
			spec: "history: {type: ClickHouse, clickHouse: {retentionDays: 3654}}", want: []string{"spec.history.clickHouse.retentionDays: should be less than or equal to 3653"},
		},
		"certificates without a URL are refused": {
			spec: "history: {type: ClickHouse, clickHouse: {caSecretRef: {name: ca}}}",
			want: []string{"spec.history.clickHouse.urlSecretKeyRef: must be set where caSecretRef or clientCertificateSecretRef is: these are for a server of the Property's own"},
		},
		"a cluster's name that would end its quotation is refused": {
			spec: "history: {type: ClickHouse, clickHouse: {cluster: 'a` b'}}",
			want: []string{"spec.history.clickHouse.cluster: must be the name of a cluster: letters, digits, '_' and '-', with a letter or '_' first, such as analytics"},
		},
		"a Secret of another namespace cannot be named": {
			spec: "history: {type: ClickHouse, clickHouse: {urlSecretKeyRef: {namespace: other, name: s, key: url}}}",
			want: []string{"spec.history.clickHouse.urlSecretKeyRef.namespace: is no field here; the fields are key, name"},
		},
		"two archives cannot be asked for": {
			spec: "archive: {replicas: 2}",
			want: []string{"spec.archive.replicas: is no field here; the fields are affinity, imagePullSecrets, nodeSelector, podAnnotations, resources, tolerations, topologySpreadConstraints"},
		},
		"identifiers may be kept as long as the history":         {spec: "history: {type: ClickHouse, clickHouse: {retentionDays: 400}}\nretention: {days: 30, identifiersDays: 400}"},
		"identifiers may be kept as long as a history's default": {spec: "history: {type: ClickHouse}\nretention: {days: 30, identifiersDays: 1095}"},
		"identifiers kept longer than the history are refused": {
			spec: "history: {type: ClickHouse, clickHouse: {retentionDays: 400}}\nretention: {days: 30, identifiersDays: 401}", want: []string{identifiersTooLong},
		},
		"identifiers kept longer than a history's default are refused": {
			spec: "history: {type: ClickHouse}\nretention: {days: 30, identifiersDays: 1096}", want: []string{identifiersTooLong},
		},
	})
}

func TestAHistoryKeepsThreeYears(t *testing.T) {
	for sentence, test := range map[string]struct {
		spec string
		want int32
	}{
		"by default":                          {"history: {type: ClickHouse}", v1alpha1.DefaultHistoryDays},
		"where something else is said":        {"history: {type: ClickHouse, clickHouse: {cluster: a}}", v1alpha1.DefaultHistoryDays},
		"unless another number of days is it": {"history: {type: ClickHouse, clickHouse: {retentionDays: 400}}", 400},
	} {
		t.Run(sentence, func(t *testing.T) {
			property, errs := sharedValidator(t).Create(t.Context(), document(t, test.spec))
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			if got := property.Spec.History.Days(); got != test.want {
				t.Errorf("it keeps %d days, want %d", got, test.want)
			}
		})
	}
}
