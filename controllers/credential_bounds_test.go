package controllers_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/audit"
	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/controllers"
)

// flood makes many tokens for a Property, from a few connections at once.
func flood(t *testing.T, namespace, property string, n int) {
	t.Helper()
	var making sync.WaitGroup
	for worker := range 8 {
		making.Go(func() {
			for i := worker; i < n; i += 8 {
				if err := server.client.Create(context.Background(), accessToken(namespace, property, fmt.Sprintf("flood-%04d", i))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	making.Wait()
}

// reasons counts the tokens of a namespace by the reason of their condition.
func reasons(t *testing.T, namespace string) map[string]int {
	t.Helper()
	var list v1alpha1.AccessTokenList
	if err := server.client.List(context.Background(), &list, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	for _, token := range list.Items {
		reason := ""
		for _, c := range token.Status.Conditions {
			reason = c.Reason
		}
		found[reason]++
	}
	return found
}

func TestAFloodOfTokensCostsNobodyElseAnything(t *testing.T) {
	const most, n = v1alpha1.MaxCredentials, 400
	flooded, other := newNamespace(t), newNamespace(t)
	running := startOperator(t, operatorOptions{namespaces: []string{flooded, other}, Options: controllers.Options{RedisURL: redistest.URL(t)}})
	create(t, property(flooded, "flooded"))
	settled(t, flooded, "flooded")
	create(t, accessToken(flooded, "flooded", "oldest"))
	becomes(t, &v1alpha1.AccessToken{}, flooded, "oldest", v1alpha1.ReasonReady)
	<-time.After(1100 * time.Millisecond) // the server's time of creation is in whole seconds
	flood(t, flooded, "flooded", n)

	// Meanwhile another tenant is served.
	create(t, property(other, "other"))
	eventuallyWithin(t, 10*time.Second, func() error {
		found := &v1alpha1.Property{}
		if get(t, found, other, "other"); found.Status.CredentialsSecretRef == nil {
			return fmt.Errorf("the other Property waits")
		}
		return nil
	})
	create(t, accessToken(other, "other", "mine"))
	becomes(t, &v1alpha1.AccessToken{}, other, "mine", v1alpha1.ReasonReady)
	if done := reasons(t, flooded); done[""] == 0 {
		t.Logf("the flood was over before the other tenant was served: %v", done)
	}

	want := map[string]int{v1alpha1.ReasonReady: most, v1alpha1.ReasonLimitReached: n + 1 - most}
	eventuallyWithin(t, time.Minute, func() error {
		if diff := cmp.Diff(want, reasons(t, flooded)); diff != "" {
			return fmt.Errorf("tokens by reason (-want +got):\n%s", diff)
		}
		return nil
	})
	told := toldPods(t, flooded, "flooded-access-tokens")
	if _, there := told["accesstoken/oldest"]; !there || len(told) != most+1 {
		t.Errorf("pods are told of %d tokens, the oldest among them: %t", len(told), there)
	}
	written := map[string]int{}
	for _, call := range running.since(0) {
		if strings.Contains(call, "flood-") {
			written[call]++
		}
	}
	for call, times := range written {
		if times > 1 {
			t.Errorf("%s, %d times", call, times)
		}
	}

	remove(t, accessToken(flooded, "flooded", "oldest"))
	eventually(t, func() error {
		if now := reasons(t, flooded); now[v1alpha1.ReasonReady] != most || now[v1alpha1.ReasonLimitReached] != n-most {
			return fmt.Errorf("nobody takes the free place: %v", now)
		}
		return nil
	})
}

func TestAPropertyOfTheNameGetsNothingOfTheOneBefore(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: redistest.URL(t)}})
	create(t, accessToken(namespace, "again", "early"))
	becomes(t, &v1alpha1.AccessToken{}, namespace, "early", v1alpha1.ReasonPropertyMissing)
	create(t, property(namespace, "again"))
	settled(t, namespace, "again")
	becomes(t, &v1alpha1.AccessToken{}, namespace, "early", v1alpha1.ReasonReady)
	deleted(t, namespace, "again")
	becomes(t, &v1alpha1.AccessToken{}, namespace, "early", v1alpha1.ReasonPropertyMissing)

	create(t, property(namespace, "again"))
	settled(t, namespace, "again")
	create(t, accessToken(namespace, "again", "next"))
	becomes(t, &v1alpha1.AccessToken{}, namespace, "next", v1alpha1.ReasonReady)
	becomes(t, &v1alpha1.AccessToken{}, namespace, "early", v1alpha1.ReasonPropertyMissing)
	if told := toldPods(t, namespace, "again-access-tokens"); told["accesstoken/early"].Name != "" || told["accesstoken/next"].Name == "" {
		t.Errorf("pods are told of %v", told)
	}
}

// TestATokenThatWasFreedOfItsOwnerIsStillTheOneBefores, whose owner who may edit it has taken off while the Property was going, as
// kubectl delete --cascade=orphan does, too.
func TestATokenThatWasFreedOfItsOwnerIsStillTheOneBefores(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	running := startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: redistest.URL(t)}})
	create(t, property(namespace, "freed"))
	before := settled(t, namespace, "freed")
	create(t, accessToken(namespace, "freed", "old"))
	becomes(t, &v1alpha1.AccessToken{}, namespace, "old", v1alpha1.ReasonReady)
	if bound := get(t, &v1alpha1.AccessToken{}, namespace, "old").Status.PropertyUID; bound != before.UID {
		t.Errorf("its status has the Property %q, want %q", bound, before.UID)
	}
	running.stop()
	remove(t, before)
	change(t, &v1alpha1.AccessToken{}, namespace, "old", func(token *v1alpha1.AccessToken) { token.OwnerReferences = nil })
	startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: redistest.URL(t)}})
	deleted(t, namespace, "freed")

	create(t, property(namespace, "freed"))
	settled(t, namespace, "freed")
	create(t, accessToken(namespace, "freed", "next"))
	becomes(t, &v1alpha1.AccessToken{}, namespace, "next", v1alpha1.ReasonReady)
	becomes(t, &v1alpha1.AccessToken{}, namespace, "old", v1alpha1.ReasonPropertyMissing)
	if told := toldPods(t, namespace, "freed-access-tokens"); told["accesstoken/old"].Name != "" || told["accesstoken/next"].Name == "" {
		t.Errorf("pods are told of %v", told)
	}
}

func TestATokenThatCannotBeTakenOverHarmsNothingElse(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	startOperator(t, operatorOptions{
		namespaces: []string{namespace}, Options: controllers.Options{RedisURL: redistest.URL(t), LongestBackoff: time.Second},
	})
	create(t, property(namespace, "harmless"))
	settled(t, namespace, "harmless")
	lift := deny(t, namespace, "weir.dev", "accesstokens", "held", admissionv1.Update)
	create(t, accessToken(namespace, "harmless", "held"))
	becomes(t, &v1alpha1.AccessToken{}, namespace, "held", v1alpha1.ReasonPending)
	if ready := readyOf(t, &v1alpha1.AccessToken{}, namespace, "held"); !strings.Contains(ready.Message, houseRule) {
		t.Errorf("it does not say why: %s", ready.Message)
	}
	create(t, accessToken(namespace, "harmless", "free"))
	becomes(t, &v1alpha1.AccessToken{}, namespace, "free", v1alpha1.ReasonReady)
	podsForget(t, namespace, "harmless-access-tokens", "accesstoken/held")
	waitFor(t, namespace, "harmless", v1alpha1.ConditionCredentialsReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	lift(t)
	becomes(t, &v1alpha1.AccessToken{}, namespace, "held", v1alpha1.ReasonReady)
}

func TestATokenIsRevokedWhateverIsWrongWithTheSpec(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: redistest.URL(t)}})
	create(t, property(namespace, "wrong"))
	settled(t, namespace, "wrong")
	create(t, accessToken(namespace, "wrong", "bi"))
	becomes(t, &v1alpha1.AccessToken{}, namespace, "bi", v1alpha1.ReasonReady)
	change(t, &v1alpha1.Property{}, namespace, "wrong", func(p *v1alpha1.Property) { p.Spec.Currency = "XQX" })
	waitFor(t, namespace, "wrong", v1alpha1.ConditionWorkloadsAvailable, metav1.ConditionFalse, v1alpha1.ReasonConfigurationInvalid)
	remove(t, accessToken(namespace, "wrong", "bi"))
	podsForget(t, namespace, "wrong-access-tokens", "accesstoken/bi")
}

func TestATokenWaitsAsLongAsPodsCannotBeTold(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: redistest.URL(t)}})
	taken := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "waiting-access-tokens"}}
	create(t, taken)
	create(t, property(namespace, "waiting"))
	create(t, accessToken(namespace, "waiting", "bi"))
	create(t, apiKey(namespace, "waiting", "server", auth.NewAPIKey()))
	becomes(t, &v1alpha1.AccessToken{}, namespace, "bi", v1alpha1.ReasonPending)
	becomes(t, &v1alpha1.APIKey{}, namespace, "server", v1alpha1.ReasonReady)
	remove(t, taken)
	becomes(t, &v1alpha1.AccessToken{}, namespace, "bi", v1alpha1.ReasonReady)
}

func TestWhatBecomesOfKeysAndTokensThatPeopleMakeIsWrittenDown(t *testing.T) {
	t.Parallel()
	namespace, lines := newNamespace(t), &auditLines{}
	startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{
		RedisURL: redistest.URL(t), Audit: audit.New(lines, slog.New(slog.DiscardHandler), time.Now),
	}})
	create(t, property(namespace, "told"))
	settled(t, namespace, "told")
	create(t, accessToken(namespace, "told", "bi"))
	create(t, apiKey(namespace, "told", "server", auth.NewAPIKey()))
	create(t, accessToken(namespace, "told", "brief", func(a *v1alpha1.AccessToken) {
		a.Spec.ExpirationTime = new(metav1.NewTime(time.Now().Add(5 * time.Second)))
	}))
	becomes(t, &v1alpha1.AccessToken{}, namespace, "bi", v1alpha1.ReasonReady)
	becomes(t, &v1alpha1.APIKey{}, namespace, "server", v1alpha1.ReasonReady)
	becomes(t, &v1alpha1.AccessToken{}, namespace, "brief", v1alpha1.ReasonExpired) // which is nobody's act
	podsForget(t, namespace, "told-access-tokens", "accesstoken/brief")
	remove(t, accessToken(namespace, "told", "bi"))
	want := []string{
		"operator credential.added access_token accesstoken/bi read", "operator credential.added access_token accesstoken/brief read",
		"operator credential.added access_token default read",
		"operator credential.added api_key apikey/server", "operator credential.added api_key default",
		"operator credential.revoked access_token accesstoken/bi read",
	}
	eventually(t, func() error {
		if diff := cmp.Diff(want, slices.Sorted(slices.Values(lines.acts(t)))); diff != "" {
			return fmt.Errorf("(-want +got):\n%s", diff)
		}
		return nil
	})
}

func TestTokensOfAnotherReleaseAreLeftAlone(t *testing.T) {
	t.Parallel()
	namespace, clock := newNamespace(t), time.Now()
	if other := rival(t, releaseOf("theirs/weir", &clock, namespace), namespace); other != "" {
		t.Fatalf("%s serves the namespace", other)
	}
	ours := releaseOf("ours/weir", &clock, namespace)
	counter := &lookCounter{}
	running := startOperator(t, operatorOptions{
		namespaces: []string{namespace}, Options: controllers.Options{RedisURL: redistest.URL(t), Leases: ours}, wrap: counter.wrap,
	})
	create(t, property(namespace, "theirs"))
	create(t, accessToken(namespace, "theirs", "bi"))
	create(t, accessToken(namespace, "nobodys", "orphan"))
	eventually(t, func() error {
		if looks := counter.lookedAt(); looks["theirs"] == 0 || looks["nobodys"] == 0 {
			return fmt.Errorf("it has looked at %v", looks)
		}
		return nil
	})
	running.stop() // which lets a reconcile end that has begun
	if calls := running.since(0); len(calls) > 0 {
		t.Errorf("it has written: %v", calls)
	}
}
