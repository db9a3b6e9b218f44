package controllers_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/audit"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/controllers"
)

// listedReader notes what is read past the cache.
type listedReader struct {
	client.Reader
	reads *[]string
}

func (r listedReader) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	*r.reads = append(*r.reads, fmt.Sprintf("get %T %s %s", object, object.GetObjectKind().GroupVersionKind().Kind, key.Name))
	return r.Reader.Get(ctx, key, object, options...)
}

// TestAPropertyCostsSoManyCalls has a Property that is like what people have, and an operator that keeps an audit log. Each step is one reconcile,
// with a cache that has all that the one before wrote.
func TestAPropertyCostsSoManyCalls(t *testing.T) {
	hand := newByHand(t)
	recorder := events.NewFakeRecorder(100)
	operator, stop := hand.start(newFuse(forever), controllers.Options{
		RedisURL: redistest.URL(t), Exposure: controllers.ExposureRules{AllowedHosts: map[string][]string{"*": {"*"}}},
		Audit: audit.New(&strings.Builder{}, slog.New(slog.DiscardHandler), time.Now),
	}, recorder)
	defer stop()
	var reads, writes []string
	operator.Live = listedReader{operator.Live, &reads}
	operator.Client = &watchedClient{Client: operator.Client, before: func(call string) error {
		writes = append(writes, call)
		return nil
	}}
	create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: hand.namespace, Name: "crm"}, StringData: map[string]string{"signingSecret": "whsec_calls"}})

	for _, step := range []struct {
		name                  string
		do                    func(*testing.T)
		reads, writes, events int
	}{
		{"a new Property is applied", func(t *testing.T) { create(t, usualProperty(hand.namespace, "shop")) }, 0, 26, 2},
		{"nothing has changed", func(*testing.T) {}, 0, 0, 0},
		{"its pods run", func(t *testing.T) { rollOut(t, hand.namespace, "shop") }, 0, 1, 2},
	} {
		t.Run(step.name, func(t *testing.T) {
			reads, writes = nil, nil
			step.do(t)
			hand.caughtUp(t, "shop")
			if _, err := operator.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: hand.namespace, Name: "shop"}}); err != nil {
				t.Fatal(err)
			}
			if len(reads) > step.reads {
				t.Errorf("%d reads, want at most %d:\n%s", len(reads), step.reads, strings.Join(reads, "\n"))
			}
			if len(writes) > step.writes {
				t.Errorf("%d writes, want at most %d:\n%s", len(writes), step.writes, strings.Join(writes, "\n"))
			}
			if told := len(recorder.Events); told > step.events {
				t.Errorf("%d events, want at most %d", told, step.events)
			}
			for len(recorder.Events) > 0 {
				<-recorder.Events
			}
		})
	}
	if p := get(t, &v1alpha1.Property{}, hand.namespace, "shop"); !meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionReady) {
		t.Errorf("after these steps the Property is not Ready: %v", p.Status.Conditions)
	}
}

// usualProperty is like what people have: two platforms, hosts of its own, else the defaults.
func usualProperty(namespace, name string) *v1alpha1.Property {
	return property(namespace, name, func(p *v1alpha1.Property) {
		p.Spec.Platforms = []v1alpha1.Platform{
			{Name: "console", Type: platforms.TypeLog},
			{Name: "crm", Type: platforms.TypeWebhook, Settings: platforms.Settings{Webhook: &platforms.Webhook{URL: "https://crm.example.com/hook"}},
				CredentialsSecretRef: &v1alpha1.SecretReference{Name: "crm"}},
		}
		p.Spec.Exposure = v1alpha1.Exposure{Type: v1alpha1.ExposureIngress, CollectHost: name + ".calls.example.com", APIHost: "api.calls.example.com"}
	})
}

// caughtUp waits until the cache has the Property and all that it owns as the server has them.
func (h *byHand) caughtUp(t *testing.T, name string) {
	t.Helper()
	p := get(t, &v1alpha1.Property{}, h.namespace, name)
	want := owned(t, p)
	eventually(t, func() error {
		if !h.seen(t.Context(), name) {
			return fmt.Errorf("the cache has not seen %s yet", name)
		}
		if got := ownedIn(t, h.manager.GetClient(), p); !maps.Equal(got, want) {
			return fmt.Errorf("the cache does not have %v yet", differing(got, want))
		}
		return nil
	})
}

// TestWhoeverIsFirstKeepsAName has somebody else make an object of a name in the moment in which the operator does, when its cache and
// what it has read say that the name is free.
func TestWhoeverIsFirstKeepsAName(t *testing.T) {
	hand, address := newByHand(t), redistest.URL(t)
	for sentence, row := range map[string]struct {
		name      string // of the Property
		kind      schema.GroupVersionKind
		suffix    string
		condition string
	}{
		"a ConfigMap":                  {"settings", corev1.SchemeGroupVersion.WithKind("ConfigMap"), "-config", v1alpha1.ConditionWorkloadsAvailable},
		"a ServiceAccount":             {"account", corev1.SchemeGroupVersion.WithKind("ServiceAccount"), "-query", v1alpha1.ConditionWorkloadsAvailable},
		"a Deployment":                 {"pods", appsv1.SchemeGroupVersion.WithKind("Deployment"), "-query", v1alpha1.ConditionWorkloadsAvailable},
		"the Secret of hashes":         {"hashes", corev1.SchemeGroupVersion.WithKind("Secret"), "-api-keys", v1alpha1.ConditionWorkloadsAvailable},
		"the Secret of keys":           {"keys", corev1.SchemeGroupVersion.WithKind("Secret"), "-credentials", v1alpha1.ConditionCredentialsReady},
		"the Secret of a role's user":  {"user", corev1.SchemeGroupVersion.WithKind("Secret"), "-redis-query", v1alpha1.ConditionRedisReady},
		"the Secret with the ledger":   {"ledger", corev1.SchemeGroupVersion.WithKind("Secret"), "-erasures", v1alpha1.ConditionErasuresReady},
		"an object of another's kinds": {"monitor", schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: "PodMonitor"}, "-pods", v1alpha1.ConditionWorkloadsAvailable},
	} {
		t.Run(sentence, func(t *testing.T) {
			operator, stop := hand.start(newFuse(forever), controllers.Options{RedisURL: address}, &events.FakeRecorder{})
			defer stop()
			theirs := foreignObject(row.kind, hand.namespace, row.name+row.suffix)
			there := false
			operator.Client = &watchedClient{Client: operator.Client, before: func(call string) error {
				if !there && strings.HasSuffix(call, " "+theirs.GetName()) && strings.Contains(call, row.kind.Kind) {
					create(t, theirs)
					there = true
				}
				return nil
			}}
			create(t, property(hand.namespace, row.name))
			hand.caughtUp(t, row.name)
			request := reconcile.Request{NamespacedName: client.ObjectKey{Namespace: hand.namespace, Name: row.name}}
			eventually(t, func() error {
				_, err := operator.Reconcile(t.Context(), request)
				p := get(t, &v1alpha1.Property{}, hand.namespace, row.name)
				if found := meta.FindStatusCondition(p.Status.Conditions, row.condition); found == nil || found.Reason != v1alpha1.ReasonObjectConflict {
					return errors.Join(fmt.Errorf("%s is %v, want %s", row.condition, found, v1alpha1.ReasonObjectConflict), err)
				}
				return err
			})
			if !there {
				t.Error("nobody was first")
			}
			if now := get(t, theirs.DeepCopy(), hand.namespace, theirs.GetName()); now.GetResourceVersion() != theirs.GetResourceVersion() {
				t.Errorf("somebody else's %s has become %v", row.kind.Kind, now.Object)
			}
		})
	}
}
