package controllers_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/audit"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/controllers"
)

// auditLines is an audit log that is read while it is written.
type auditLines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (a *auditLines) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.text.Write(p)
}

// acts are the lines in words, in alphabetical order.
func (a *auditLines) acts(t *testing.T) []string {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	var found []string
	for text := range bytes.Lines(a.text.Bytes()) {
		var line struct {
			Act, Property string
			Actor, Object struct{ Kind, Name, Scope string }
			Details       struct{ Members []string }
		}
		if err := json.Unmarshal(text, &line); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		found = append(found, strings.Join(slices.Concat([]string{line.Actor.Kind, line.Act, line.Object.Kind, line.Object.Name}, strings.Fields(line.Object.Scope), line.Details.Members), " "))
	}
	slices.Sort(found)
	return found
}

func TestWhatBecomesOfKeysAndTokensIsWrittenDown(t *testing.T) {
	t.Parallel()
	namespace, ctx := newNamespace(t), context.Background()
	lines := &auditLines{}
	options := operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{
		RedisURL: redistest.URL(t), Audit: audit.New(lines, slog.New(slog.DiscardHandler), time.Now),
	}}
	running := startOperator(t, options)
	restart := func() {
		running.stop()
		running = startOperator(t, options)
	}
	edit := func(edit func(*v1alpha1.PropertySpec)) {
		change(t, &v1alpha1.Property{}, namespace, "audited", func(p *v1alpha1.Property) { edit(&p.Spec) })
	}
	brought := func(value string) {
		change(t, &corev1.Secret{}, namespace, "brought", func(s *corev1.Secret) { s.Data = map[string][]byte{"key": []byte(value)} })
	}
	create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "brought"}, StringData: map[string]string{"key": "a-key-of-the-owners-own"}})
	var want []string
	for _, step := range []struct {
		sentence string
		do       func()
		want     []string
	}{
		{"a new Property has a key and a token", func() { create(t, property(namespace, "audited")) }, []string{
			"operator credential.added api_key default", "operator credential.added access_token default read",
		}},
		{"one that the owner brings is added", func() {
			edit(func(s *v1alpha1.PropertySpec) {
				s.APIKeys = append(s.APIKeys, v1alpha1.PropertyAPIKey{Name: "own", SecretKeyRef: &v1alpha1.SecretKeyReference{Name: "brought", Key: "key"}})
			})
		}, []string{"operator credential.added api_key own"}},
		{"another value in the owner's Secret replaces it", func() { brought("another-key-of-the-owners") }, []string{"operator credential.replaced api_key own"}},
		{"without its Secret it is revoked", func() {
			if err := server.client.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "brought"}}); err != nil {
				t.Fatal(err)
			}
		}, []string{"operator credential.revoked api_key own"}},
		{"a publishable key and a token of another scope are added", func() {
			edit(func(s *v1alpha1.PropertySpec) {
				s.APIKeys = []v1alpha1.PropertyAPIKey{{Name: "default"}, {Name: "site", Type: v1alpha1.APIKeyPublishable, AllowedOrigins: []v1alpha1.Origin{"https://shop.example"}}}
				s.AccessTokens = append(s.AccessTokens, v1alpha1.PropertyAccessToken{Name: "owner", Scope: "admin"})
			})
		}, []string{"operator credential.added publishable_key site", "operator credential.added access_token owner admin"}},
		{"what it may do is changed while no operator runs", func() {
			running.stop()
			edit(func(s *v1alpha1.PropertySpec) { s.AccessTokens[1].Scope = "write" })
			running = startOperator(t, options)
		}, []string{"operator credential.changed access_token owner write scope"}},
		{"a Secret that is deleted has all of Weir's made anew", func() {
			if err := server.client.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "audited-credentials"}}); err != nil {
				t.Fatal(err)
			}
		}, []string{
			"operator credential.replaced api_key default", "operator credential.replaced publishable_key site",
			"operator credential.replaced access_token default read", "operator credential.replaced access_token owner write",
		}},
		{"one that is not named any more is revoked", func() {
			edit(func(s *v1alpha1.PropertySpec) { s.AccessTokens = s.AccessTokens[:1] })
		}, []string{"operator credential.revoked access_token owner write"}},
		{"another spec and another operator change nothing of them", func() {
			edit(func(s *v1alpha1.PropertySpec) { s.TimeZone = "Europe/Rome" })
			waitFor(t, namespace, "audited", v1alpha1.ConditionCredentialsReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
			restart()
			edit(func(s *v1alpha1.PropertySpec) { s.APIKeys = append(s.APIKeys, v1alpha1.PropertyAPIKey{Name: "last"}) })
		}, []string{"operator credential.added api_key last"}},
		{"a Property that goes takes all of them with it", func() {
			if err := server.client.Delete(ctx, property(namespace, "audited")); err != nil {
				t.Fatal(err)
			}
		}, []string{
			"operator credential.revoked api_key default", "operator credential.revoked api_key last",
			"operator credential.revoked publishable_key site", "operator credential.revoked access_token default read",
		}},
	} {
		step.do()
		want = append(want, step.want...)
		slices.Sort(want)
		eventually(t, func() error {
			if diff := cmp.Diff(want, lines.acts(t)); diff != "" {
				return fmt.Errorf("%s (-want +got):\n%s", step.sentence, diff)
			}
			return nil
		})
	}
	if text := lines.text.String(); strings.Contains(text, "key-of-the-owners") || strings.Count(text, `"property":"`+namespace+`/audited"`) != len(want) {
		t.Errorf("the audit log is\n%s", text)
	}
}
