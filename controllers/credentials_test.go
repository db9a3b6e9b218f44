package controllers_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/controllers"
)

// keptKey is an API key that Weir has made.
var keptKey = auth.NewAPIKey()

// kept is a Secret shop-credentials that is there before its Property.
func kept(namespace string, edit func(*corev1.Secret)) *corev1.Secret {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "kept-credentials", Labels: map[string]string{
			"app.kubernetes.io/name": "weir", "app.kubernetes.io/instance": "kept", "app.kubernetes.io/managed-by": "weir", "backup": "yes",
		}},
		StringData: map[string]string{"api-key.default": keptKey, "access-token.default": auth.NewAccessToken()},
	}
	if edit != nil {
		edit(secret)
	}
	return secret
}

func TestCredentialsThatWereKeptAreTakenOver(t *testing.T) {
	t.Parallel()
	owner := func(kind, name string) func(*corev1.Secret) {
		return func(s *corev1.Secret) {
			s.OwnerReferences = []metav1.OwnerReference{{APIVersion: "weir.dev/v1alpha1", Kind: kind, Name: name, UID: "00000000-0000-0000-0000-000000000000", Controller: new(true)}}
		}
	}
	rows := map[string]struct {
		edit func(*corev1.Secret)
		took bool
	}{
		"one with the labels and without an owner is":         {nil, true},
		"one of a Property of the same name that is gone is":  {owner("Property", "kept"), true},
		"one of a Property of another name is not":            {owner("Property", "other"), false},
		"one of another kind of owner is not":                 {owner("Vault", "kept"), false},
		"one without labels is not":                           {func(s *corev1.Secret) { s.Labels = nil }, false},
		"one with the labels of another Property is not":      {func(s *corev1.Secret) { s.Labels["app.kubernetes.io/instance"] = "other" }, false},
		"one that nobody says is managed by Weir is not":      {func(s *corev1.Secret) { delete(s.Labels, "app.kubernetes.io/managed-by") }, false},
		"one of another type is not":                          {func(s *corev1.Secret) { s.Type = "example.com/kept" }, false},
		"one whose token is missing is, and gets one":         {func(s *corev1.Secret) { delete(s.StringData, "access-token.default") }, true},
		"one with a name that nobody asks for is, without it": {func(s *corev1.Secret) { s.StringData["api-key.old"] = auth.NewAPIKey() }, true},
	}
	for sentence, row := range rows {
		t.Run(sentence, func(t *testing.T) {
			namespace := newNamespace(t)
			running := startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: redistest.URL(t)}})
			defer running.stop()
			create(t, kept(namespace, row.edit))
			create(t, property(namespace, "kept"))
			if !row.took {
				waitFor(t, namespace, "kept", v1alpha1.ConditionCredentialsReady, metav1.ConditionFalse, v1alpha1.ReasonObjectConflict)
			} else {
				p := waitFor(t, namespace, "kept", v1alpha1.ConditionCredentialsReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
				secret := get(t, &corev1.Secret{}, namespace, "kept-credentials")
				if !metav1.IsControlledBy(secret, p) || len(secret.OwnerReferences) != 1 || secret.Labels["backup"] != "yes" {
					t.Errorf("it belongs to %v with the labels %v", secret.OwnerReferences, secret.Labels)
				}
				if len(secret.Data) != 2 || len(secret.Data["access-token.default"]) == 0 {
					t.Errorf("it holds %d values", len(secret.Data))
				}
			}
			if key := get(t, &corev1.Secret{}, namespace, "kept-credentials").Data["api-key.default"]; string(key) != keptKey {
				t.Error("its key is another one")
			}
			deleted(t, namespace, "kept")
		})
	}
}

func TestCredentialsThatAreDeletedAreSaidToBeReplaced(t *testing.T) {
	t.Parallel()
	namespace, ctx := newNamespace(t), context.Background()
	startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: redistest.URL(t)}})
	create(t, property(namespace, "replaced"))
	const condition = v1alpha1.ConditionCredentialsReady
	edit := func(edit func(*v1alpha1.PropertySpec)) func(*testing.T) {
		return func(t *testing.T) {
			change(t, &v1alpha1.Property{}, namespace, "replaced", func(p *v1alpha1.Property) { edit(&p.Spec) })
		}
	}
	for _, step := range []struct {
		sentence string
		do       func(*testing.T)
		reason   string
		says     []string
	}{
		{"the first ones replace none", func(*testing.T) {}, v1alpha1.ReasonReady, nil},
		{"nor do others", edit(func(s *v1alpha1.PropertySpec) {
			s.APIKeys = []v1alpha1.PropertyAPIKey{{Name: "default"}, {Name: "next"}}
		}), v1alpha1.ReasonReady, nil},
		{"a Secret that is deleted takes all with it", func(t *testing.T) {
			if err := server.client.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "replaced-credentials"}}); err != nil {
				t.Fatal(err)
			}
		}, v1alpha1.ReasonCredentialsReplaced, []string{"replaced-credentials", "access-token.default, api-key.default, api-key.next"}},
		{"another spec ends it", edit(func(s *v1alpha1.PropertySpec) { s.TimeZone = "Europe/Rome" }), v1alpha1.ReasonReady, nil},
		{"a key that is taken out of the Secret is replaced alone", func(t *testing.T) {
			change(t, &corev1.Secret{}, namespace, "replaced-credentials", func(s *corev1.Secret) { delete(s.Data, "api-key.next") })
		}, v1alpha1.ReasonCredentialsReplaced, []string{": api-key.next were made anew"}},
	} {
		step.do(t)
		p := waitFor(t, namespace, "replaced", condition, metav1.ConditionTrue, step.reason)
		for _, words := range step.says {
			if text := message(p, condition); !strings.Contains(text, words) {
				t.Errorf("%s: %q does not say %q", step.sentence, text, words)
			}
		}
		if step.says == nil {
			continue
		}
		eventually(t, func() error {
			var list eventsv1.EventList
			if err := server.client.List(ctx, &list, client.InNamespace(namespace)); err != nil {
				return err
			}
			for _, event := range list.Items {
				if event.Type == corev1.EventTypeWarning && event.Action == step.reason && strings.Contains(event.Note, step.says[0]) {
					return nil
				}
			}
			return fmt.Errorf("%s: no event says so", step.sentence)
		})
	}
}

// TestWhatSomebodyWritesInPlaceOfAKeyIsRefused edits the Secret of the keys and tokens that Weir makes.
func TestWhatSomebodyWritesInPlaceOfAKeyIsRefused(t *testing.T) {
	t.Parallel()
	key, token := auth.NewAPIKey(), auth.NewAccessToken()
	rows := map[string]struct {
		key, value string
		counts     bool
	}{
		"one letter is no API key":                          {"api-key.default", "x", false},
		"nor is a word, though it is long":                  {"api-key.default", "correct-horse-battery-staple", false},
		"nor a key without its last letter":                 {"api-key.default", key[:len(key)-1], false},
		"nor a key with a line end behind it":               {"api-key.default", key + "\n", false},
		"nor an access token":                               {"api-key.default", token, false},
		"a key that Weir has made elsewhere is":             {"api-key.default", key, true},
		"one letter is no access token":                     {"access-token.default", "x", false},
		"nor is an API key":                                 {"access-token.default", key, false},
		"a token that Weir has made elsewhere is":           {"access-token.default", token, true},
		"one letter is no second API key, the first one is": {"api-key.next", "x", false},
		"a secret key is no publishable one":                {"publishable-key.web", key, false},
		"a publishable key that Weir has made elsewhere is": {"publishable-key.web", auth.NewPublishableKey(), true},
	}
	namespace, i := newNamespace(t), 0
	startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: redistest.URL(t)}})
	for sentence, row := range rows {
		i++
		name := fmt.Sprint("edited-", i)
		t.Run(sentence, func(t *testing.T) {
			create(t, property(namespace, name, func(p *v1alpha1.Property) {
				p.Spec.APIKeys = []v1alpha1.PropertyAPIKey{
					{Name: "default"}, {Name: "next"}, {Name: "web", Type: v1alpha1.APIKeyPublishable, AllowedOrigins: []v1alpha1.Origin{"https://www.shop.example"}},
				}
			}))
			settled(t, namespace, name)
			change(t, &corev1.Secret{}, namespace, name+"-credentials", func(s *corev1.Secret) { s.Data[row.key] = []byte(row.value) })
			held := func(value string) func() error { // by the pods, which have hashes alone
				return func() error {
					hash, err := auth.HashOf(value).MarshalText()
					if err != nil {
						t.Fatal(err)
					}
					for _, secret := range []string{name + "-api-keys", name + "-access-tokens"} {
						for _, file := range get(t, &corev1.Secret{}, namespace, secret).Data {
							if strings.Contains(string(file), string(hash)) {
								return nil
							}
						}
					}
					return errors.New("the pods do not know it")
				}
			}
			const condition = v1alpha1.ConditionCredentialsReady
			if row.counts {
				eventually(t, held(row.value))
				waitFor(t, namespace, name, condition, metav1.ConditionTrue, v1alpha1.ReasonReady)
				return
			}
			p := waitFor(t, namespace, name, condition, metav1.ConditionFalse, v1alpha1.ReasonSecretInvalid)
			for _, words := range []string{"Secret " + name + "-credentials", "key " + row.key, "delete that key"} {
				if text := message(p, condition); !strings.Contains(text, words) {
					t.Errorf("%q does not say %q", text, words)
				}
			}
			if held(row.value)() == nil {
				t.Error("the pods take it")
			}
			kept := get(t, &corev1.Secret{}, namespace, name+"-credentials")
			if string(kept.Data[row.key]) != row.value {
				t.Error("it has been overwritten")
			}
			for other, value := range kept.Data {
				if other != row.key && held(string(value))() != nil {
					t.Errorf("%s does not count any more", other)
				}
			}
			change(t, &corev1.Secret{}, namespace, name+"-credentials", func(s *corev1.Secret) { delete(s.Data, row.key) })
			waitFor(t, namespace, name, condition, metav1.ConditionTrue, v1alpha1.ReasonReady)
			eventually(t, held(string(get(t, &corev1.Secret{}, namespace, name+"-credentials").Data[row.key])))
		})
	}
}

// A Property of which nothing was ever made in Redis has nothing to wait for.
func TestAPropertyThatNeverHadARedisGoesAtOnce(t *testing.T) {
	t.Parallel()
	rows := map[string]struct {
		edit   func(*v1alpha1.Property)
		reason string
	}{
		"because its Secret never was there": {ownRedis("nowhere"), v1alpha1.ReasonSecretMissing},
		"because the operator has none":      {func(*v1alpha1.Property) {}, v1alpha1.ReasonRedisUnreachable},
		"because nobody answers there":       {ownRedis("away"), v1alpha1.ReasonRedisUnreachable},
		"because it is nowhere to go":        {ownRedis("inside"), v1alpha1.ReasonRedisAddressDenied},
		"because what answers is no Redis":   {ownRedis("nonsense"), v1alpha1.ReasonRedisProtocolError},
		"because its user is not known":      {ownRedis("stranger"), v1alpha1.ReasonRedisAuthenticationFailed},
	}
	secrets := map[string]string{
		"away": "redis://127.0.0.1:1", "inside": "redis://10.1.2.3", "nonsense": "redis://" + nonsense(t, saying("220 hello\r\n")),
		"stranger": withUser(t, tenantsRedis(t), "nobody", "knows"),
	}
	for sentence, row := range rows {
		t.Run(sentence, func(t *testing.T) {
			namespace := newNamespace(t)
			startOperator(t, operatorOptions{namespaces: []string{namespace}})
			for name, address := range secrets {
				create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, StringData: map[string]string{"url": address}})
			}
			create(t, property(namespace, "never", row.edit))
			waitFor(t, namespace, "never", v1alpha1.ConditionRedisReady, metav1.ConditionFalse, row.reason)
			if err := server.client.Delete(context.Background(), property(namespace, "never")); err != nil {
				t.Fatal(err)
			}
			eventually(t, func() error { // which is a quarter of the time that a Redis that is away is waited for
				err := server.client.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: "never"}, &v1alpha1.Property{})
				if apierrors.IsNotFound(err) {
					return nil
				}
				if err == nil {
					err = errors.New("it is still there")
				}
				return err
			})
			var list eventsv1.EventList
			if err := server.client.List(context.Background(), &list, client.InNamespace(namespace)); err != nil {
				t.Fatal(err)
			}
			for _, event := range list.Items {
				if event.Reason == "RedisLeftBehind" {
					t.Errorf("an event says that something is left: %s", event.Note)
				}
			}
		})
	}
}

func TestARoleIsAvailableWhileOnePodServes(t *testing.T) {
	status := func(generation int64, replicas, updated, available int32, conditions ...appsv1.DeploymentCondition) appsv1.DeploymentStatus {
		return appsv1.DeploymentStatus{ObservedGeneration: generation, Replicas: replicas, UpdatedReplicas: updated, AvailableReplicas: available, Conditions: conditions}
	}
	stuck := appsv1.DeploymentCondition{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded"}
	refused := appsv1.DeploymentCondition{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: "exceeded quota"}
	for sentence, test := range map[string]struct {
		want   int32
		status appsv1.DeploymentStatus
		reason string
	}{
		"all of two serve":                              {2, status(3, 2, 2, 2), ""},
		"one of two restarts":                           {2, status(3, 2, 2, 1), ""},
		"nine of ten restart":                           {10, status(3, 10, 10, 1), ""},
		"none of two serves":                            {2, status(3, 2, 2, 0), v1alpha1.ReasonProgressing},
		"the only one restarts":                         {1, status(3, 1, 1, 0), v1alpha1.ReasonProgressing},
		"none is asked for":                             {0, status(3, 0, 0, 0), ""},
		"one of two is of the spec before":              {2, status(3, 2, 1, 2), v1alpha1.ReasonProgressing},
		"one too many is of the spec before":            {2, status(3, 3, 2, 3), v1alpha1.ReasonProgressing},
		"the spec has not been seen":                    {2, status(2, 2, 2, 2), v1alpha1.ReasonProgressing},
		"nothing has moved for long, though one serves": {2, status(3, 2, 2, 1, stuck), v1alpha1.ReasonUnavailable},
		"another cannot be created, though one serves":  {2, status(3, 1, 1, 1, refused), v1alpha1.ReasonUnavailable},
		"the second of two has not been made yet":       {2, status(3, 1, 1, 1), v1alpha1.ReasonProgressing},
	} {
		t.Run(sentence, func(t *testing.T) {
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "shop-collector", Generation: 3}, Spec: appsv1.DeploymentSpec{Replicas: &test.want}, Status: test.status}
			if got := controllers.Rollout(d); got != test.reason {
				t.Errorf("the reason is %q, want %q", got, test.reason)
			}
		})
	}
}
