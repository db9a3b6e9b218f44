package readapi

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/auth"
)

func TestWhichTokenOfTheSecretIsTaken(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	at := func(days int) *metav1.Time { return &metav1.Time{Time: now.AddDate(0, 0, days)} }
	declared := []v1alpha1.PropertyAccessToken{
		{Name: "all", Scope: "admin"}, {Name: "gone", Scope: "read", ExpirationTime: at(-1)}, {Name: "bi", Scope: "read", ExpirationTime: at(1)},
		{Name: "pending", Scope: "read"}, {Name: "ops", Scope: "write"},
	}
	secret := &corev1.Secret{Data: map[string][]byte{"access-token.all": []byte("A"), "access-token.gone": []byte("G"), "access-token.bi": []byte("B"), "access-token.ops": []byte("O")}}
	for sentence, c := range map[string]struct {
		declared []v1alpha1.PropertyAccessToken
		needed   auth.Scope
		want     string
	}{
		"to read, one that may no more and has not expired": {declared, auth.ScopeRead, "B"},
		"to write, one that may write":                      {declared, auth.ScopeWrite, "O"},
		"for everything, the one that may":                  {declared, auth.ScopeAdmin, "A"},
		"a wider one, where there is no other":              {declared[:2], auth.ScopeRead, "A"},
		"none, where none may":                              {declared[1:3], auth.ScopeWrite, ""},
		"none that the operator has not made yet":           {declared[3:4], auth.ScopeRead, ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			if got := narrowest(c.declared, c.needed, secret, now); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
