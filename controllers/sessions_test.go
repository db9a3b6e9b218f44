package controllers_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/collector/session"
	"github.com/weir-dev/weir/controllers"
)

// TestSessionKeysStayAsTheyAreUntilSomebodyDeletesThem goes through what becomes of the Secret by which people stay signed in.
func TestSessionKeysStayAsTheyAreUntilSomebodyDeletesThem(t *testing.T) {
	namespace := newNamespace(t)
	startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: redistest.URL(t)}})
	create(t, property(namespace, "shop"))
	settled(t, namespace, "shop")
	made := string(get(t, &corev1.Secret{}, namespace, "shop-sessions").Data["keys"])
	if keys, err := session.ParseKeys(made); err != nil || len(keys) != 1 {
		t.Fatalf("%d keys, %v", len(keys), err)
	}
	// touch has the operator look again, and waits until it has.
	touch := func() {
		t.Helper()
		change(t, &v1alpha1.Property{}, namespace, "shop", func(p *v1alpha1.Property) {
			p.Spec.APIKeys = append(p.Spec.APIKeys, v1alpha1.PropertyAPIKey{Name: fmt.Sprint("another-", len(p.Spec.APIKeys))})
		})
		eventually(t, func() error {
			p := get(t, &v1alpha1.Property{}, namespace, "shop")
			name := "api-key." + p.Spec.APIKeys[len(p.Spec.APIKeys)-1].Name
			if p.Status.ObservedGeneration != p.Generation || len(get(t, &corev1.Secret{}, namespace, "shop-credentials").Data[name]) == 0 {
				return fmt.Errorf("the operator has not seen %s yet", name)
			}
			return nil
		})
	}
	write := func(text string) {
		t.Helper()
		change(t, &corev1.Secret{}, namespace, "shop-sessions", func(s *corev1.Secret) { s.Data = map[string][]byte{"keys": []byte(text)} })
	}
	held := func() string { return string(get(t, &corev1.Secret{}, namespace, "shop-sessions").Data["keys"]) }

	touch()
	if held() != made {
		t.Error("another look makes another key")
	}
	rotated := session.NewKey() + "\n" + made
	write(rotated)
	touch()
	if held() != rotated {
		t.Error("a key that was put in front is taken away")
	}
	write("guessable")
	p := waitFor(t, namespace, "shop", v1alpha1.ConditionCredentialsReady, metav1.ConditionFalse, v1alpha1.ReasonSecretInvalid)
	for _, condition := range p.Status.Conditions {
		if condition.Type != v1alpha1.ConditionCredentialsReady {
			continue
		}
		if !strings.Contains(condition.Message, "Secret shop-sessions: key keys must be keys of 43 digits") || strings.Contains(condition.Message, "guessable") {
			t.Errorf("it says %s", condition.Message)
		}
	}
	if err := server.client.Delete(t.Context(), get(t, &corev1.Secret{}, namespace, "shop-sessions")); err != nil {
		t.Fatal(err)
	}
	waitFor(t, namespace, "shop", v1alpha1.ConditionCredentialsReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	if keys, err := session.ParseKeys(held()); err != nil || len(keys) != 1 || held() == made {
		t.Errorf("%d keys, %v; want one that is new", len(keys), err)
	}
}
