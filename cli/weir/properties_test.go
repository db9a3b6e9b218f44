package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/api/validation"
	"github.com/weir-dev/weir/cli/flags"
	"github.com/weir-dev/weir/config/crd"
)

// writeManifests writes files below a folder of their own and returns it.
func writeManifests(t *testing.T, files map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// compiledValidator compiles the rules once for all tests.
var compiledValidator = sync.OnceValues(func() (*validation.Validator, error) { return validation.New(crd.Properties) })

// loadErrors loads a folder and returns the errors without the folder's name in them.
func loadErrors(t *testing.T, folder string) []string {
	t.Helper()
	validator, err := compiledValidator()
	if err != nil {
		t.Fatal(err)
	}
	_, err = newPropertyLoader(validator).load(t.Context(), []string{folder})
	var errs flags.Errors
	if err != nil && !errors.As(err, &errs) {
		t.Fatal(err)
	}
	var lines []string
	for _, line := range errs {
		if strings.Contains(line, "\n") {
			t.Errorf("an error of several lines: %q", line)
		}
		lines = append(lines, strings.ReplaceAll(line, folder+string(filepath.Separator), ""))
	}
	return lines
}

const (
	shop = `
apiVersion: weir.dev/v1alpha1
kind: Property
metadata: {name: shop}
spec:
  currency: EUR
`
	secret = `
---
apiVersion: v1
kind: Secret
metadata: {name: keys}
`
	// signingSecret is 32 zero bytes; brief is 23.
	signingSecret = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
	brief         = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
)

func TestTheSamplesLoad(t *testing.T) {
	properties, err := loadProperties(t.Context(), []string{"../../config/samples"})
	if err != nil {
		t.Fatal(err)
	}
	if len(properties) != 1 {
		t.Fatalf("got %d Properties, want 1", len(properties))
	}
	got := properties[0]
	if got.id().String() != "default/shop" || got.Spec.TimeZone != "Europe/Berlin" || got.Spec.Retention.Days != 62 {
		t.Errorf("got %s in %s, retained for %d days", got.id(), got.Spec.TimeZone, got.Spec.Retention.Days)
	}
	if !strings.HasPrefix(got.platformSecrets["crm"]["signingSecret"], "whsec_") {
		t.Error("the webhook's signing secret was not found")
	}
}

func TestWhatSecretsHoldIsFound(t *testing.T) {
	folder := writeManifests(t, map[string]string{
		// The Secret stands in a file behind the one that refers to it, and holds more than is asked for.
		"a.yaml": `
apiVersion: weir.dev/v1alpha1
kind: Property
metadata: {name: shop, namespace: tenants}
spec:
  currency: EUR
  apiKeys: [{name: made}, {name: brought, secretKeyRef: {name: keys, key: legacy}}]
  redis: {urlSecretKeyRef: {name: keys, key: redis}}
  platforms:
  - {name: meta, type: Meta, meta: {pixelID: "1"}, credentialsSecretRef: {name: keys}}
  - {name: crm, type: Webhook, webhook: {url: "http://crm"}, credentialsSecretRef: {name: keys}}
  - {name: console, type: Log}
  - {name: product, type: Mixpanel, mixpanel: {projectID: "1"}, credentialsSecretRef: {name: mixpanel}, forwardErasure: true}
  - {name: plain, type: Mixpanel, mixpanel: {projectID: "1"}, credentialsSecretRef: {name: mixpanel}}
  sources:
  - {name: woo, type: WooCommerce, secretRef: {name: keys}, url: "https://shop.example.com", apiSecretRef: {name: keys}}
`,
		"b.yml": `
apiVersion: v1
kind: Secret
metadata: {name: keys, namespace: tenants}
type: Opaque
data: {accessToken: dG9rZW4=, signingSecret: b3ZlcnJpZGRlbg==, consumerKey: Y2s=, consumerSecret: Y3M=}
stringData:
  legacy: |
    a-key-of-old-days
  redis: "redis://weir:secret@redis:6379/0\n"
  signingSecret: ` + signingSecret + `
---
apiVersion: v1
kind: Secret
metadata: {name: mixpanel, namespace: tenants}
stringData: {serviceAccountUsername: u, serviceAccountSecret: s, projectToken: p, gdprToken: g}
`,
		"ignored.txt": "no manifest",
	})
	properties, err := loadProperties(t.Context(), []string{folder})
	if err != nil {
		t.Fatal(err)
	}
	got := properties[0]
	if diff := cmp.Diff(map[string]string{"brought": "a-key-of-old-days"}, got.apiKeys); diff != "" {
		t.Errorf("brought keys (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]map[string]string{
		"meta": {"accessToken": "token"}, "crm": {"signingSecret": signingSecret}, "console": {},
		// What erasures need is read where they are handed on, and nowhere else.
		"product": {"serviceAccountUsername": "u", "serviceAccountSecret": "s", "projectToken": "p", "gdprToken": "g"},
		"plain":   {"serviceAccountUsername": "u", "serviceAccountSecret": "s"},
	}, got.platformSecrets); diff != "" {
		t.Errorf("platform secrets (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]map[string]string{
		"woo": {"signingSecret": signingSecret, "consumerKey": "ck", "consumerSecret": "cs"},
	}, got.sourceSecrets); diff != "" {
		t.Errorf("source secrets (-want +got):\n%s", diff)
	}
	if want := "redis://weir:secret@redis:6379/0"; got.redis.URL != want {
		t.Errorf("the Redis URL is %q, want %q", got.redis.URL, want)
	}
}

func TestSeveralDocumentsAndFiles(t *testing.T) {
	property := func(name string) string {
		return "apiVersion: weir.dev/v1alpha1\nkind: Property\nmetadata: {name: " + name + "}\nspec: {currency: EUR}\n"
	}
	folder := writeManifests(t, map[string]string{
		"b.yaml": "# a comment alone\n---\n" + property("one") + "--- # the second\n" + property("two") + "...\n" + property("three") + "---\n",
		"a.json": `{"apiVersion": "weir.dev/v1alpha1", "kind": "Property", "metadata": {"name": "zero"}, "spec": {"currency": "EUR"}}`,
	})
	properties, err := loadProperties(t.Context(), []string{folder})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, property := range properties {
		got = append(got, property.id().String())
	}
	if diff := cmp.Diff([]string{"default/zero", "default/one", "default/two", "default/three"}, got); diff != "" {
		t.Errorf("Properties (-want +got):\n%s", diff)
	}
}

func TestErrorsInFilesAndDocuments(t *testing.T) {
	for sentence, test := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"a folder without manifests": {
			files: map[string]string{"README.md": "none"},
			want:  []string{"FOLDER: the folder has no *.yaml, *.yml or *.json file"},
		},
		"files without a Property": {
			files: map[string]string{"a.yaml": secret},
			want:  []string{"FOLDER: there is no Property in it; config/samples has one to start from"},
		},
		"YAML that is none is named by its line in the file, and the rest is still read": {
			files: map[string]string{"a.yaml": shop + "---\n\nkind: Property\n  indented: wrongly\n---\nkind: Pod\nmetadata: {name: p}\n"},
			want: []string{
				"a.yaml: must be YAML, but: line 10: mapping values are not allowed in this context",
				"a.yaml: Pod default/p: kind: must be Property or Secret; nothing else is served",
			},
		},
		"a member twice is named by its line": {
			files: map[string]string{"a.yaml": shop + "  currency: USD\n"},
			want:  []string{`a.yaml: must be YAML, but: line 7: key "currency" already set in map`},
		},
		"a value that is taken for an anchor is not repeated": {
			files: map[string]string{"a.yaml": shop + "---\nkind: Secret\nstringData:\n  accessToken: *hush\n"},
			want:  []string{`a.yaml: must be YAML, but: unknown anchor a value referenced`},
		},
		"a document that is a list": {
			files: map[string]string{"a.yaml": shop + "---\n- kind: Property\n"},
			want:  []string{"a.yaml: line 7: must be an object with apiVersion, kind and metadata"},
		},
		"an object without a kind": {
			files: map[string]string{"a.yaml": "spec: {}"},
			want:  []string{"a.yaml: object at line 1: kind: is required; it must be Property or Secret"},
		},
		"another version of the Property": {
			files: map[string]string{"a.yaml": strings.Replace(shop, "v1alpha1", "v1", 1)},
			want:  []string{"a.yaml: Property default/shop: apiVersion: must be weir.dev/v1alpha1"},
		},
		"another version of the Secret": {
			files: map[string]string{"a.yaml": shop + "---\napiVersion: v2\nkind: Secret\nmetadata: {name: s, namespace: other}\n"},
			want:  []string{"a.yaml: Secret other/s: apiVersion: must be v1"},
		},
		"every error of the schema and its rules, of every file": {
			files: map[string]string{
				"a.yaml": shop + "  colour: green\n  timeZone: Mars/Olympus\n",
				"b.yaml": strings.Replace(shop, "shop", "Shop", 1),
			},
			want: []string{
				"a.yaml: Property default/shop: spec.colour: is no field here; the fields are accessTokens, apiKeys, archive, collector, consent, currency, deduplication, deletionPolicy, deliverer, eventAliases, exclude, exposure, history, identity, limits, operatorClass, platforms, query, redis, retention, sources, suppression, timeZone",
				"a.yaml: Property default/shop: spec.timeZone: must be an IANA time zone, such as Europe/Berlin or UTC",
				"b.yaml: Property default/Shop: metadata.name must be at most 40 lower-case letters, digits and '-', with a letter first and no '-' at the end, such as shop",
			},
		},
		"a Property without metadata": {
			files: map[string]string{"a.yaml": "apiVersion: weir.dev/v1alpha1\nkind: Property\nspec: {currency: EUR}\n"},
			want:  []string{"a.yaml: Property at line 1: metadata.name: is required"},
		},
		"a currency that only looks like one": {
			files: map[string]string{"a.yaml": strings.Replace(shop, "EUR", "EUQ", 1)},
			want:  []string{"a.yaml: Property default/shop: spec.currency: must be an ISO 4217 code in capitals, such as EUR"},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			folder := writeManifests(t, test.files)
			var got []string
			for _, line := range loadErrors(t, folder) {
				got = append(got, strings.ReplaceAll(line, folder, "FOLDER"))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPathsThatDoNotExistAreErrors(t *testing.T) {
	_, err := loadProperties(t.Context(), []string{"missing.yaml", "nowhere"})
	want := flags.Errors{"missing.yaml: there is no such file or folder", "nowhere: there is no such file or folder"}
	var got flags.Errors
	if !errors.As(err, &got) {
		t.Fatalf("got %v, want errors", err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
}

func TestErrorsInSecrets(t *testing.T) {
	webhook := shop + "  platforms: [{name: console, type: Log}, {name: crm, type: Webhook, webhook: {url: 'http://crm'}, credentialsSecretRef: {name: keys}}]\n"
	meta := shop + "  platforms: [{name: meta, type: Meta, meta: {pixelID: '1'}, credentialsSecretRef: {name: keys}}]\n"
	brought := shop + "  apiKeys: [{name: legacy, secretKeyRef: {name: keys, key: weir}}]\n"
	redis := shop + "  redis: {urlSecretKeyRef: {name: keys, key: url}}\n"
	const at = "a.yaml: Property default/shop: "
	const badSigningSecret = at + `spec.platforms[1].credentialsSecretRef: platform "crm": signingSecret must be whsec_ and 24 to 64 bytes in base64, or several such with spaces between them`
	for sentence, test := range map[string]struct {
		text string
		want []string
	}{
		"a missing Secret is named with where it is referred to": {
			text: webhook,
			want: []string{at + "spec.platforms[1].credentialsSecretRef: Secret default/keys, of which the key signingSecret is needed, is in none of the files; add it to one of them"},
		},
		"a Secret of another namespace does not count": {
			text: webhook + strings.Replace(secret, "keys", "keys, namespace: other", 1) + "stringData: {signingSecret: " + signingSecret + "}\n",
			want: []string{at + "spec.platforms[1].credentialsSecretRef: Secret default/keys, of which the key signingSecret is needed, is in none of the files; add it to one of them"},
		},
		"a missing key is named with its Secret": {
			text: webhook + secret + "stringData: {other: value}\n",
			want: []string{at + "spec.platforms[1].credentialsSecretRef: Secret default/keys (a.yaml) must have the key signingSecret"},
		},
		"a source's missing key is named with its Secret": {
			text: shop + "  sources: [{name: a, type: Stripe, secretRef: {name: keys}, apiSecretRef: {name: keys}}]\n" + secret + "stringData: {signingSecret: ' '}\n",
			want: []string{
				at + "spec.sources[0].secretRef: key signingSecret of Secret default/keys: must not be empty",
				at + "spec.sources[0].apiSecretRef: Secret default/keys (a.yaml) must have the key restrictedKey",
			},
		},
		"a good signing secret":                  {text: webhook + secret + "stringData: {signingSecret: " + signingSecret + "}\n"},
		"two signing secrets, while they change": {text: webhook + secret + "stringData: {signingSecret: " + signingSecret + " " + signingSecret + "}\n"},
		"a signing secret of 23 bytes":           {text: webhook + secret + "stringData: {signingSecret: " + brief + "}\n", want: []string{badSigningSecret}},
		"a signing secret that is no base64":     {text: webhook + secret + "stringData: {signingSecret: whsec_hunter2}\n", want: []string{badSigningSecret}},
		"an empty access token": {
			text: meta + secret + "stringData: {accessToken: ''}\n",
			want: []string{at + `spec.platforms[0].credentialsSecretRef: platform "meta": its Secret must have the key accessToken`},
		},
		"a brought key that is too short": {
			text: brought + secret + "stringData: {weir: hunter2}\n",
			want: []string{at + "spec.apiKeys[0].secretKeyRef: key weir of Secret default/keys: an API key must be at least 16 visible ASCII characters without '/'"},
		},
		"a brought key that is missing": {
			text: brought,
			want: []string{at + "spec.apiKeys[0].secretKeyRef: Secret default/keys, of which the key weir is needed, is in none of the files; add it to one of them"},
		},
		"a brought token that is too short": {
			text: shop + "  accessTokens: [{name: bi, secretKeyRef: {name: keys, key: weir}}]\n" + secret + "stringData: {weir: hunter2}\n",
			want: []string{at + "spec.accessTokens[0].secretKeyRef: key weir of Secret default/keys: an access token must be at least 16 visible ASCII characters"},
		},
		"a Redis URL of another scheme": {
			text: redis + secret + "stringData: {url: 'http://:hunter2@redis'}\n",
			want: []string{at + "spec.redis.urlSecretKeyRef: key url of Secret default/keys: must be a URL that begins with redis://, rediss:// or unix://"},
		},
		"a Redis URL that does not parse": {
			text: redis + secret + "stringData: {url: 'redis://weir:hunter2%zz@redis'}\n",
			want: []string{at + "spec.redis.urlSecretKeyRef: key url of Secret default/keys: must be a URL that begins with redis://, rediss:// or unix://"},
		},
		"an authority that is missing": {
			text: redis[:len(redis)-2] + ", caSecretRef: {name: keys}}\n" + secret + "stringData: {url: 'rediss://:hunter2@redis'}\n",
			want: []string{at + "spec.redis.caSecretRef: Secret default/keys (a.yaml) must have the key ca.crt"},
		},
		"an authority that is empty": {
			text: redis[:len(redis)-2] + ", caSecretRef: {name: keys}}\n" + secret + "stringData: {url: 'rediss://:hunter2@redis', ca.crt: ''}\n",
			want: []string{at + "spec.redis.caSecretRef: key ca.crt of Secret default/keys: must not be empty"},
		},
		"an authority that is no PEM": {
			text: redis[:len(redis)-2] + ", caSecretRef: {name: keys, key: root}}\n" + secret + "stringData: {url: 'rediss://:hunter2@redis', root: hunter2}\n",
			want: []string{at + "spec.redis.caSecretRef: the CA certificates cannot be used: they must be certificates in PEM, and nothing else"},
		},
		"a client certificate that is none": {
			text: redis[:len(redis)-2] + ", clientCertificateSecretRef: {name: keys}}\n" + secret + "stringData: {url: 'rediss://:hunter2@redis', tls.crt: hunter2, tls.key: hunter2}\n",
			want: []string{at + "spec.redis.clientCertificateSecretRef: the client certificate cannot be used: it must be a certificate and the private key that belongs to it, both in PEM"},
		},
		"data that is no base64": {
			text: shop + secret + "data: {weir: hunter2!}\n",
			want: []string{"a.yaml: Secret default/keys: data.weir: must be base64; plain text belongs under stringData"},
		},
		"a value that is no text": {
			text: shop + secret + "stringData: {weir: 31415926}\n",
			want: []string{"a.yaml: Secret default/keys: stringData.weir: must be text; put it in quotes"},
		},
		"values that are no object": {
			text: shop + secret + "stringData: hunter2\n",
			want: []string{"a.yaml: Secret default/keys: stringData: must be an object of texts"},
		},
		"a key that would lead out of the folder": {
			text: shop + secret + "stringData: {../weir: hunter2}\n",
			want: []string{"a.yaml: Secret default/keys: stringData.../weir: the key must be letters, digits, '-', '_' and '.'"},
		},
		"a misspelt member": {
			text: shop + secret + "stringdata: {weir: hunter2}\n",
			want: []string{"a.yaml: Secret default/keys: stringdata: is no field here; the fields are apiVersion, data, immutable, kind, metadata, stringData, type"},
		},
		"a Secret twice": {
			text: shop + secret + secret,
			want: []string{"a.yaml: Secret default/keys: metadata.name: must be unique, but stands in a.yaml already"},
		},
		"a Secret without a name": {
			text: shop + "---\napiVersion: v1\nkind: Secret\nstringData: {weir: hunter2}\n",
			want: []string{"a.yaml: Secret at line 7: metadata.name: must be lower-case letters, digits, '-' and '.', such as shop-crm"},
		},
		"a namespace that YAML takes for false": {
			text: shop + strings.Replace(secret, "keys", "keys, namespace: n", 1),
			want: []string{"a.yaml: Secret /keys: metadata.namespace: must be text; put it in quotes"},
		},
		"a value with a wrong tag is not repeated": {
			text: shop + secret + "stringData: {weir: !!int hunter2}\n",
			want: []string{"a.yaml: must be YAML, but: cannot decode !!str a value as a !!int"},
		},
		"a secret in the place of a name is not repeated": {
			text: shop + "  apiKeys: [{name: wk_hunter2}]\n  platforms: [{name: crm, type: Webhook, webhook: {url: 'http://weir:hunter2@crm'}, credentialsSecretRef: {name: keys}}]\n" + secret,
			want: []string{
				at + "spec.apiKeys[0].name: must be lower-case letters, digits and '-', with no '-' at either end, such as server",
				at + "spec.platforms[0].webhook.url: must hold no user name or password: requests are signed with signingSecret instead",
			},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := loadErrors(t, writeManifests(t, map[string]string{"a.yaml": test.text}))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			for _, line := range got {
				if strings.Contains(line, "hunter2") || strings.Contains(line, "31415926") {
					t.Errorf("an error repeats a secret: %s", line)
				}
			}
		})
	}
}

func TestPropertiesThatShareANameHostOrKeyAreRefused(t *testing.T) {
	property := func(namespace, name, spec string) string {
		return "---\napiVersion: weir.dev/v1alpha1\nkind: Property\nmetadata: {name: " + name + ", namespace: " + namespace + "}\nspec: {currency: EUR, " + spec + "}\n" +
			"---\napiVersion: v1\nkind: Secret\nmetadata: {name: " + name + "-keys, namespace: " + namespace + "}\nstringData: {same: 0123456789abcdef, own: 0123456789-" + name + "-of-" + namespace + "}\n"
	}
	exposed := func(hosts string) string { return "exposure: {type: Ingress, " + hosts + "}" }
	brought := func(name, key string) string {
		return "apiKeys: [{name: own}, {name: brought, secretKeyRef: {name: " + name + "-keys, key: " + key + "}}]"
	}
	for sentence, test := range map[string]struct {
		first, second string
		want          []string
	}{
		"two Properties that have nothing in common": {first: property("a", "one", ""), second: property("a", "two", "")},
		"a Property twice": {
			first: property("a", "one", ""), second: strings.Split(property("a", "one", ""), "---\n")[1],
			want: []string{"2.yaml: Property a/one: metadata.name: must be unique, but stands in 1.yaml already"},
		},
		"one name in two namespaces": {first: property("a", "one", ""), second: property("b", "one", "")},
		"one name in two namespaces, on API hosts of their own": {
			first:  property("a", "one", exposed("collectHost: one.example.com, apiHost: api.example.com")),
			second: property("b", "one", exposed("collectHost: two.example.com, apiHost: api.staging.example.com")),
		},
		"one name in two namespaces, on one API host": {
			first:  property("a", "one", exposed("collectHost: one.example.com, apiHost: api.example.com")),
			second: property("b", "one", exposed("collectHost: two.example.com, apiHost: api.example.com")),
			want:   []string{"2.yaml: Property b/one: spec.exposure.apiHost: must be another, because on this one the name is that of a/one (1.yaml) already"},
		},
		"an apiHost may be shared": {
			first: property("a", "one", exposed("collectHost: one.example.com, apiHost: api.example.com")), second: property("a", "two", exposed("collectHost: two.example.com, apiHost: api.example.com")),
		},
		"one Property may use a single host": {
			first: property("a", "one", exposed("collectHost: one.example.com, apiHost: one.example.com")), second: property("a", "two", ""),
		},
		"one collectHost for two": {
			first: property("a", "one", exposed("collectHost: c.example.com")), second: property("a", "two", exposed("collectHost: c.example.com")),
			want: []string{"2.yaml: Property a/two: spec.exposure.collectHost: must belong to one Property, but is a host of a/one (1.yaml) already"},
		},
		"a collectHost that is another's apiHost": {
			first: property("a", "one", exposed("collectHost: c.example.com, apiHost: api.example.com")), second: property("a", "two", exposed("collectHost: api.example.com")),
			want: []string{"2.yaml: Property a/two: spec.exposure.collectHost: must belong to one Property, but is a host of a/one (1.yaml) already"},
		},
		"an apiHost that is another's collectHost": {
			first: property("a", "one", exposed("collectHost: c.example.com")), second: property("a", "two", exposed("collectHost: d.example.com, apiHost: c.example.com")),
			want: []string{"2.yaml: Property a/two: spec.exposure.apiHost: must not be the collectHost of another Property, but is that of a/one (1.yaml)"},
		},
		"each brings a key of its own": {first: property("a", "one", brought("one", "own")), second: property("a", "two", brought("two", "own"))},
		"both bring the same key": {
			first: property("a", "one", brought("one", "same")), second: property("a", "two", brought("two", "same")),
			want: []string{"2.yaml: Property a/two: spec.apiKeys[1].secretKeyRef: must bring a key of its own, but a/one (1.yaml) has the same one"},
		},
		"both bring the same token": {
			first:  property("a", "one", "accessTokens: [{name: bi, secretKeyRef: {name: one-keys, key: same}}]"),
			second: property("a", "two", "accessTokens: [{name: bi, secretKeyRef: {name: two-keys, key: same}}]"),
			want:   []string{"2.yaml: Property a/two: spec.accessTokens[0].secretKeyRef: must bring a token of its own, but a/one (1.yaml) has the same one"},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := loadErrors(t, writeManifests(t, map[string]string{"1.yaml": test.first, "2.yaml": test.second}))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

// Whatever a file holds, reading it ends in manifests or errors of one line each.
func FuzzReadManifests(f *testing.F) {
	for _, seed := range []string{shop + secret, "---\n...\n--- # x\n", "a: &a [*a]", "\t", "{", "!!int x", "1: 2", "a: 99999999999999999999"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, content string) {
		file := filepath.Join(t.TempDir(), "a.yaml")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		manifests, errs := readManifests(file)
		for _, err := range errs {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("an error of several lines: %q", err)
			}
		}
		for _, manifest := range manifests {
			if manifest.object == nil || manifest.line < 1 {
				t.Errorf("a manifest without an object or line: %+v", manifest)
			}
		}
	})
}
