package controllers_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/collector/stream"
	"github.com/weir-dev/weir/controllers"
)

func TestBrokenInputIsAConditionThatHealsByItself(t *testing.T) {
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
			p.Spec.APIKeys = []v1alpha1.APIKey{{Name: "default"}, {Name: "legacy", SecretKeyRef: &v1alpha1.SecretKeyReference{Name: name, Key: "key"}}}
		}
	}
	webhook := func(p *v1alpha1.Property) {
		p.Spec.Platforms = []v1alpha1.Platform{{Name: "crm", Type: v1alpha1.PlatformWebhook,
			Webhook: &v1alpha1.WebhookPlatform{URL: "https://crm.example.com"}, CredentialsSecretRef: &v1alpha1.SecretReference{Name: "crm"}}}
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
		"a platform's Secret that is not there": {"a-platform", webhook, v1alpha1.ConditionPlatformsReady, v1alpha1.ReasonSecretMissing,
			[]string{"spec.platforms[0] (crm)", "signingSecret"}, secret("crm", "signingSecret", "whsec_x"), v1alpha1.ReasonReady},
		"a Redis URL that is not there": {"a-redis", ownRedis("nowhere"), v1alpha1.ConditionRedisReady, v1alpha1.ReasonSecretMissing,
			[]string{"spec.redis.urlSecretKeyRef", "nowhere"}, secret("nowhere", "url", redistest.URL(t)), v1alpha1.ReasonReady},
		"a currency that there is not": {"a-currency", func(p *v1alpha1.Property) { p.Spec.Currency = "XQX" }, v1alpha1.ConditionWorkloadsAvailable, v1alpha1.ReasonConfigurationInvalid,
			[]string{"spec.currency"}, edit("a-currency", func(s *v1alpha1.PropertySpec) { s.Currency = "USD" }), v1alpha1.ReasonProgressing},
		"a host that the operator does not allow": {"a-host", ingress(v1alpha1.Exposure{CollectHost: "collect.elsewhere.net"}), v1alpha1.ConditionExposed, v1alpha1.ReasonHostNotAllowed,
			[]string{"collect.elsewhere.net", "--allow-host"}, edit("a-host", func(s *v1alpha1.PropertySpec) { s.Exposure.CollectHost = "mended.example.com" }), v1alpha1.ReasonReady},
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
	if text := message(p, v1alpha1.ConditionExposed); !strings.Contains(text, "metadata.name") {
		t.Errorf("the condition does not say that the id is taken: %s", text)
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

func TestAPlatformThatRefusesIsAConditionWithoutAffectingReady(t *testing.T) {
	namespace := newNamespace(t)
	address := redistest.URL(t)
	startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: address}})
	create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "meta"}, StringData: map[string]string{"accessToken": "x"}})
	create(t, property(namespace, "shop", func(p *v1alpha1.Property) {
		p.Spec.Platforms = []v1alpha1.Platform{{Name: "meta", Type: v1alpha1.PlatformMeta,
			Meta: &v1alpha1.MetaPlatform{PixelID: "1"}, CredentialsSecretRef: &v1alpha1.SecretReference{Name: "meta"}}}
	}))
	settled(t, namespace, "shop")
	rollOut(t, namespace, "shop")
	waitFor(t, namespace, "shop", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)

	// As the deliverer reports it, with the deliverer's own user.
	deliverer, err := stream.Dial(string(get(t, &corev1.Secret{}, namespace, "shop-redis-deliverer").Data["url"]))
	if err != nil {
		t.Fatal(err)
	}
	defer deliverer.Close()
	report := func(reason string) {
		if err := deliverer.Stream(namespace, "shop").PausePlatform(context.Background(), "meta", reason); err != nil {
			t.Fatal(err)
		}
	}
	report(v1alpha1.ReasonCredentialsRejected)
	p := waitFor(t, namespace, "shop", v1alpha1.ConditionPlatformsReady, metav1.ConditionFalse, v1alpha1.ReasonCredentialsRejected)
	if text := message(p, v1alpha1.ConditionPlatformsReady); !strings.Contains(text, "spec.platforms[0] (meta)") || !strings.Contains(text, "renew") {
		t.Errorf("the condition does not say which and how to mend it: %s", text)
	}
	if len(p.Status.Platforms) != 1 || p.Status.Platforms[0].Reason != v1alpha1.ReasonCredentialsRejected {
		t.Errorf("status.platforms is %v", p.Status.Platforms)
	}
	waitFor(t, namespace, "shop", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	report("")
	waitFor(t, namespace, "shop", v1alpha1.ConditionPlatformsReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
}

func TestTheServerRefusesWhatTheRulesForbidAndNamesTheField(t *testing.T) {
	namespace := newNamespace(t)
	webhook := v1alpha1.Platform{Name: "crm", Type: v1alpha1.PlatformWebhook,
		Webhook: &v1alpha1.WebhookPlatform{URL: "https://crm.example.com"}, CredentialsSecretRef: &v1alpha1.SecretReference{Name: "crm"}}
	tests := map[string]struct {
		edit  func(*v1alpha1.Property)
		field string
	}{
		"a name that begins with a digit": {func(p *v1alpha1.Property) { p.Name = "1shop" }, "metadata.name"},
		"a currency in small letters":     {func(p *v1alpha1.Property) { p.Spec.Currency = "eur" }, "spec.currency"},
		"a time zone that there is not":   {func(p *v1alpha1.Property) { p.Spec.TimeZone = "Mars/Olympus" }, "spec.timeZone"},
		"a window beyond the retention":   {func(p *v1alpha1.Property) { p.Spec.Retention.Days = 1 }, "spec.deduplication.windowHours"},
		"a key's name with capitals":      {func(p *v1alpha1.Property) { p.Spec.APIKeys = []v1alpha1.APIKey{{Name: "Server"}} }, "spec.apiKeys[0].name"},
		"an alias for nothing":            {func(p *v1alpha1.Property) { p.Spec.EventAliases = map[string]v1alpha1.EventName{" x": "y"} }, "spec.eventAliases"},
		"a platform without its member": {func(p *v1alpha1.Property) {
			w := webhook
			w.Webhook = nil
			p.Spec.Platforms = append(p.Spec.Platforms, w)
		}, "spec.platforms[0].webhook"},
		"a platform with another's member": {func(p *v1alpha1.Property) {
			w := webhook
			w.Meta = &v1alpha1.MetaPlatform{PixelID: "1"}
			p.Spec.Platforms = append(p.Spec.Platforms, w)
		}, "spec.platforms[0].meta"},
		"a platform without its credentials": {func(p *v1alpha1.Property) {
			w := webhook
			w.CredentialsSecretRef = nil
			p.Spec.Platforms = append(p.Spec.Platforms, w)
		}, "spec.platforms[0].credentialsSecretRef"},
		"a webhook that is no URL": {func(p *v1alpha1.Property) {
			w := webhook
			w.Webhook = &v1alpha1.WebhookPlatform{URL: "crm"}
			p.Spec.Platforms = append(p.Spec.Platforms, w)
		}, "spec.platforms[0].webhook.url"},
		"an Ingress without a host": {func(p *v1alpha1.Property) { p.Spec.Exposure.Type = v1alpha1.ExposureIngress }, "spec.exposure.collectHost"},
		"a host without exposure": {func(p *v1alpha1.Property) {
			p.Spec.Exposure = v1alpha1.Exposure{Type: v1alpha1.ExposureNone, CollectHost: "a.example.com"}
		}, "spec.exposure.collectHost"},
		"a Gateway without a reference": {func(p *v1alpha1.Property) {
			p.Spec.Exposure = v1alpha1.Exposure{Type: v1alpha1.ExposureGateway, CollectHost: "a.example.com"}
		}, "spec.exposure.gateway"},
		"replicas beside an autoscaler": {func(p *v1alpha1.Property) {
			p.Spec.Collector.Replicas, p.Spec.Collector.Autoscaling = new(int32(1)), &v1alpha1.Autoscaling{MinReplicas: 1, MaxReplicas: 2}
		}, "spec.collector.replicas"},
		"fewer pods at most than at least": {func(p *v1alpha1.Property) {
			p.Spec.Collector.Autoscaling = &v1alpha1.Autoscaling{MinReplicas: 3, MaxReplicas: 2}
		}, "spec.collector.autoscaling.maxReplicas"},
		"a scope that there is not":           {func(p *v1alpha1.Property) { p.Spec.AccessTokens = []v1alpha1.AccessToken{{Name: "a", Scope: "all"}} }, "spec.accessTokens[0].scope"},
		"a deletion policy that there is not": {func(p *v1alpha1.Property) { p.Spec.DeletionPolicy = "Burn" }, "spec.deletionPolicy"},
		"more events a second than can be":    {func(p *v1alpha1.Property) { p.Spec.Limits.EventsPerSecond = new(int32(0)) }, "spec.limits.eventsPerSecond"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := server.client.Create(context.Background(), property(namespace, "rules", test.edit))
			if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), test.field) {
				t.Errorf("got %v, want an error that names %s", err, test.field)
			}
		})
	}

	create(t, property(namespace, "rules", func(p *v1alpha1.Property) { p.Spec.Platforms = []v1alpha1.Platform{webhook} }))
	changes := map[string]struct {
		edit  func(*v1alpha1.Property)
		field string
	}{
		"another type for a platform": {func(p *v1alpha1.Property) {
			p.Spec.Platforms = []v1alpha1.Platform{{Name: "crm", Type: v1alpha1.PlatformLog}}
		}, "spec.platforms[0].type"},
		"another Redis": {ownRedis("other"), "spec.redis"},
	}
	for name, test := range changes {
		t.Run(name, func(t *testing.T) {
			p := get(t, &v1alpha1.Property{}, namespace, "rules")
			test.edit(p)
			if err := server.client.Update(context.Background(), p); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), test.field) {
				t.Errorf("got %v, want an error that names %s", err, test.field)
			}
		})
	}
}
