package controllers_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/collector/stream"
	"github.com/weir-dev/weir/controllers"
)

// secretOf makes a Secret, or replaces what is in it.
func secretOf(t testing.TB, namespace, name string, data map[string]string) {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, StringData: data}
	if err := server.client.Create(t.Context(), secret); err == nil {
		return
	}
	change(t, &corev1.Secret{}, namespace, name, func(s *corev1.Secret) { s.Data, s.StringData = nil, data })
}

// roleSecrets says whether each role's Secret has what its pods shall trust and show.
func roleSecrets(t testing.TB, namespace, property string, want stream.TLS) error {
	t.Helper()
	for _, role := range []string{"collector", "deliverer", "query"} {
		data := get(t, &corev1.Secret{}, namespace, property+"-redis-"+role).Data
		if got := (stream.TLS{CA: string(data["ca.crt"]), Certificate: string(data["tls.crt"]), Key: string(data["tls.key"])}); got != want {
			return fmt.Errorf("the %s has other certificates", role)
		}
	}
	return nil
}

func TestARedisWithCertificatesOfItsOwn(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	ours, others := redistest.NewAuthority(t), redistest.NewAuthority(t)
	certificate, key := ours.Sign(t, nil)
	own, ownKey := ours.Sign(t, nil)
	redisServer := redistest.StartTLS(t, certificate, key, ours.PEM)
	startOperator(t, operatorOptions{namespaces: []string{namespace}})
	good := map[string]string{"ca.crt": ours.PEM, "tls.crt": own, "tls.key": ownKey, "url": redisServer.Address}
	for name, c := range map[string]struct {
		change map[string]string
		remove []string
		none   bool
		reason string
		says   string
	}{
		"a-good":        {reason: v1alpha1.ReasonReady},
		"no-secret":     {none: true, reason: v1alpha1.ReasonSecretMissing, says: "spec.redis.caSecretRef: there is no Secret no-secret-tls"},
		"no-ca":         {remove: []string{"ca.crt"}, reason: v1alpha1.ReasonSecretMissing, says: "spec.redis.caSecretRef: Secret no-ca-tls has no key ca.crt"},
		"empty-ca":      {change: map[string]string{"ca.crt": ""}, reason: v1alpha1.ReasonSecretInvalid, says: "spec.redis.caSecretRef: key ca.crt"},
		"no-pem":        {change: map[string]string{"ca.crt": "s3cret"}, reason: v1alpha1.ReasonSecretInvalid, says: "spec.redis.caSecretRef: the CA certificates cannot be used"},
		"no-key":        {remove: []string{"tls.key"}, reason: v1alpha1.ReasonSecretMissing, says: "spec.redis.clientCertificateSecretRef: Secret no-key-tls has no key tls.key"},
		"other-key":     {change: map[string]string{"tls.key": key}, reason: v1alpha1.ReasonSecretInvalid, says: "spec.redis.clientCertificateSecretRef: the client certificate cannot be used"},
		"no-tls":        {change: map[string]string{"url": "redis://127.0.0.1:1"}, reason: v1alpha1.ReasonSecretInvalid, says: "spec.redis.caSecretRef: the CA certificates cannot be used: the URL must begin with rediss://"},
		"another-ca":    {change: map[string]string{"ca.crt": others.PEM}, reason: v1alpha1.ReasonRedisTLSFailed, says: "authority is not known"},
		"another-users": {change: signedBy(t, others), reason: v1alpha1.ReasonRedisTLSFailed, says: "client certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := maps.Clone(good)
			maps.Copy(data, c.change)
			for _, key := range c.remove {
				delete(data, key)
			}
			secretOf(t, namespace, name+"-url", map[string]string{"url": data["url"]})
			delete(data, "url")
			if !c.none {
				secretOf(t, namespace, name+"-tls", data)
			}
			create(t, property(namespace, name, ownRedis(name+"-url"), func(p *v1alpha1.Property) {
				p.Spec.Redis.CASecretRef = &v1alpha1.CASecretReference{Name: name + "-tls"}
				p.Spec.Redis.ClientCertificateSecretRef = &v1alpha1.SecretReference{Name: name + "-tls"}
			}))
			if c.reason != v1alpha1.ReasonReady {
				p := waitFor(t, namespace, name, v1alpha1.ConditionRedisReady, metav1.ConditionFalse, c.reason)
				if got := message(p, v1alpha1.ConditionRedisReady); !strings.Contains(got, c.says) || strings.Contains(got, "s3cret") {
					t.Errorf("it says %q, want %q", got, c.says)
				}
				if name == "no-tls" {
					secretOf(t, namespace, name+"-url", map[string]string{"url": redisServer.Address})
				}
				secretOf(t, namespace, name+"-tls", map[string]string{"ca.crt": ours.PEM, "tls.crt": own, "tls.key": ownKey})
			}
			settled(t, namespace, name)
			eventually(t, func() error {
				return roleSecrets(t, namespace, name, stream.TLS{CA: ours.PEM, Certificate: own, Key: ownKey})
			})
		})
	}
}

func signedBy(t testing.TB, authority *redistest.Authority) map[string]string {
	t.Helper()
	certificate, key := authority.Sign(t, nil)
	return map[string]string{"tls.crt": certificate, "tls.key": key}
}

// TestCertificatesRotateWithoutNewPods exchanges what is trusted and shown, and looks whether pods get it and stay.
func TestCertificatesRotateWithoutNewPods(t *testing.T) {
	t.Parallel()
	before, after := redistest.NewAuthority(t), redistest.NewAuthority(t)
	certificate, key := before.Sign(t, nil)
	redisServer := redistest.StartTLS(t, certificate, key, "")
	for name, c := range map[string]struct {
		// start makes an operator and a Property, whose Redis is its own or the operator's, and returns what gives another authority.
		start func(t *testing.T, namespace string) (give func(ca string))
	}{
		"the Property's": {func(t *testing.T, namespace string) func(string) {
			startOperator(t, operatorOptions{namespaces: []string{namespace}})
			secretOf(t, namespace, "mine", map[string]string{"url": redisServer.Address, "root.pem": before.PEM})
			create(t, property(namespace, "shop", ownRedis("mine"), func(p *v1alpha1.Property) {
				p.Spec.Redis.CASecretRef = &v1alpha1.CASecretReference{Name: "mine", Key: "root.pem"}
			}))
			return func(ca string) {
				secretOf(t, namespace, "mine", map[string]string{"url": redisServer.Address, "root.pem": ca})
			}
		}},
		"the operator's": {func(t *testing.T, namespace string) func(string) {
			file := filepath.Join(t.TempDir(), "ca.crt")
			give := func(ca string) {
				if err := os.WriteFile(file, []byte(ca), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			give(before.PEM)
			startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{
				RedisURL: redisServer.Address, RedisTLS: stream.TLSFiles{CA: file},
			}})
			create(t, property(namespace, "shop"))
			return give
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := newNamespace(t)
			give := c.start(t, namespace)
			settled(t, namespace, "shop")
			if err := roleSecrets(t, namespace, "shop", stream.TLS{CA: before.PEM}); err != nil {
				t.Fatal(err)
			}
			generation := get(t, &appsv1.Deployment{}, namespace, "shop-query").Generation
			give(before.PEM + after.PEM)
			eventually(t, func() error { return roleSecrets(t, namespace, "shop", stream.TLS{CA: before.PEM + after.PEM}) })
			settled(t, namespace, "shop")
			give("none")
			waitFor(t, namespace, "shop", v1alpha1.ConditionRedisReady, metav1.ConditionFalse, v1alpha1.ReasonSecretInvalid)
			if err := roleSecrets(t, namespace, "shop", stream.TLS{CA: before.PEM + after.PEM}); err != nil {
				t.Errorf("what cannot be used has reached the pods: %v", err)
			}
			give(before.PEM)
			settled(t, namespace, "shop")
			eventually(t, func() error { return roleSecrets(t, namespace, "shop", stream.TLS{CA: before.PEM}) })
			if now := get(t, &appsv1.Deployment{}, namespace, "shop-query").Generation; now != generation {
				t.Error("the pods are replaced")
			}
		})
	}
}
