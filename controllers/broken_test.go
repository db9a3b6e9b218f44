package controllers_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/collector/sources"
	"github.com/weir-dev/weir/collector/stream"
	"github.com/weir-dev/weir/controllers"
)

func TestBrokenInputIsAConditionThatHealsByItself(t *testing.T) {
	t.Parallel()
	options := operatorOptions{namespaces: []string{newNamespace(t)}, Options: controllers.Options{
		RedisURL: redistest.URL(t),
		Exposure: controllers.ExposureRules{
			AllowedHosts: map[string][]string{"*": {"*.example.com"}}, AllowedAnnotations: []string{"cert-manager.io/*"},
		},
	}}
	namespace := options.namespaces[0]
	startOperator(t, options)
	secret := func(name, key, value string) func(*testing.T) {
		return func(t *testing.T) {
			create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, StringData: map[string]string{key: value}})
		}
	}
	secretValue := func(name, key, value string) func(*testing.T) {
		return func(t *testing.T) {
			change(t, &corev1.Secret{}, namespace, name, func(s *corev1.Secret) { s.Data = map[string][]byte{key: []byte(value)} })
		}
	}
	edit := func(name string, f func(*v1alpha1.PropertySpec)) func(*testing.T) {
		return func(t *testing.T) {
			change(t, &v1alpha1.Property{}, namespace, name, func(p *v1alpha1.Property) { f(&p.Spec) })
		}
	}
	secret("empty", "other", "x")(t)
	secret("short", "key", "abc")(t)
	bring := func(name string) func(*v1alpha1.Property) {
		return func(p *v1alpha1.Property) {
			p.Spec.APIKeys = []v1alpha1.PropertyAPIKey{{Name: "default"}, {Name: "legacy", SecretKeyRef: &v1alpha1.SecretKeyReference{Name: name, Key: "key"}}}
		}
	}
	bringToken := func(name string) func(*v1alpha1.Property) {
		return func(p *v1alpha1.Property) {
			p.Spec.AccessTokens = []v1alpha1.PropertyAccessToken{{Name: "default"}, {Name: "bi", SecretKeyRef: &v1alpha1.SecretKeyReference{Name: name, Key: "key"}}}
		}
	}
	secret("short-token", "key", "abc")(t)
	secret("same", "key", "0123456789abcdef")(t)
	webhook := func(p *v1alpha1.Property) {
		p.Spec.Platforms = []v1alpha1.Platform{{Name: "crm", Type: platforms.TypeWebhook,
			Settings: platforms.Settings{Webhook: &platforms.Webhook{URL: "https://crm.example.com"}}, CredentialsSecretRef: &v1alpha1.SecretReference{Name: "crm"}}}
	}
	secret("shopify-signed", "signingSecret", "whsec_x")(t)
	source := func(signing, reading string) func(*v1alpha1.Property) {
		return func(p *v1alpha1.Property) {
			shop := v1alpha1.Source{Name: "shop", Type: sources.Shopify, SecretRef: v1alpha1.SecretReference{Name: signing}}
			if reading != "" {
				shop.APISecretRef, shop.URL = &v1alpha1.SecretReference{Name: reading}, "https://example.myshopify.com"
			}
			p.Spec.Sources = []v1alpha1.Source{shop}
		}
	}
	ingress := func(e v1alpha1.Exposure) func(*v1alpha1.Property) {
		return func(p *v1alpha1.Property) { e.Type = v1alpha1.ExposureIngress; p.Spec.Exposure = e }
	}

	tests := map[string]struct {
		name      string
		broken    func(*v1alpha1.Property)
		condition string
		reason    string
		says      []string
		mend      func(*testing.T)
		healed    string
	}{
		"a key's Secret that is not there": {"a-missing", bring("legacy"), v1alpha1.ConditionCredentialsReady, v1alpha1.ReasonSecretMissing,
			[]string{"spec.apiKeys[1].secretKeyRef", "legacy", "create it"}, secret("legacy", "key", "0123456789abcdef"), v1alpha1.ReasonReady},
		"a Secret without the key": {"a-keyless", bring("empty"), v1alpha1.ConditionCredentialsReady, v1alpha1.ReasonSecretMissing,
			[]string{"spec.apiKeys[1].secretKeyRef", "empty", "key"}, secretValue("empty", "key", "0123456789abcdef"), v1alpha1.ReasonReady},
		"a key that is too short": {"a-short", bring("short"), v1alpha1.ConditionCredentialsReady, v1alpha1.ReasonSecretInvalid,
			[]string{"spec.apiKeys[1].secretKeyRef", "16 visible"}, secretValue("short", "key", "0123456789abcdef"), v1alpha1.ReasonReady},
		"a token's Secret that is not there": {"a-tokenless", bringToken("vault"), v1alpha1.ConditionCredentialsReady, v1alpha1.ReasonSecretMissing,
			[]string{"spec.accessTokens[1].secretKeyRef", "vault", "create it"}, secret("vault", "key", "0123456789abcdef"), v1alpha1.ReasonReady},
		"a token that is too short": {"a-short-token", bringToken("short-token"), v1alpha1.ConditionCredentialsReady, v1alpha1.ReasonSecretInvalid,
			[]string{"spec.accessTokens[1].secretKeyRef", "16 visible"}, secretValue("short-token", "key", "0123456789abcdef"), v1alpha1.ReasonReady},
		"a token that is an API key as well": {"a-same", func(p *v1alpha1.Property) {
			bring("same")(p)
			tokens := p.DeepCopy()
			bringToken("same")(tokens)
			p.Spec.AccessTokens = tokens.Spec.AccessTokens
		}, v1alpha1.ConditionCredentialsReady, v1alpha1.ReasonSecretInvalid,
			[]string{"spec.accessTokens[1]: has the same value as spec.apiKeys[1]"}, edit("a-same", func(s *v1alpha1.PropertySpec) { s.AccessTokens = s.AccessTokens[:1] }), v1alpha1.ReasonReady},
		"a platform's Secret that is not there": {"a-platform", webhook, v1alpha1.ConditionPlatformsReady, v1alpha1.ReasonSecretMissing,
			[]string{"spec.platforms[0] (crm)", "signingSecret"}, secret("crm", "signingSecret", "whsec_x"), v1alpha1.ReasonReady},
		"a source's Secret that is not there": {"a-source", source("shopify", ""), v1alpha1.ConditionSourcesReady, v1alpha1.ReasonSecretMissing,
			[]string{"spec.sources[0] (shop)", "signingSecret"}, secret("shopify", "signingSecret", "whsec_x"), v1alpha1.ReasonReady},
		"a source's Secret for its shop that is not there": {"a-reading-source", source("shopify-signed", "shopify-admin"), v1alpha1.ConditionSourcesReady, v1alpha1.ReasonSecretMissing,
			[]string{"spec.sources[0] (shop)", "shopify-admin", "accessToken"}, secret("shopify-admin", "accessToken", "shpat_x"), v1alpha1.ReasonReady},
		"a Redis URL that is not there": {"a-redis", ownRedis("nowhere"), v1alpha1.ConditionRedisReady, v1alpha1.ReasonSecretMissing,
			[]string{"spec.redis.urlSecretKeyRef", "nowhere"}, secret("nowhere", "url", tenantsRedis(t)), v1alpha1.ReasonReady},
		"a currency that there is not": {"a-currency", func(p *v1alpha1.Property) { p.Spec.Currency = "XQX" }, v1alpha1.ConditionWorkloadsAvailable, v1alpha1.ReasonConfigurationInvalid,
			[]string{"spec.currency"}, edit("a-currency", func(s *v1alpha1.PropertySpec) { s.Currency = "USD" }), v1alpha1.ReasonProgressing},
		"a host that the operator does not allow": {"a-host", ingress(v1alpha1.Exposure{CollectHost: "collect.elsewhere.net"}), v1alpha1.ConditionExposed, v1alpha1.ReasonHostNotAllowed,
			[]string{"collect.elsewhere.net", "--allow-host"}, edit("a-host", func(s *v1alpha1.PropertySpec) { s.Exposure.CollectHost = "mended.example.com" }), v1alpha1.ReasonReady},
		"an Ingress without a host": {"a-hostless", ingress(v1alpha1.Exposure{}), v1alpha1.ConditionExposed, v1alpha1.ReasonHostMissing,
			[]string{"spec.exposure.collectHost", "--host-template"}, edit("a-hostless", func(s *v1alpha1.PropertySpec) { s.Exposure.CollectHost = "named.example.com" }), v1alpha1.ReasonReady},
		"an annotation that the operator does not allow": {"a-note",
			ingress(v1alpha1.Exposure{CollectHost: "note.example.com", Ingress: &v1alpha1.IngressExposure{Annotations: map[string]string{"nginx.ingress.kubernetes.io/configuration-snippet": "x"}}}),
			v1alpha1.ConditionExposed, v1alpha1.ReasonAnnotationNotAllowed, []string{"configuration-snippet", "--allow-ingress-annotation"},
			edit("a-note", func(s *v1alpha1.PropertySpec) {
				s.Exposure.Ingress.Annotations = map[string]string{"cert-manager.io/cluster-issuer": "ca"}
			}), v1alpha1.ReasonReady},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			create(t, property(namespace, test.name, test.broken))
			p := waitFor(t, namespace, test.name, test.condition, metav1.ConditionFalse, test.reason)
			for _, word := range test.says {
				if text := message(p, test.condition); !strings.Contains(text, word) {
					t.Errorf("%q does not say %q", text, word)
				}
			}
			test.mend(t)
			status := metav1.ConditionTrue
			if test.healed == v1alpha1.ReasonProgressing {
				status = metav1.ConditionFalse
			}
			waitFor(t, namespace, test.name, test.condition, status, test.healed)
		})
	}
}

func TestTheOlderPropertyKeepsAHostAndAnID(t *testing.T) {
	first, second := newNamespace(t), newNamespace(t)
	startOperator(t, operatorOptions{namespaces: []string{first, second}, Options: controllers.Options{RedisURL: redistest.URL(t)}})
	exposed := func(host string) func(*v1alpha1.Property) {
		return func(p *v1alpha1.Property) {
			p.Spec.Exposure = v1alpha1.Exposure{Type: v1alpha1.ExposureIngress, CollectHost: host, APIHost: "api.claims.example.com"}
		}
	}
	create(t, property(first, "alpha", exposed("collect.claims.example.com")))
	waitFor(t, first, "alpha", v1alpha1.ConditionExposed, metav1.ConditionTrue, v1alpha1.ReasonReady)
	create(t, property(second, "beta", exposed("collect.claims.example.com")))
	create(t, property(second, "alpha", exposed("other.claims.example.com")))

	p := waitFor(t, second, "beta", v1alpha1.ConditionExposed, metav1.ConditionFalse, v1alpha1.ReasonHostConflict)
	if text := message(p, v1alpha1.ConditionExposed); !strings.Contains(text, "spec.exposure.collectHost") || !strings.Contains(text, first) {
		t.Errorf("the condition does not say which host is whose: %s", text)
	}
	p = waitFor(t, second, "alpha", v1alpha1.ConditionExposed, metav1.ConditionFalse, v1alpha1.ReasonHostConflict)
	if text := message(p, v1alpha1.ConditionExposed); !strings.Contains(text, "on api.claims.example.com the name alpha is") {
		t.Errorf("the condition does not say that the name is taken: %s", text)
	}
	for name := range owned(t, p) {
		if strings.HasPrefix(name, "Ingress") {
			t.Errorf("%s of the younger Property exists", name)
		}
	}
	waitFor(t, first, "alpha", v1alpha1.ConditionExposed, metav1.ConditionTrue, v1alpha1.ReasonReady)

	if err := server.client.Delete(context.Background(), property(first, "alpha")); err != nil {
		t.Fatal(err)
	}
	waitFor(t, second, "beta", v1alpha1.ConditionExposed, metav1.ConditionTrue, v1alpha1.ReasonReady)
	waitFor(t, second, "alpha", v1alpha1.ConditionExposed, metav1.ConditionTrue, v1alpha1.ReasonReady)
}

func TestWhatDeliverersReportIsAConditionWithoutAffectingReady(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: redistest.URL(t)}})
	create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "hooks"}, StringData: map[string]string{"signingSecret": "x"}})
	reports := []struct{ name, reason, says string }{
		{"refused", v1alpha1.ReasonCredentialsRejected, "renew them in the Secret"},
		{"gone", v1alpha1.ReasonConfigurationRejected, "refuses the settings, or is gone"},
		{"private", v1alpha1.ReasonEgressDenied, "--egress-allow-cidr"},
		{"keyless", v1alpha1.ReasonSecretInvalid, "lacks a key"},
		{"suspended", v1alpha1.ReasonCredentialsRejected, ""},
	}
	create(t, property(namespace, "shop", func(p *v1alpha1.Property) {
		for _, r := range reports {
			p.Spec.Platforms = append(p.Spec.Platforms, v1alpha1.Platform{Name: r.name, Type: platforms.TypeWebhook, Suspend: r.name == "suspended",
				Settings: platforms.Settings{Webhook: &platforms.Webhook{URL: "https://hooks.example.com"}}, CredentialsSecretRef: &v1alpha1.SecretReference{Name: "hooks"}})
		}
	}))
	settled(t, namespace, "shop")
	rollOut(t, namespace, "shop")
	waitFor(t, namespace, "shop", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)

	// As the deliverer reports it, with the deliverer's own user, again and again.
	deliverer, err := stream.Dial(string(get(t, &corev1.Secret{}, namespace, "shop-redis-deliverer").Data["url"]), stream.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer deliverer.Close()
	var want []v1alpha1.PlatformStatus
	for _, r := range reports {
		if r.says != "" {
			want = append(want, v1alpha1.PlatformStatus{Name: r.name, Reason: r.reason})
		}
	}
	p := &v1alpha1.Property{}
	eventually(t, func() error {
		for _, r := range reports {
			if err := deliverer.Stream(namespace, "shop").PausePlatform(context.Background(), r.name, r.reason); err != nil {
				return err
			}
		}
		if diff := cmp.Diff(want, get(t, p, namespace, "shop").Status.Platforms); diff != "" {
			return fmt.Errorf("status.platforms (-want +got):\n%s", diff)
		}
		return nil
	})
	text := message(p, v1alpha1.ConditionPlatformsReady)
	for i, r := range reports {
		if field := fmt.Sprintf("spec.platforms[%d] (%s)", i, r.name); strings.Contains(text, field) != (r.says != "") || !strings.Contains(text, r.says) {
			t.Errorf("the condition does not say of %s how to mend it: %s", r.name, text)
		}
	}
	waitFor(t, namespace, "shop", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
}

// What no rule says but the schema: that a value is in a list, or not too small.
func TestTheServerRefusesWhatTheSchemaForbidsAndNamesTheField(t *testing.T) {
	namespace := newNamespace(t)
	tests := map[string]struct {
		edit  func(*v1alpha1.Property)
		field string
	}{
		"a scope that there is not": {func(p *v1alpha1.Property) {
			p.Spec.AccessTokens = []v1alpha1.PropertyAccessToken{{Name: "a", Scope: "all"}}
		}, "spec.accessTokens[0].scope"},
		"a deletion policy that there is not": {func(p *v1alpha1.Property) { p.Spec.DeletionPolicy = "Burn" }, "spec.deletionPolicy"},
		"no events a second":                  {func(p *v1alpha1.Property) { p.Spec.Limits.EventsPerSecond = new(int32(0)) }, "spec.limits.eventsPerSecond"},
		"two keys of one name": {func(p *v1alpha1.Property) {
			p.Spec.APIKeys = []v1alpha1.PropertyAPIKey{{Name: "a"}, {Name: "a"}}
		}, "spec.apiKeys[1]"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := server.client.Create(context.Background(), property(namespace, "rules", test.edit))
			if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), test.field) {
				t.Errorf("got %v, want an error that names %s", err, test.field)
			}
		})
	}
}
