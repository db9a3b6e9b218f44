package controllers_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/controllers"
)

func hashOf(secret string) string {
	hash := auth.HashOf(secret)
	return hex.EncodeToString(hash[:])
}

// accessToken is an object for a Property, with the hash of a token of its own where an edit gives it none.
func accessToken(namespace, property, name string, edit ...func(*v1alpha1.AccessToken)) *v1alpha1.AccessToken {
	token := &v1alpha1.AccessToken{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	token.Spec.PropertyRef.Name, token.Spec.SHA256 = property, hashOf(auth.NewAccessToken())
	for _, e := range edit {
		e(token)
	}
	return token
}

func apiKey(namespace, property, name, secret string) *v1alpha1.APIKey {
	key := &v1alpha1.APIKey{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	key.Spec.PropertyRef.Name, key.Spec.SHA256 = property, hashOf(secret)
	return key
}

// readyOf is the condition of a key or token.
func readyOf(t testing.TB, object client.Object, namespace, name string) *metav1.Condition {
	t.Helper()
	get(t, object, namespace, name)
	switch object := object.(type) {
	case *v1alpha1.AccessToken:
		return meta.FindStatusCondition(object.Status.Conditions, v1alpha1.ConditionReady)
	case *v1alpha1.APIKey:
		return meta.FindStatusCondition(object.Status.Conditions, v1alpha1.ConditionReady)
	}
	t.Fatalf("%T has no conditions", object)
	return nil
}

// becomes waits until an object's condition has a reason.
func becomes(t testing.TB, object client.Object, namespace, name, reason string) {
	t.Helper()
	eventually(t, func() error {
		ready := readyOf(t, object, namespace, name)
		if ready == nil || ready.Reason != reason || (ready.Status == metav1.ConditionTrue) != (reason == v1alpha1.ReasonReady) {
			return fmt.Errorf("%s is %+v, want %s", name, ready, reason)
		}
		return nil
	})
}

// toldPods are the credentials in a Property's Secret of hashes.
func toldPods(t testing.TB, namespace, secret string) map[string]auth.Credential {
	t.Helper()
	found := map[string]auth.Credential{}
	for _, text := range get(t, &corev1.Secret{}, namespace, secret).Data {
		var list []auth.Credential
		if err := json.Unmarshal(text, &list); err != nil {
			t.Fatal(err)
		}
		for _, c := range list {
			found[c.Name] = c
		}
	}
	return found
}

// podsForget waits until a credential is not in a Secret of hashes.
func podsForget(t testing.TB, namespace, secret, name string) {
	t.Helper()
	eventuallyWithin(t, 10*time.Second, func() error {
		if _, there := toldPods(t, namespace, secret)[name]; there {
			return fmt.Errorf("pods still know %s", name)
		}
		return nil
	})
}

func remove(t testing.TB, object client.Object) {
	t.Helper()
	if err := server.client.Delete(context.Background(), object); err != nil {
		t.Fatal(err)
	}
}

func TestATokenThatSomebodyMakesIsToldToPodsUntilItIsDeleted(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	running := startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: redistest.URL(t)}})
	create(t, property(namespace, "tokens"))
	p := settled(t, namespace, "tokens")
	secret, key := auth.NewAccessToken(), auth.NewAPIKey()
	later := metav1.NewTime(time.Now().Add(time.Hour).Truncate(time.Second))
	create(t, accessToken(namespace, "tokens", "bi", func(a *v1alpha1.AccessToken) {
		a.Spec.SHA256, a.Spec.Scope, a.Spec.ExpirationTime, a.Spec.CreatedBy = hashOf(secret), "write", &later, "ada"
	}))
	create(t, apiKey(namespace, "tokens", "server", key))
	becomes(t, &v1alpha1.AccessToken{}, namespace, "bi", v1alpha1.ReasonReady)
	becomes(t, &v1alpha1.APIKey{}, namespace, "server", v1alpha1.ReasonReady)

	tokens, keys := toldPods(t, namespace, "tokens-access-tokens"), toldPods(t, namespace, "tokens-api-keys")
	token := tokens["accesstoken/bi"]
	if token.Hash != auth.HashOf(secret) || token.Scope != auth.ScopeWrite || token.Prefix != "wt_" || !token.ExpirationTime.Equal(later.Time) {
		t.Errorf("pods are told %+v", token)
	}
	if k := keys["apikey/server"]; k.Hash != auth.HashOf(key) || k.Scope != "" || k.Prefix != "wk_" || k.ExpirationTime != nil {
		t.Errorf("pods are told %+v", k)
	}
	if tokens["default"].Scope == "" || len(keys) != 2 {
		t.Errorf("the spec's own are gone: %v, %v", tokens, keys)
	}
	if settings := get(t, &corev1.ConfigMap{}, namespace, "tokens-config").Data["settings.json"]; strings.Contains(settings, "server") {
		t.Errorf("people are told of it as one of the Property's: %s", settings)
	}
	want := metav1.OwnerReference{APIVersion: "weir.dev/v1alpha1", Kind: "Property", Name: "tokens", UID: p.UID}
	for _, object := range []client.Object{get(t, &v1alpha1.AccessToken{}, namespace, "bi"), get(t, &v1alpha1.APIKey{}, namespace, "server")} {
		if owners := object.GetOwnerReferences(); len(owners) != 1 || owners[0] != want {
			t.Errorf("%s goes with %v, want %v", object.GetName(), owners, want)
		}
	}

	quiet(t, p)
	writes := running.writes.Load()
	running.stop()
	again := startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: redistest.URL(t)}})
	change(t, &v1alpha1.Property{}, namespace, "tokens", func(p *v1alpha1.Property) { p.Spec.TimeZone = "Europe/Rome" })
	quiet(t, settled(t, namespace, "tokens"))
	for _, call := range again.since(0) {
		if strings.Contains(call, "AccessToken") || strings.Contains(call, "APIKey") {
			t.Errorf("another operator has written to what is as it shall be: %s", call)
		}
	}
	for _, call := range running.since(0)[:writes] {
		if strings.Contains(call, "bi") && !slices.Contains([]string{"patch *v1alpha1.AccessToken bi", "patch status of *v1alpha1.AccessToken bi"}, call) {
			t.Errorf("the operator has done %s", call)
		}
	}

	remove(t, accessToken(namespace, "tokens", "bi"))
	podsForget(t, namespace, "tokens-access-tokens", "accesstoken/bi")
	held := get(t, &v1alpha1.APIKey{}, namespace, "server")
	held.Finalizers = []string{"example.com/hold"}
	if err := server.client.Update(context.Background(), held); err != nil {
		t.Fatal(err)
	}
	remove(t, held)
	podsForget(t, namespace, "tokens-api-keys", "apikey/server") // although somebody holds the object
	change(t, &v1alpha1.APIKey{}, namespace, "server", func(k *v1alpha1.APIKey) { k.Finalizers = nil })
}

func TestWhatIsNotInForceIsRefusedAndSaysWhy(t *testing.T) {
	t.Parallel()
	namespace, elsewhere := newNamespace(t), newNamespace(t)
	startOperator(t, operatorOptions{namespaces: []string{namespace, elsewhere}, Options: controllers.Options{RedisURL: redistest.URL(t)}})
	create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "brought"}, StringData: map[string]string{"key": "a-key-of-the-owners"}})
	create(t, property(namespace, "refusing", func(p *v1alpha1.Property) {
		p.Spec.APIKeys = []v1alpha1.PropertyAPIKey{
			{Name: "default"}, {Name: "own", SecretKeyRef: &v1alpha1.SecretKeyReference{Name: "brought", Key: "key"}},
			{Name: "site", Type: v1alpha1.APIKeyPublishable, AllowedOrigins: []v1alpha1.Origin{"https://shop.example"}},
		}
	}))
	create(t, property(elsewhere, "theirs"))
	settled(t, namespace, "refusing")
	settled(t, elsewhere, "theirs")
	made := get(t, &corev1.Secret{}, namespace, "refusing-credentials").Data
	copied, original := auth.NewAPIKey(), apiKey(namespace, "refusing", "z-original", "")
	original.Spec.SHA256 = hashOf(copied)
	create(t, original)
	becomes(t, &v1alpha1.APIKey{}, namespace, "z-original", v1alpha1.ReasonReady)
	past := metav1.NewTime(time.Now().Add(-time.Minute))
	soon := metav1.NewTime(time.Now().Add(3 * time.Second))
	for sentence, row := range map[string]struct {
		object client.Object
		reason string
		says   string
	}{
		"a copy of another object's, whatever its name": {apiKey(namespace, "refusing", "a-copy", copied), v1alpha1.ReasonDuplicate, "APIKey z-original"},
		"one of the spec's own":                         {apiKey(namespace, "refusing", "of-the-spec", string(made["api-key.default"])), v1alpha1.ReasonDuplicate, "API key default of the Property's spec"},
		"one that the owner has brought":                {apiKey(namespace, "refusing", "brought", "a-key-of-the-owners"), v1alpha1.ReasonDuplicate, "API key own"},
		"a publishable key, which would be no secret":   {apiKey(namespace, "refusing", "publishable", string(made["publishable-key.site"])), v1alpha1.ReasonDuplicate, "API key site"},
		"a token of the spec's": {accessToken(namespace, "refusing", "token", func(a *v1alpha1.AccessToken) {
			a.Spec.SHA256 = hashOf(string(made["access-token.default"]))
		}), v1alpha1.ReasonDuplicate, "access token default"},
		"one that has expired":                    {accessToken(namespace, "refusing", "expired", func(a *v1alpha1.AccessToken) { a.Spec.ExpirationTime = &past }), v1alpha1.ReasonExpired, "expirationTime"},
		"one that expires, when it does":          {accessToken(namespace, "refusing", "expiring", func(a *v1alpha1.AccessToken) { a.Spec.ExpirationTime = &soon }), v1alpha1.ReasonExpired, "expirationTime"},
		"one for a Property that there is not":    {accessToken(namespace, "nobodys", "orphan"), v1alpha1.ReasonPropertyMissing, "no Property nobodys"},
		"one for a Property of another namespace": {accessToken(namespace, "theirs", "foreign"), v1alpha1.ReasonPropertyMissing, "no Property theirs in this namespace"},
	} {
		t.Run(sentence, func(t *testing.T) {
			create(t, row.object)
			name := row.object.GetName()
			becomes(t, row.object, namespace, name, row.reason)
			if ready := readyOf(t, row.object, namespace, name); !strings.Contains(ready.Message, row.says) {
				t.Errorf("it says %q, not %q", ready.Message, row.says)
			}
			for _, secret := range []string{"refusing-access-tokens", "refusing-api-keys"} {
				podsForget(t, namespace, secret, "accesstoken/"+name)
				podsForget(t, namespace, secret, "apikey/"+name)
			}
		})
	}
	if told := toldPods(t, elsewhere, "theirs-access-tokens"); len(told) != 1 {
		t.Errorf("the pods of the Property elsewhere are told of %v", told)
	}
	p := waitFor(t, namespace, "refusing", v1alpha1.ConditionCredentialsReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	if found := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionWorkloadsAvailable); found.Reason == v1alpha1.ReasonConfigurationInvalid {
		t.Errorf("they have made the Property's configuration invalid: %s", found.Message)
	}

	// What was revoked does not come back by a copy, nor by the Property's spec letting go of it.
	remove(t, original)
	podsForget(t, namespace, "refusing-api-keys", "apikey/z-original")
	change(t, &v1alpha1.Property{}, namespace, "refusing", func(p *v1alpha1.Property) { p.Spec.APIKeys = p.Spec.APIKeys[:1] })
	podsForget(t, namespace, "refusing-api-keys", "own")
	create(t, apiKey(namespace, "refusing", "next", auth.NewAPIKey()))
	becomes(t, &v1alpha1.APIKey{}, namespace, "next", v1alpha1.ReasonReady)
	for _, name := range []string{"a-copy", "brought", "publishable"} {
		becomes(t, &v1alpha1.APIKey{}, namespace, name, v1alpha1.ReasonDuplicate)
		podsForget(t, namespace, "refusing-api-keys", "apikey/"+name)
	}
}
