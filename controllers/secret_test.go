package controllers_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/redisserver"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/collector/role"
	"github.com/weir-dev/weir/controllers"
)

// TestNothingSecretIsShown has a Property with every kind of secret, its pods at work and half of it broken, and then
// looks for the secrets in everything that the API server has and that anybody has logged.
func TestNothingSecretIsShown(t *testing.T) {
	namespace := newNamespace(t)
	operatorLog := &lockedBuffer{}
	redisServer := redistest.Start(t, redisserver.Options{Loopback: true}) // which has a password
	startOperator(t, operatorOptions{
		namespaces: []string{namespace}, Options: controllers.Options{RedisURL: redisServer.URL(), EgressAllowCIDRs: loopback},
		log: slog.New(slog.NewTextHandler(operatorLog, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	signing, refused := newSigningSecret(), newSigningSecret()
	given := map[string]map[string]string{
		"crm":     {"signingSecret": signing},
		"hook":    {"signingSecret": refused},
		"meta":    {"accessToken": "an-access-token-of-meta"},
		"brought": {"key": "an-api-key-that-the-owner-brought"},
		"short":   {"key": "a-short/key-one"},
		"away":    {"url": "redis://somebody:a-password-for-nobody@127.0.0.1:1"},
		"wrong":   {"url": strings.Replace(redisServer.URL(), "redis://:", "redis://:a-wrong-", 1)},
		"odd":     {"url": "redis://somebody:an-odd-password@host:port%zz"},
	}
	for name, data := range given {
		create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, StringData: data})
	}
	host := namespace + ".example.com"
	create(t, property(namespace, "shop", webhookTo(newReceiver(t, signing), "crm"), webhookTo(newReceiver(t, signing), "hook"), func(p *v1alpha1.Property) {
		p.Spec.Exposure = v1alpha1.Exposure{Type: v1alpha1.ExposureIngress, CollectHost: host, APIHost: "api." + host}
		p.Spec.Platforms = append(p.Spec.Platforms, v1alpha1.Platform{Name: "meta", Type: platforms.TypeMeta,
			Settings: platforms.Settings{Meta: &platforms.Meta{PixelID: "1"}}, CredentialsSecretRef: &v1alpha1.SecretReference{Name: "meta"}})
		p.Spec.APIKeys = []v1alpha1.PropertyAPIKey{{Name: "default"},
			{Name: "legacy", SecretKeyRef: &v1alpha1.SecretKeyReference{Name: "brought", Key: "key"}},
			{Name: "short", SecretKeyRef: &v1alpha1.SecretKeyReference{Name: "short", Key: "key"}}}
		p.Spec.AccessTokens = []v1alpha1.PropertyAccessToken{{Name: "default"}, {Name: "admin", Scope: "admin"}}
	}))
	settled(t, namespace, "shop")
	waitFor(t, namespace, "shop", v1alpha1.ConditionCredentialsReady, metav1.ConditionFalse, v1alpha1.ReasonSecretInvalid)
	for name, reason := range map[string]string{"away": v1alpha1.ReasonRedisUnreachable, "wrong": v1alpha1.ReasonRedisAuthenticationFailed, "odd": v1alpha1.ReasonSecretInvalid} {
		create(t, property(namespace, name, ownRedis(name)))
		waitFor(t, namespace, name, v1alpha1.ConditionRedisReady, metav1.ConditionFalse, reason)
	}
	deployment := get(t, &appsv1.Deployment{}, namespace, "shop-deliverer")
	create(t, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shop-deliverer-1", Labels: deployment.Spec.Template.Labels}, Spec: deployment.Spec.Template.Spec})

	collect, collectorLog := pod(t, namespace, "shop", "collector", role.Collect)
	read, queryLog := pod(t, namespace, "shop", "query", role.Query)
	_, delivererLog := pod(t, namespace, "shop", "deliverer", role.Deliver)
	var statuses []int
	for _, key := range []string{credential(t, namespace, "shop", "api-key.default"), "an-api-key-that-the-owner-brought", "a-key-that-nobody-knows"} {
		statuses = append(statuses, send(t, collect, key))
	}
	for _, token := range []string{credential(t, namespace, "shop", "access-token.default"), credential(t, namespace, "shop", "access-token.admin"), "a-token-that-nobody-knows"} {
		status, _ := list(t, read, "shop", token)
		statuses = append(statuses, status)
	}
	if want := []int{202, 202, http.StatusUnauthorized, 200, 200, http.StatusUnauthorized}; !slices.Equal(statuses, want) {
		t.Fatalf("the pods answered %v, want %v", statuses, want)
	}
	waitFor(t, namespace, "shop", v1alpha1.ConditionPlatformsReady, metav1.ConditionFalse, v1alpha1.ReasonCredentialsRejected)

	secrets := map[string]string{"a wrong key": "a-key-that-nobody-knows", "a wrong token": "a-token-that-nobody-knows"}
	for _, address := range []string{redisServer.URL(), given["away"]["url"], given["wrong"]["url"]} {
		parsed, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		password, _ := parsed.User.Password()
		secrets["the password of "+parsed.User.Username()+"@"+parsed.Host] = password
	}
	secrets["an odd password"] = "an-odd-password"
	var all corev1.SecretList
	if err := server.client.List(context.Background(), &all, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	for i := range all.Items {
		for key, value := range all.Items[i].Data {
			if len(value) > 0 && key != "username" && key != "url" && !strings.HasSuffix(key, ".json") {
				secrets[all.Items[i].Name+"/"+key] = string(value)
			}
		}
	}
	if len(secrets) < 25 {
		t.Errorf("only %d secrets are looked for", len(secrets))
	}
	shown := allObjects(t, namespace)
	shown["the operator's log"], shown["the collector's log"] = operatorLog.String(), collectorLog.String()
	shown["the deliverer's log"], shown["the query role's log"] = delivererLog.String(), queryLog.String()
	for _, kind := range []string{"Property ", "Event ", "Ingress ", "Deployment ", "ConfigMap ", "Pod ", "Secret ", "NetworkPolicy ", "PodMonitor ", "the operator's log", "the deliverer's log"} {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(shown)), func(name string) bool { return strings.HasPrefix(name, kind) && shown[name] != "" }) {
			t.Errorf("there is no %sto look at", kind)
		}
	}
	for what, secret := range secrets {
		for _, form := range []string{secret, url.QueryEscape(secret), url.PathEscape(secret), base64.StdEncoding.EncodeToString([]byte(secret))} {
			for where, text := range shown {
				if strings.Contains(text, form) {
					t.Errorf("%s shows %s", where, what)
				}
			}
		}
	}
}

// allObjects returns every object of a namespace as JSON, of whatever kind the server has. Of a Secret that is there
// to hold secrets it is all but the data.
func allObjects(t testing.TB, namespace string) map[string]string {
	t.Helper()
	found, err := discovery.NewDiscoveryClientForConfigOrDie(server.config).ServerPreferredNamespacedResources()
	if err != nil {
		t.Fatal(err)
	}
	objects := map[string]string{}
	for _, group := range found {
		version, err := schema.ParseGroupVersion(group.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, resource := range group.APIResources {
			if !slices.Contains(resource.Verbs, "list") {
				continue
			}
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(version.WithKind(resource.Kind + "List"))
			if err := server.client.List(context.Background(), list, client.InNamespace(namespace)); err != nil {
				t.Fatal(err)
			}
			for _, object := range list.Items {
				kept := object.GetLabels()["app.kubernetes.io/managed-by"] != "weir" || strings.HasSuffix(object.GetName(), "-credentials") || strings.HasSuffix(object.GetName(), "-erasures") || strings.HasSuffix(object.GetName(), "-sessions") || strings.Contains(object.GetName(), "-redis-")
				if object.GetKind() == "Secret" && kept {
					delete(object.Object, "data")
				}
				var text bytes.Buffer
				encoder := json.NewEncoder(&text)
				encoder.SetEscapeHTML(false)
				if err := encoder.Encode(object.Object); err != nil {
					t.Fatal(err)
				}
				objects[fmt.Sprint(object.GetKind(), " ", object.GetName())] = text.String()
			}
		}
	}
	return objects
}
