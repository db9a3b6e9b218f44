package validation_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// bound says what a field may be at least and at most. Its template makes a spec, with %s for the value.
type bound struct {
	field    string
	template string
	// value makes a value of size n: a number, a text of n characters, or the inside of a list or map of n members.
	value     func(n int) string
	low, high int
}

func number(n int) string { return strconv.Itoa(n) }
func text(n int) string   { return `"` + strings.Repeat("a", n) + `"` }

func items(format string) func(int) string {
	return func(n int) string { return repeated(n, format) }
}

// host makes a host name of n characters.
func host(n int) string {
	return strings.Repeat("a", 2-n%2) + strings.Repeat(".a", (n-1)/2)
}

func bounds() []bound {
	const (
		key     = "apiKeys: [{name: a, secretKeyRef: {name: %s, key: k}}]"
		gateway = "exposure: {type: Gateway, collectHost: c.example.com, gateway: {parentRefs: [{name: g, %s}]}}"
		ingress = "exposure: {type: Ingress, collectHost: c.example.com, ingress: {%s}}"
	)
	within := func(template, member string) string { return fmt.Sprintf(template, member+": %s") }
	list := []bound{
		{"spec.apiKeys[0].secretKeyRef.name", key, text, 1, 253},
		{"spec.apiKeys[0].secretKeyRef.key", "apiKeys: [{name: a, secretKeyRef: {name: s, key: %s}}]", text, 1, 253},
		{"spec.apiKeys", "apiKeys: [%s]", items("{name: n%d}"), 0, 16},
		{"spec.apiKeys[0].allowedOrigins", "apiKeys: [{name: a, type: Publishable, allowedOrigins: [%s]}]", items("'https://n%d.example'"), 1, 50},
		{"spec.query.allowedOrigins", "query: {allowedOrigins: [%s]}", items("'https://n%d.example'"), 1, 50},
		{"spec.apiKeys[0].limits.eventsPerSecond", "apiKeys: [{name: a, type: Publishable, allowedOrigins: ['https://a.example'], limits: {eventsPerSecond: %s}}]", number, 1, 1000000},
		{"spec.apiKeys[0].limits.eventsPerSecondPerAddress", "apiKeys: [{name: a, type: Publishable, allowedOrigins: ['https://a.example'], limits: {eventsPerSecondPerAddress: %s}}]", number, 1, 1000000},
		{"spec.accessTokens", "accessTokens: [%s]", items("{name: n%d}"), 0, 64},
		{"spec.deduplication.windowHours", "retention: {days: 731}\ndeduplication: {windowHours: %s}", number, 1, 17544},
		{"spec.retention.days", "deduplication: {windowHours: 1}\nretention: {days: %s}", number, 1, 731},
		{"spec.retention.deviceHours", "retention: {deviceHours: %s}", number, 1, 744},
		{"spec.retention.identifiersDays", "retention: {days: 731, identifiersDays: %s}", number, 1, 731},
		{"spec.retention.maxEvents", "retention: {maxEvents: %s}", number, 1000, 1_000_000_000},
		{"spec.limits.eventsPerSecond", "limits: {eventsPerSecond: %s}", number, 1, 1_000_000},
		{"spec.limits.maxBodyBytes", "limits: {maxBodyBytes: %s}", number, 1024, 1 << 20},
		{"spec.platforms[0].name", "platforms: [{name: %s, type: Log}]", text, 1, 40},
		{"spec.consent.categories", "consent: {categories: {%s}}", items("c%d: [sale]"), 0, 50},
		{"spec.platforms[0].credentialsSecretRef.name", "platforms: [{name: a, type: Meta, meta: {pixelID: '1'}, credentialsSecretRef: {name: %s}}]", text, 1, 253},
		{"spec.platforms[0].events", "platforms: [{name: a, type: Log, events: [%s]}]", items("e%d"), 1, 100},
		{"spec.platforms[0].events[0]", "platforms: [{name: a, type: Log, events: [%s]}]", text, 1, 100},
		{"spec.platforms[0].meta.testEventCode", "platforms: [{name: a, type: Meta, meta: {pixelID: '1', testEventCode: %s}, credentialsSecretRef: {name: s}}]", text, 1, 64},
		{"spec.redis.urlSecretKeyRef.name", "redis: {urlSecretKeyRef: {name: %s, key: k}}", text, 1, 253},
		{"spec.redis.dedicated.storageClassName", "redis: {dedicated: {storage: 8Gi, memory: 1Gi, storageClassName: %s}}", text, 1, 253},
		{"spec.redis.caSecretRef.name", "redis: {urlSecretKeyRef: {name: s, key: k}, caSecretRef: {name: %s}}", text, 1, 253},
		{"spec.redis.caSecretRef.key", "redis: {urlSecretKeyRef: {name: s, key: k}, caSecretRef: {name: s, key: %s}}", text, 1, 253},
		{"spec.redis.clientCertificateSecretRef.name", "redis: {urlSecretKeyRef: {name: s, key: k}, clientCertificateSecretRef: {name: %s}}", text, 1, 253},
		{"spec.redis.urlSecretKeyRef.key", "redis: {urlSecretKeyRef: {name: s, key: %s}}", text, 1, 253},
		{"spec.exposure.collectHost", "exposure: {type: Ingress, collectHost: %s}", host, 3, 253},
		{"spec.exposure.apiHost", "exposure: {type: Ingress, collectHost: c.example.com, apiHost: %s}", host, 3, 253},
		{"spec.exposure.ingress.className", within(ingress, "className"), text, 1, 253},
		{"spec.exposure.ingress.tlsSecretName", within(ingress, "tlsSecretName"), text, 1, 253},
		{"spec.exposure.ingress.annotations", fmt.Sprintf(ingress, "annotations: {%s}"), items("a%d: b"), 0, 64},
		{"spec.exposure.gateway.parentRefs", "exposure: {type: Gateway, collectHost: c.example.com, gateway: {parentRefs: [%s]}}", items("{name: g%d}"), 1, 8},
		{"spec.exposure.gateway.parentRefs[0].name", "exposure: {type: Gateway, collectHost: c.example.com, gateway: {parentRefs: [{name: %s}]}}", text, 1, 253},
		{"spec.exposure.gateway.parentRefs[0].namespace", within(gateway, "namespace"), text, 1, 63},
		{"spec.exposure.gateway.parentRefs[0].sectionName", within(gateway, "sectionName"), text, 1, 253},
		{"spec.exposure.gateway.parentRefs[0].port", within(gateway, "port"), number, 1, 65535},
		{"spec.collector.autoscaling.minReplicas", "collector: {autoscaling: {maxReplicas: 1000, minReplicas: %s}}", number, 1, 1000},
		{"spec.collector.autoscaling.maxReplicas", "collector: {autoscaling: {minReplicas: 1, maxReplicas: %s}}", number, 1, 1000},
	}
	for _, role := range []string{"collector", "deliverer", "query"} {
		member := func(field, template string, value func(int) string, low, high int) {
			list = append(list, bound{"spec." + role + "." + field, role + ": {" + template + "}", value, low, high})
		}
		member("replicas", "replicas: %s", number, 0, 1000)
		member("resources.requests", "resources: {requests: {%s}}", items("r%d: 1"), 0, 8)
		member("resources.limits", "resources: {limits: {%s}}", items("r%d: 1"), 0, 8)
		member("nodeSelector", "nodeSelector: {%s}", items("a%d: b"), 0, 32)
		member("tolerations", "tolerations: [%s]", items("{key: k%d}"), 0, 32)
		member("topologySpreadConstraints", "topologySpreadConstraints: [%s]", items("{maxSkew: 1, topologyKey: k%d, whenUnsatisfiable: DoNotSchedule}"), 0, 8)
		member("podAnnotations", "podAnnotations: {%s}", items("a%d: b"), 0, 64)
		member("imagePullSecrets", "imagePullSecrets: [%s]", items("{name: n%d}"), 0, 8)
		member("imagePullSecrets[0].name", "imagePullSecrets: [{name: %s}]", text, 1, 253)
	}
	return list
}

func TestBounds(t *testing.T) {
	validator := sharedValidator(t)
	for _, b := range bounds() {
		t.Run(b.field, func(t *testing.T) {
			for _, n := range []int{b.low, b.high} {
				if _, errs := validator.Create(t.Context(), document(t, fmt.Sprintf(b.template, b.value(n)))); len(errs) > 0 {
					t.Errorf("a size of %d is refused: %v", n, describe(errs))
				}
			}
			tooMuch := []int{b.high + 1}
			if b.low > 0 {
				tooMuch = append(tooMuch, b.low-1)
			}
			for _, n := range tooMuch {
				_, list := validator.Create(t.Context(), document(t, fmt.Sprintf(b.template, b.value(n))))
				errs := describe(list)
				if !slices.ContainsFunc(errs, func(fieldErr string) bool { return strings.HasPrefix(fieldErr, b.field+":") }) {
					t.Errorf("a size of %d is answered %q, want an error of %s", n, errs, b.field)
				}
			}
		})
	}
}

func TestReplicasAreNotNegative(t *testing.T) {
	for _, role := range []string{"collector", "deliverer", "query"} {
		testRules(t, map[string]rule{
			"-1 replicas of " + role: {
				spec: role + ": {replicas: -1}",
				want: []string{"spec." + role + ".replicas: should be greater than or equal to 0"},
			},
			"a pull secret twice for " + role: {
				spec: role + ": {imagePullSecrets: [{name: a}, {name: a}]}",
				want: []string{"spec." + role + ".imagePullSecrets[1]: repeats an earlier item; must be unique"},
			},
		})
	}
}
