package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/role"
)

// TestAKeyWhoseTypeChangesIsAnotherOne holds that weir dev keeps the keys that it made, except for one that becomes
// publishable, or secret.
func TestAKeyWhoseTypeChangesIsAnotherOne(t *testing.T) {
	shop := func(keys ...v1alpha1.PropertyAPIKey) []*loadedProperty {
		return []*loadedProperty{{Property: &v1alpha1.Property{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "shop"}, Spec: v1alpha1.PropertySpec{APIKeys: keys},
		}}}
	}
	secret := v1alpha1.PropertyAPIKey{Name: "web"}
	publishable := v1alpha1.PropertyAPIKey{Name: "web", Type: v1alpha1.APIKeyPublishable, AllowedOrigins: []v1alpha1.Origin{"https://www.shop.example"}}
	const host = "http://127.0.0.1:8080"
	first := devCredentials{}.renewed(shop(secret), host)
	published := first.renewed(shop(publishable), host)
	for name, c := range map[string]struct {
		credentials devCredentials
		begins      string
		same        *devCredentials
	}{
		"a secret key begins with wk_":                {first, auth.APIKeyPrefix, nil},
		"and stays what it is":                        {first.renewed(shop(secret), host), auth.APIKeyPrefix, &first},
		"a publishable one begins with wp_":           {published, auth.PublishableKeyPrefix, nil},
		"and stays what it is, too":                   {published.renewed(shop(publishable), host), auth.PublishableKeyPrefix, &published},
		"what was published becomes no secret again":  {published.renewed(shop(secret), host), auth.APIKeyPrefix, nil},
		"a key that names its type is the one it was": {first.renewed(shop(v1alpha1.PropertyAPIKey{Name: "web", Type: v1alpha1.APIKeySecret}), host), auth.APIKeyPrefix, &first},
	} {
		t.Run(name, func(t *testing.T) {
			key := c.credentials.Properties[0].APIKeys[0].Key
			if !strings.HasPrefix(key, c.begins) || !auth.WellFormed(key) {
				t.Errorf("got %s, want one that begins with %s", key, c.begins)
			}
			if c.same != nil && key != c.same.Properties[0].APIKeys[0].Key {
				t.Error("it has another value")
			}
			if c.same == nil && name != "a secret key begins with wk_" && key == first.Properties[0].APIKeys[0].Key {
				t.Error("it has the secret key's value")
			}
		})
	}
	if lines := published.Properties[0].curlLines([]role.Name{role.Collect}); strings.Contains(lines, "curl") ||
		!strings.Contains(lines, "/collect/"+published.Properties[0].APIKeys[0].Key+"/weir.js") {
		t.Errorf("the lines to try are, with a publishable key alone, %s\nwant the snippet's, and no purchase", lines)
	}
	both := devCredentials{}.renewed(shop(publishable, v1alpha1.PropertyAPIKey{Name: "server"}), host).Properties[0]
	lines := both.curlLines([]role.Name{role.Collect})
	if !strings.Contains(lines, both.APIKeys[1].Key) {
		t.Errorf("the lines to try send with another key than the secret one:\n%s", lines)
	}
	if want := "# clients of Segment and RudderStack: host " + both.CollectURL + ", write key " + both.APIKeys[1].Key + "\n"; !strings.Contains(lines, want) {
		t.Errorf("the lines to try are\n%s\nwant among them %s", lines, want)
	}
}

func TestAPublishableKeyIsNoSecretOne(t *testing.T) {
	const shop = `apiVersion: weir.dev/v1alpha1
kind: Property
metadata: {name: shop}
spec:
  currency: EUR
  apiKeys:
  - {name: server, secretKeyRef: {name: keys, key: one}}
  - {name: web, type: Publishable, allowedOrigins: ["https://www.shop.example"], secretKeyRef: {name: keys, key: two}}
---
apiVersion: v1
kind: Secret
metadata: {name: keys}
stringData: {one: the-same-value-twice, two: the-same-value-twice}
`
	directory := t.TempDir()
	file := filepath.Join(directory, "shop.yaml")
	if err := os.WriteFile(file, []byte(shop), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs strings.Builder
	code := run(t.Context(), []string{"dev", "--listen", "127.0.0.1:0", "--state-dir", filepath.Join(directory, "state"), "-f", file}, &out, &errs)
	const want = "spec.apiKeys[1]: must have another value than [0]: one is publishable, the other is secret"
	if code == 0 || !strings.Contains(errs.String(), want) || strings.Contains(errs.String(), "the-same-value") {
		t.Errorf("weir dev ended with %d:\n%s\nwant it to say %s", code, errs.String(), want)
	}
}
