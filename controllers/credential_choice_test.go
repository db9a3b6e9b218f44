package controllers_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/controllers"
)

func TestWhichTokensAreInForce(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	made := func(name string, second int, edit ...func(*v1alpha1.AccessToken)) v1alpha1.AccessToken {
		token := accessToken("shops", "shop", name, edit...)
		token.UID, token.CreationTimestamp = types.UID(name), metav1.NewTime(now.Add(time.Duration(second-100000)*time.Second))
		return *token
	}
	of := func(secret string) func(*v1alpha1.AccessToken) {
		return func(a *v1alpha1.AccessToken) { a.Spec.SHA256 = hashOf(secret) }
	}
	expiring := func(after time.Duration) func(*v1alpha1.AccessToken) {
		return func(a *v1alpha1.AccessToken) { a.Spec.ExpirationTime = new(metav1.NewTime(now.Add(after))) }
	}
	was := func(status metav1.ConditionStatus, reason string) func(*v1alpha1.AccessToken) {
		return func(a *v1alpha1.AccessToken) {
			a.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: status, Reason: reason}}
		}
	}
	owned := func(version, kind string, uid types.UID) func(*v1alpha1.AccessToken) {
		return func(a *v1alpha1.AccessToken) {
			a.OwnerReferences = append(a.OwnerReferences, metav1.OwnerReference{APIVersion: version, Kind: kind, Name: "shop", UID: uid})
		}
	}
	many := func(n int, edit ...func(*v1alpha1.AccessToken)) []v1alpha1.AccessToken {
		list := make([]v1alpha1.AccessToken, n)
		for i := range list {
			list[i] = made(fmt.Sprintf("many-%03d", i), 10+i, edit...)
		}
		return list
	}
	const full = v1alpha1.MaxCredentials
	for sentence, c := range map[string]struct {
		tokens []v1alpha1.AccessToken
		keys   []v1alpha1.APIKey
		// want is why those of interest are refused.
		want map[string]string
	}{
		"one is": {[]v1alpha1.AccessToken{made("a", 1)}, nil, map[string]string{"a": ""}},
		"of two with a hash the older one is": {
			[]v1alpha1.AccessToken{made("a", 2, of("x")), made("b", 1, of("x"))}, nil, map[string]string{"a": "Duplicate", "b": ""},
		},
		"of two of a second the first by name is": {
			[]v1alpha1.AccessToken{made("b", 1, of("x")), made("a", 1, of("x"))}, nil, map[string]string{"a": "", "b": "Duplicate"},
		},
		"one that was is not displaced by one that seems older": {
			[]v1alpha1.AccessToken{made("b", 2, of("x"), was("True", "Ready")), made("a", 1, of("x"))}, nil, map[string]string{"a": "Duplicate", "b": ""},
		},
		"a duplicate never is again": {
			[]v1alpha1.AccessToken{made("a", 1, was("False", "Duplicate"))}, nil, map[string]string{"a": "Duplicate"},
		},
		"a duplicate never is again, although that is not written down yet": {
			[]v1alpha1.AccessToken{made("remembered", 1)}, nil, map[string]string{"remembered": "Duplicate"},
		},
		"a duplicate of a Property that is gone stays one": {
			[]v1alpha1.AccessToken{made("a", 1, was("False", "Duplicate"), owned("weir.dev/v1alpha1", "Property", "gone"))}, nil, map[string]string{"a": "Duplicate"},
		},
		"one with a hash of the spec's is not": {[]v1alpha1.AccessToken{made("a", 1, of("the spec's"))}, nil, map[string]string{"a": "Duplicate"}},
		"one with the hash of an expired one is not": {
			[]v1alpha1.AccessToken{made("a", 1, of("x"), expiring(-time.Second)), made("b", 2, of("x"))}, nil, map[string]string{"a": "Expired", "b": "Duplicate"},
		},
		"one with the hash of a copy is not either": {
			[]v1alpha1.AccessToken{made("a", 1, of("x")), made("b", 2, of("x")), made("c", 3, of("x"))}, nil, map[string]string{"a": "", "b": "Duplicate", "c": "Duplicate"},
		},
		"a key with the hash of a token is not": {
			[]v1alpha1.AccessToken{made("a", 1, of("x"))}, []v1alpha1.APIKey{*apiKey("shops", "shop", "k", "x")}, map[string]string{"a": "Duplicate", "k": ""},
		},
		"until the second in which it expires it is": {
			[]v1alpha1.AccessToken{made("a", 1, expiring(time.Second)), made("b", 2, expiring(0))}, nil, map[string]string{"a": "", "b": "Expired"},
		},
		"of 257 the youngest is not":           {append(many(full), made("young", 9999)), nil, map[string]string{"young": "LimitReached", "many-255": ""}},
		"those that have expired take no room": {append(many(full, expiring(-1)), made("young", 9999)), nil, map[string]string{"young": "", "many-000": "Expired"}},
		"copies take no room":                  {append(many(full, of("x")), made("young", 9999)), nil, map[string]string{"young": "", "many-000": "", "many-255": "Duplicate"}},
		"tokens take no room of keys": {
			many(full), []v1alpha1.APIKey{*apiKey("shops", "shop", "k", "another")}, map[string]string{"k": "", "many-255": ""},
		},
		"those in force keep their places": {
			append(many(full, was("True", "Ready")), made("older", 1)), nil, map[string]string{"older": "LimitReached", "many-000": "", "many-255": ""},
		},
		"the hash that is none is not": {
			[]v1alpha1.AccessToken{made("a", 1, func(a *v1alpha1.AccessToken) { a.Spec.SHA256 = fmt.Sprintf("%064d", 0) })}, nil, map[string]string{"a": "Pending"},
		},
		"what is no hash is not": {
			[]v1alpha1.AccessToken{made("a", 1, func(a *v1alpha1.AccessToken) { a.Spec.SHA256 = "x" })}, nil, map[string]string{"a": "Pending"},
		},
		"one of the Property's is": {[]v1alpha1.AccessToken{made("a", 1, owned("weir.dev/v1alpha1", "Property", "ours"))}, nil, map[string]string{"a": ""}},
		"one of a Property of the name that is gone is not": {
			[]v1alpha1.AccessToken{made("a", 1, owned("weir.dev/v1alpha1", "Property", "gone"), was("True", "Ready"))}, nil, map[string]string{"a": "PropertyMissing"},
		},
		"one of that version's either": {[]v1alpha1.AccessToken{made("a", 1, owned("weir.dev/v9", "Property", "gone"))}, nil, map[string]string{"a": "PropertyMissing"}},
		"one that somebody else owns as well is": {
			[]v1alpha1.AccessToken{made("a", 1, owned("example.com/v1", "Property", "other"), owned("v1", "ConfigMap", "other"))}, nil, map[string]string{"a": ""},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			all := controllers.Choose("ours", c.tokens, c.keys, map[auth.Hash]string{auth.HashOf("the spec's"): "the API key"}, "remembered", now)
			got := maps.Clone(all)
			maps.DeleteFunc(got, func(name, _ string) bool { _, asked := c.want[name]; return !asked })
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("refused for (-want +got):\n%s", diff)
			}
		})
	}
}
