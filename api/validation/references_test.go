package validation_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// What names another object is either a name that the API server could have given one, or refused here: a name that
// climbs out of a path makes requests fail for ever.
func TestWhatNamesAnotherObjectIsAName(t *testing.T) {
	subdomain := map[string]bool{
		"shop-keys": true, "a": true, "1": true, "a.b": true, "a-1.b-2.c": true, strings.Repeat("a", 253): true,
		"../x": false, "a/b": false, ".": false, "..": false, "-a": false, "a-": false, "a..b": false, ".a": false, "A": false,
		"a b": false, "a_b": false, "ä": false, "a%2fb": false, "a:b": false,
	}
	label := map[string]bool{"edge": true, "a-1": true, "1": true, "a.b": false, "../x": false, "A": false, "-a": false, "a-": false, "a_b": false}
	key := map[string]bool{
		"url": true, "Tls.crt": true, ".hidden": true, "a_b-c.d": true, "-": true, strings.Repeat("a", 253): true,
		".": false, "..": false, "..data": false, "../x": false, "a/b": false, "a b": false, "ä": false,
	}
	const secret = "must be the name of a Secret: lower-case letters, digits, '-' and '.', with a letter or digit at either end, such as "
	const secretKey = "must be a key of a Secret: letters, digits, '-', '_' and '.', not beginning with '..', such as url"
	for field, test := range map[string]struct {
		spec   string
		values map[string]bool
		says   string
	}{
		"spec.apiKeys[0].secretKeyRef.name":                       {"apiKeys: [{name: a, secretKeyRef: {name: %q, key: k}}]", subdomain, secret + "shop-keys"},
		"spec.apiKeys[0].secretKeyRef.key":                        {"apiKeys: [{name: a, secretKeyRef: {name: s, key: %q}}]", key, secretKey},
		"spec.redis.urlSecretKeyRef.name":                         {"redis: {urlSecretKeyRef: {name: %q, key: k}}", subdomain, secret + "shop-keys"},
		"spec.redis.caSecretRef.name":                             {"redis: {urlSecretKeyRef: {name: s, key: k}, caSecretRef: {name: %q}}", subdomain, secret + "shop-keys"},
		"spec.redis.caSecretRef.key":                              {"redis: {urlSecretKeyRef: {name: s, key: k}, caSecretRef: {name: s, key: %q}}", key, strings.Replace(secretKey, "as url", "as ca.crt", 1)},
		"spec.redis.clientCertificateSecretRef.name":              {"redis: {urlSecretKeyRef: {name: s, key: k}, clientCertificateSecretRef: {name: %q}}", subdomain, secret + "shop-keys"},
		"spec.history.clickHouse.urlSecretKeyRef.name":            {"history: {type: ClickHouse, clickHouse: {urlSecretKeyRef: {name: %q, key: k}}}", subdomain, secret + "shop-keys"},
		"spec.history.clickHouse.urlSecretKeyRef.key":             {"history: {type: ClickHouse, clickHouse: {urlSecretKeyRef: {name: s, key: %q}}}", key, secretKey},
		"spec.history.clickHouse.caSecretRef.name":                {"history: {type: ClickHouse, clickHouse: {urlSecretKeyRef: {name: s, key: k}, caSecretRef: {name: %q}}}", subdomain, secret + "shop-keys"},
		"spec.history.clickHouse.caSecretRef.key":                 {"history: {type: ClickHouse, clickHouse: {urlSecretKeyRef: {name: s, key: k}, caSecretRef: {name: s, key: %q}}}", key, strings.Replace(secretKey, "as url", "as ca.crt", 1)},
		"spec.history.clickHouse.clientCertificateSecretRef.name": {"history: {type: ClickHouse, clickHouse: {urlSecretKeyRef: {name: s, key: k}, clientCertificateSecretRef: {name: %q}}}", subdomain, secret + "shop-keys"},
		"spec.redis.urlSecretKeyRef.key":                          {"redis: {urlSecretKeyRef: {name: s, key: %q}}", key, secretKey},
		"spec.platforms[0].credentialsSecretRef.name":             {"platforms: [{name: a, type: Meta, meta: {pixelID: '1'}, credentialsSecretRef: {name: %q}}]", subdomain, secret + "shop-keys"},
		"spec.collector.imagePullSecrets[0].name":                 {"collector: {imagePullSecrets: [{name: %q}]}", subdomain, secret + "shop-keys"},
		"spec.exposure.ingress.tlsSecretName":                     {"exposure: {type: Ingress, ingress: {tlsSecretName: %q}}", subdomain, secret + "shop-tls"},
		"spec.exposure.ingress.className":                         {"exposure: {type: Ingress, ingress: {className: %q}}", subdomain, strings.ReplaceAll(secret, "a Secret", "an IngressClass") + "nginx"},
		"spec.exposure.gateway.parentRefs[0].name":                {"exposure: {type: Gateway, gateway: {parentRefs: [{name: %q}]}}", subdomain, strings.ReplaceAll(secret, "Secret", "Gateway") + "edge"},
		"spec.exposure.gateway.parentRefs[0].sectionName":         {"exposure: {type: Gateway, gateway: {parentRefs: [{name: g, sectionName: %q}]}}", subdomain, strings.ReplaceAll(secret, "Secret", "listener") + "https"},
		"spec.exposure.gateway.parentRefs[0].namespace":           {"exposure: {type: Gateway, gateway: {parentRefs: [{name: g, namespace: %q}]}}", label, "must be the name of a namespace: lower-case letters, digits and '-', with no '-' at either end, such as edge"},
		"spec.exposure.collectHost":                               {"exposure: {type: Ingress, collectHost: %q}", hosts(), "must be a host name in lower case and no address, such as collect.shop.example.com"},
		"spec.exposure.apiHost":                                   {"exposure: {type: Ingress, apiHost: %q}", hosts(), "must be a host name in lower case and no address, such as api.example.com"},
	} {
		for value, good := range test.values {
			t.Run(field+" "+value, func(t *testing.T) {
				var want []string
				if !good {
					want = []string{field + ": " + test.says}
				}
				_, errs := sharedValidator(t).Create(t.Context(), document(t, fmt.Sprintf(test.spec, value)))
				if diff := cmp.Diff(want, describe(errs)); diff != "" {
					t.Errorf("errors (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// hosts are host names, and what an Ingress would be refused for.
func hosts() map[string]bool {
	label := strings.Repeat("a", 63)
	return map[string]bool{
		"collect.shop.example.com": true, "a.b": true, "1.example.com": true, "xn--fsq.xn--fiqs8s": true, label + ".example.com": true, "example." + label: true,
		"127.0.0.1": false, "10.1": false, "1.2.3.4.5": false, "0x7f.1": false, "example.1a": false, "[::1]": false, "::1": false, "localhost": false,
		label + "a.example.com": false, "example." + label + "a": false, "a..b": false, ".a.b": false, "a.b.": false, "-a.b": false, "a-.b": false, "a.b-": false,
		"*.example.com": false, "a_b.example.com": false, "../x": false, "a.b/c": false, "a.b:80": false, "u@a.b": false, "ä.example.com": false,
	}
}

// Argo CD and others compare lists as a whole: what the API server fills in there is a difference for ever.
func TestNoDefaultIsFilledInBelowAList(t *testing.T) {
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(readDefinition(t), &crd); err != nil {
		t.Fatal(err)
	}
	lists, defaults := 0, 0
	var walk func(path string, schema *apiextensionsv1.JSONSchemaProps, below bool)
	walk = func(path string, schema *apiextensionsv1.JSONSchemaProps, below bool) {
		if schema.Default != nil {
			defaults++
			if below {
				t.Errorf("%s has the default %s; what is absent there has to mean it instead", path, schema.Default.Raw)
			}
		}
		for name, property := range schema.Properties {
			walk(path+"."+name, &property, below)
		}
		if schema.Items != nil {
			lists++
			walk(path+"[]", schema.Items.Schema, true)
		}
		if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
			walk(path+"{}", schema.AdditionalProperties.Schema, below)
		}
	}
	walk("", crd.Spec.Versions[0].Schema.OpenAPIV3Schema, false)
	if lists < 10 || defaults < 10 {
		t.Errorf("only %d lists and %d defaults were found", lists, defaults)
	}
}

func TestATokenWithoutAScopeMayRead(t *testing.T) {
	for sentence, test := range map[string]struct{ spec, want string }{
		"the token that there is without being asked for": {"timeZone: UTC", "read"},
		"one that names no scope":                         {"accessTokens: [{name: a}]", "read"},
		"one that may read":                               {"accessTokens: [{name: a, scope: read}]", "read"},
		"one that may write":                              {"accessTokens: [{name: a, scope: write}]", "write"},
		"one that may do all":                             {"accessTokens: [{name: a, scope: admin}]", "admin"},
	} {
		t.Run(sentence, func(t *testing.T) {
			p, errs := sharedValidator(t).Create(t.Context(), document(t, test.spec))
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			if got := string(p.Spec.AccessTokens[0].GrantedScope()); got != test.want {
				t.Errorf("its scope is %q, want %q", got, test.want)
			}
		})
	}
}
