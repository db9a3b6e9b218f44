package readapi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/cli/cluster"
	"github.com/weir-dev/weir/cli/credentials"
	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/controllers/resources"
)

// tokenVariable is the environment's variable with an access token.
const tokenVariable = "WEIR_TOKEN"

// held is a token, and how it is given back.
type held struct {
	token string
	// made says that it was made for the command, unknown that the pods may not know it yet.
	made, unknown bool
	release       func() error
}

func kept() error { return nil }

// obtain finds a token of the scope or makes one that lasts so long at most. What the caller names goes first. What only reads takes a
// token of the Property's Secret where the caller may get that; what writes rather makes one, so that the audit log names the person.
func (f *Flags) obtain(ctx context.Context, getenv func(string) string, reached *cluster.Cluster, property string, scope auth.Scope, lasts time.Duration) (held, error) {
	if f.TokenFile != "" {
		text, err := os.ReadFile(f.TokenFile)
		if err != nil {
			return held{}, fmt.Errorf("--token-file: %w", err)
		}
		return held{token: strings.TrimSpace(string(text)), release: kept}, nil
	}
	if token := strings.TrimSpace(getenv(tokenVariable)); token != "" {
		return held{token: token, release: kept}, nil
	}
	ways := []func() (held, error){
		func() (held, error) { return fromSecret(ctx, reached, property, scope) },
		func() (held, error) {
			token, release, err := credentials.Temporary(ctx, reached, property, scope, lasts)
			return held{token: token, made: true, unknown: true, release: release}, err
		},
	}
	if scope != auth.ScopeRead {
		ways[0], ways[1] = ways[1], ways[0]
	}
	first, err := ways[0]()
	if err == nil {
		return first, nil
	}
	second, other := ways[1]()
	if other == nil {
		return second, nil
	}
	return held{}, fmt.Errorf("there is no token to ask with: %w; %w; or name one by --token-file or %s", err, other, tokenVariable)
}

// fromSecret takes a token of at least the scope out of the Secret that shows them to the Property's owner.
func fromSecret(ctx context.Context, reached *cluster.Cluster, name string, scope auth.Scope) (held, error) {
	property, err := reached.Property(ctx, name)
	if err != nil {
		return held{}, err
	}
	if property.Status.CredentialsSecretRef == nil {
		return held{}, errors.New("the Property has no Secret with tokens yet")
	}
	var secret corev1.Secret
	key := client.ObjectKey{Namespace: property.Namespace, Name: property.Status.CredentialsSecretRef.Name}
	if err := reached.Get(ctx, key, &secret); err != nil {
		if apierrors.IsNotFound(err) {
			return held{}, fmt.Errorf("there is no Secret %s", key.Name)
		}
		return held{}, cluster.Explain("read a token of the Secret "+key.Name, err)
	}
	token := narrowest(property.Spec.AccessTokens, scope, &secret, time.Now())
	if token == "" {
		return held{}, fmt.Errorf("the Secret %s has no token of scope %s", key.Name, scope)
	}
	return held{token: token, release: kept}, nil
}

// narrowest is the token that may what is needed and the least beyond it, "" where there is none.
func narrowest(declared []v1alpha1.PropertyAccessToken, needed auth.Scope, secret *corev1.Secret, now time.Time) (token string) {
	var least auth.Scope
	for i := range declared {
		own := &declared[i]
		scope, value := auth.Scope(own.GrantedScope()), string(secret.Data[resources.ShownToken+own.Name])
		if value == "" || !scope.Allows(needed) || own.ExpirationTime != nil && !own.ExpirationTime.After(now) {
			continue
		}
		if token == "" || least.Allows(scope) {
			token, least = value, scope
		}
	}
	return token
}
