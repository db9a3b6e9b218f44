package controllers_test

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/collector/role"
	"github.com/weir-dev/weir/collector/sources"
	"github.com/weir-dev/weir/controllers"
)

// receiver is a webhook receiver that takes what is signed with its secret and answers 401 to all else.
type receiver struct {
	*httptest.Server

	mu              sync.Mutex
	secret          string
	taken, rejected int
	// signed is how many signatures the last request had.
	signed int
}

func newReceiver(t testing.TB, secret string) *receiver {
	t.Helper()
	r := &receiver{secret: secret}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

// ServeHTTP checks a signature as Standard Webhooks describes it.
func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	key, decodeErr := base64.StdEncoding.DecodeString(strings.TrimPrefix(r.secret, "whsec_"))
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", request.Header.Get("Webhook-Id"), request.Header.Get("Webhook-Timestamp"), body)
	r.signed = len(strings.Fields(request.Header.Get("Webhook-Signature")))
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	for signature := range strings.FieldsSeq(request.Header.Get("Webhook-Signature")) {
		if err == nil && decodeErr == nil && hmac.Equal([]byte(signature), []byte(want)) && strings.Contains(string(body), `"type":"pageview"`) {
			r.taken++
			return
		}
	}
	r.rejected++
	w.WriteHeader(http.StatusUnauthorized)
}

func (r *receiver) expect(secret string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.secret = secret
}

func (r *receiver) counts() (taken, rejected int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.taken, r.rejected
}

func (r *receiver) signatures() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.signed
}

func newSigningSecret() string {
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	return "whsec_" + base64.StdEncoding.EncodeToString(key)
}

// webhookTo makes a Property deliver to a receiver, with a Secret of the platform's name.
func webhookTo(r *receiver, name string) func(*v1alpha1.Property) {
	return func(p *v1alpha1.Property) {
		p.Spec.Platforms = append(p.Spec.Platforms, v1alpha1.Platform{Name: name, Type: platforms.TypeWebhook,
			Settings: platforms.Settings{Webhook: &platforms.Webhook{URL: r.URL}}, CredentialsSecretRef: &v1alpha1.SecretReference{Name: name}})
	}
}

// loopback lets deliveries reach this machine.
var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

func TestTheDelivererFollowsItsSecretsAndReportsWhatPlatformsRefuse(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	first, second, third := newSigningSecret(), newSigningSecret(), newSigningSecret()
	hook := newReceiver(t, first)
	startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: redistest.URL(t), EgressAllowCIDRs: loopback}})
	create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "crm"}, StringData: map[string]string{"signingSecret": first}})
	create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mail"}, StringData: map[string]string{"signingSecret": first}})
	create(t, property(namespace, "shop", webhookTo(hook, "crm"), webhookTo(newReceiver(t, first), "mail")))
	settled(t, namespace, "shop")
	rollOut(t, namespace, "shop")
	waitFor(t, namespace, "shop", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	collect, _ := pod(t, namespace, "shop", "collector", role.Collect)
	_, _ = pod(t, namespace, "shop", "deliverer", role.Deliver)
	key := credential(t, namespace, "shop", "api-key.default")

	sent := 0
	event := func(t *testing.T) {
		t.Helper()
		if got := send(t, collect, key); got != http.StatusAccepted {
			t.Fatalf("collecting is answered %d", got)
		}
		sent++
	}
	// An event that was refused again and again waits the longer for its next attempt.
	allTaken := func(t *testing.T) {
		t.Helper()
		eventuallyWithin(t, 5*time.Minute, func() error {
			if taken, rejected := hook.counts(); taken != sent {
				return fmt.Errorf("the receiver took %d of %d events and refused %d requests", taken, sent, rejected)
			}
			return nil
		})
	}
	sign := func(t *testing.T, secrets ...string) {
		t.Helper()
		change(t, &corev1.Secret{}, namespace, "crm", func(s *corev1.Secret) { s.Data["signingSecret"] = []byte(strings.Join(secrets, " ")) })
	}
	t.Run("events are signed and delivered", func(t *testing.T) { event(t); allTaken(t) })
	t.Run("with both secrets the receiver changes over when it likes", func(t *testing.T) {
		sign(t, first, second)
		signed := hook.signatures()
		eventually(t, func() error {
			event(t)
			if hook.signatures() == signed {
				return fmt.Errorf("the deliverer signs with one secret still")
			}
			return nil
		})
		hook.expect(second)
		event(t)
		allTaken(t)
		if _, rejected := hook.counts(); rejected > 0 {
			t.Errorf("%d requests were refused", rejected)
		}
	})
	t.Run("a secret that the receiver refuses, and a Secret that loses its key, are a condition", func(t *testing.T) {
		hook.expect(third)
		for range 5 { // one refused event proves nothing about a platform, different ones do
			event(t)
		}
		change(t, &corev1.Secret{}, namespace, "mail", func(s *corev1.Secret) { s.Data = map[string][]byte{"signingsecret": s.Data["signingSecret"]} })
		want := []v1alpha1.PlatformStatus{{Name: "crm", Reason: v1alpha1.ReasonCredentialsRejected}, {Name: "mail", Reason: v1alpha1.ReasonSecretInvalid}}
		var p *v1alpha1.Property
		eventually(t, func() error {
			p = waitFor(t, namespace, "shop", v1alpha1.ConditionPlatformsReady, metav1.ConditionFalse, v1alpha1.ReasonCredentialsRejected)
			if diff := cmp.Diff(want, p.Status.Platforms); diff != "" {
				return fmt.Errorf("status.platforms (-want +got):\n%s", diff)
			}
			return nil
		})
		for _, words := range []string{"spec.platforms[0] (crm)", "renew them in the Secret", "spec.platforms[1] (mail)", "lacks a key"} {
			if text := message(p, v1alpha1.ConditionPlatformsReady); !strings.Contains(text, words) {
				t.Errorf("the message does not say %q: %s", words, text)
			}
		}
		waitFor(t, namespace, "shop", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	})
	t.Run("the right ones heal it", func(t *testing.T) {
		sign(t, third)
		change(t, &corev1.Secret{}, namespace, "mail", func(s *corev1.Secret) { s.Data = map[string][]byte{"signingSecret": s.Data["signingsecret"]} })
		waitFor(t, namespace, "shop", v1alpha1.ConditionPlatformsReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
		allTaken(t)
	})
}

// TestAPauseIsWhatADelivererSays writes into Redis what a deliverer does, and what none would.
func TestAPauseIsWhatADelivererSays(t *testing.T) {
	t.Parallel()
	namespace, address := newNamespace(t), redistest.URL(t)
	startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: address}})
	admin, ctx := dial(t, address), t.Context()
	rows := []struct{ platform, wrote, reason string }{
		{"crm-1", "CredentialsRejected", v1alpha1.ReasonCredentialsRejected},
		{"crm-2", "ConfigurationRejected", v1alpha1.ReasonConfigurationRejected},
		{"crm-3", "SecretInvalid", v1alpha1.ReasonSecretInvalid},
		{"crm-4", "EgressDenied", v1alpha1.ReasonEgressDenied},
		{"crm-5", "credentialsrejected", ""},
		{"crm-6", "1", ""},
		{"crm-7", strings.Repeat("x", 1000), ""},
		{"crm-8", "CredentialsRejected and more", ""},
		{"log-1", "CredentialsRejected", ""},
		{"log-2", "EgressDenied", ""},
	}
	create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "crm"}, StringData: map[string]string{"signingSecret": newSigningSecret()}})
	var want []v1alpha1.PlatformStatus
	create(t, property(namespace, "shop", func(p *v1alpha1.Property) {
		for _, row := range rows {
			platform := v1alpha1.Platform{Name: row.platform, Type: platforms.TypeLog}
			if strings.HasPrefix(row.platform, "crm") {
				platform.Type, platform.Webhook = platforms.TypeWebhook, &platforms.Webhook{URL: "https://crm.example.com"}
				platform.CredentialsSecretRef = &v1alpha1.SecretReference{Name: "crm"}
			}
			p.Spec.Platforms = append(p.Spec.Platforms, platform)
			if row.reason != "" {
				want = append(want, v1alpha1.PlatformStatus{Name: row.platform, Reason: row.reason})
			}
		}
	}))
	settled(t, namespace, "shop")
	waitFor(t, namespace, "shop", v1alpha1.ConditionPlatformsReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	if _, err := admin.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		for _, row := range rows {
			pipe.Set(ctx, "weir:{"+namespace+"/shop}:paused:"+row.platform, row.wrote, 0)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	p := waitFor(t, namespace, "shop", v1alpha1.ConditionPlatformsReady, metav1.ConditionFalse, v1alpha1.ReasonCredentialsRejected)
	if diff := cmp.Diff(want, p.Status.Platforms); diff != "" {
		t.Errorf("status.platforms (-want +got):\n%s", diff)
	}
}

// TestASourceThatCannotBeReadIsWhatADelivererSays does the same for sources, of which some have their orders read.
func TestASourceThatCannotBeReadIsWhatADelivererSays(t *testing.T) {
	t.Parallel()
	namespace, address := newNamespace(t), redistest.URL(t)
	startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: address}})
	admin, ctx := dial(t, address), t.Context()
	create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "keys"}, StringData: map[string]string{"signingSecret": "x"}})
	rows := []struct {
		source, wrote string
		reads         bool
		says          string
	}{
		{"first", "CredentialsRejected", true, "spec.sources[0] (first): the shop refuses the credentials"},
		{"second", "ConfigurationRejected", true, "spec.sources[1] (second): there is no shop's API"},
		{"third", "SecretInvalid", true, "spec.sources[2] (third): the Secret that apiSecretRef names lacks a key"},
		{"fourth", "EgressDenied", true, "spec.sources[3] (fourth): the url's host has only private"},
		{"fifth", "x", true, ""},
		{"sixth", "CredentialsRejected", false, ""},
	}
	create(t, property(namespace, "shop", func(p *v1alpha1.Property) {
		for _, row := range rows {
			source := v1alpha1.Source{Name: row.source, Type: sources.Stripe, SecretRef: v1alpha1.SecretReference{Name: "keys"}}
			if row.reads {
				source.APISecretRef = &source.SecretRef
			}
			p.Spec.Sources = append(p.Spec.Sources, source)
		}
	}))
	settled(t, namespace, "shop")
	waitFor(t, namespace, "shop", v1alpha1.ConditionSourcesReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	for _, row := range rows {
		if err := admin.Set(ctx, "weir:{"+namespace+"/shop}:paused:source/"+row.source, row.wrote, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	var text string
	eventually(t, func() error {
		text = message(waitFor(t, namespace, "shop", v1alpha1.ConditionSourcesReady, metav1.ConditionFalse, v1alpha1.ReasonCredentialsRejected), v1alpha1.ConditionSourcesReady)
		if !strings.Contains(text, "fourth") {
			return errors.New(text)
		}
		return nil
	})
	for _, row := range rows {
		if got := strings.Contains(text, row.source); got != (row.says != "") || !strings.Contains(text, row.says) {
			t.Errorf("of %s it says: %s", row.source, text)
		}
	}
}

// TestADelivererMayAppendWhereAShopIsRead asks Redis what the deliverer's user may do as a source gets an apiSecretRef,
// and loses it.
func TestADelivererMayAppendWhereAShopIsRead(t *testing.T) {
	t.Parallel()
	namespace, address := newNamespace(t), redistest.URL(t)
	startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: address}})
	admin := dial(t, address)
	reading := func(reads bool) func(*v1alpha1.Property) {
		return func(p *v1alpha1.Property) {
			source := v1alpha1.Source{Name: "stripe", Type: sources.Stripe, SecretRef: v1alpha1.SecretReference{Name: "keys"}}
			if reads {
				source.APISecretRef = &source.SecretRef
			}
			p.Spec.Sources = []v1alpha1.Source{source}
		}
	}
	may := func(want bool) {
		t.Helper()
		eventually(t, func() error {
			key := "weir:{" + namespace + "/shop}:events"
			answer, err := admin.Do(t.Context(), "ACL", "DRYRUN", "weir:"+namespace+"/shop:deliverer", "XADD", key, "*", "e", "x").Text()
			if err != nil {
				return err
			}
			if got := answer == "OK"; got != want {
				return fmt.Errorf("it may append: %t, want %t", got, want)
			}
			return nil
		})
	}
	create(t, property(namespace, "shop", reading(false)))
	may(false)
	for _, reads := range []bool{true, false} {
		change(t, &v1alpha1.Property{}, namespace, "shop", reading(reads))
		may(reads)
	}
}
