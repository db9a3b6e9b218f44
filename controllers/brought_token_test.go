package controllers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/controllers"
)

// TestATokenThatItsOwnerBrings follows a token through what External Secrets does to its Secret: it is made late, replaced and gone.
func TestATokenThatItsOwnerBrings(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: redistest.URL(t)}})
	create(t, property(namespace, "shop", func(p *v1alpha1.Property) {
		p.Spec.AccessTokens = []v1alpha1.PropertyAccessToken{
			{Name: "made"}, {Name: "bi", Scope: "write", SecretKeyRef: &v1alpha1.SecretKeyReference{Name: "vault", Key: "token"}},
		}
	}))
	waitFor(t, namespace, "shop", v1alpha1.ConditionCredentialsReady, metav1.ConditionFalse, v1alpha1.ReasonSecretMissing)
	const first, second = "first-token/from+vault", "second-token-from-vault"
	inForce := func(want ...string) {
		t.Helper()
		eventually(t, func() error {
			var told []auth.Credential
			if err := json.Unmarshal(get(t, &corev1.Secret{}, namespace, "shop-access-tokens").Data["access-tokens.json"], &told); err != nil {
				return err
			}
			var got []string
			for _, c := range told {
				for _, token := range []string{first, second} {
					if c.Hash == auth.HashOf(token) && c.Name == "bi" && c.Scope == auth.ScopeWrite {
						got = append(got, token)
					}
				}
			}
			if !slices.Equal(got, want) {
				return fmt.Errorf("of the brought tokens the pods know %v, want %v", got, want)
			}
			return nil
		})
	}
	vault := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "vault"}, StringData: map[string]string{"token": first + "\n"}}
	create(t, vault.DeepCopy())
	inForce(first)
	waitFor(t, namespace, "shop", v1alpha1.ConditionCredentialsReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	shown := get(t, &corev1.Secret{}, namespace, "shop-credentials").Data
	if _, copied := shown["access-token.bi"]; copied || len(shown["access-token.made"]) == 0 {
		t.Error("the Property's own Secret has a copy of what its owner brings, or lacks what Weir makes")
	}
	change(t, &corev1.Secret{}, namespace, "vault", func(s *corev1.Secret) { s.Data["token"] = []byte(second) })
	inForce(second)
	if err := server.client.Delete(context.Background(), vault); err != nil {
		t.Fatal(err)
	}
	inForce()
	waitFor(t, namespace, "shop", v1alpha1.ConditionCredentialsReady, metav1.ConditionFalse, v1alpha1.ReasonSecretMissing)
}
