package controllers_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/controllers"
)

// releaseOf makes a release's leases, with a clock of the test's.
func releaseOf(name string, clock *time.Time, namespaces ...string) *controllers.NamespaceLeases {
	return &controllers.NamespaceLeases{
		Client: server.client, Holder: name, Namespaces: namespaces, Duration: 90 * time.Second,
		Now: func() time.Time { return *clock }, Logger: slog.New(slog.DiscardHandler),
	}
}

// rival fails where the API server does.
func rival(t *testing.T, l *controllers.NamespaceLeases, namespace string) string {
	t.Helper()
	other, err := l.Rival(context.Background(), namespace)
	if err != nil {
		t.Fatal(err)
	}
	return other
}

// freeCluster gives the Lease of whoever serves all namespaces back when the test ends.
func freeCluster(t *testing.T) {
	t.Cleanup(func() {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: controllers.LeaseName}}
		if err := client.IgnoreNotFound(server.client.Delete(context.Background(), lease)); err != nil {
			t.Error(err)
		}
	})
}

func TestOneReleaseServesANamespace(t *testing.T) {
	clock := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	tests := map[string]struct {
		first, second []string // namespaces; nil for all; ours and other stand for two of the test's
		namespace     string
		want          bool // that the second finds the first there
	}{
		"two that serve everything":                           {nil, nil, "ours", true},
		"two that serve the same namespace":                   {[]string{"ours"}, []string{"ours"}, "ours", true},
		"two whose namespaces overlap, in one of both":        {[]string{"ours", "other"}, []string{"ours"}, "ours", true},
		"two whose namespaces overlap, where they do not":     {[]string{"ours"}, []string{"ours", "other"}, "other", false},
		"one that serves everything before one of some":       {nil, []string{"ours"}, "ours", true},
		"one of some namespaces before one that serves all":   {[]string{"ours"}, nil, "ours", true},
		"the same, in a namespace that the first leaves free": {[]string{"ours"}, nil, "other", false},
		"two that serve different namespaces":                 {[]string{"ours"}, []string{"other"}, "other", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			freeCluster(t)
			named := map[string]string{"ours": newNamespace(t), "other": newNamespace(t)}
			serve := func(list []string) []string {
				var namespaces []string
				for _, n := range list {
					namespaces = append(namespaces, named[n])
				}
				return namespaces
			}
			first, second := releaseOf("first/weir", &clock, serve(tt.first)...), releaseOf("second/weir", &clock, serve(tt.second)...)
			if other := rival(t, first, named["ours"]); other != "" {
				t.Fatalf("the first finds %s", other)
			}
			want := ""
			if tt.want {
				want = "first/weir"
			}
			if got := rival(t, second, named[tt.namespace]); got != want {
				t.Errorf("the second finds %q, want %q", got, want)
			}
			if got := rival(t, first, named["ours"]); got != "" {
				t.Errorf("then the first finds %s", got)
			}
		})
	}
}

func TestAReplicaOrANewerVersionOfTheSameReleaseIsNoRival(t *testing.T) {
	clock := time.Now()
	namespace := newNamespace(t)
	if other := rival(t, releaseOf("weir-system/weir", &clock, namespace), namespace); other != "" {
		t.Fatalf("the first finds %s", other)
	}
	if other := rival(t, releaseOf("weir-system/weir", &clock, namespace), namespace); other != "" {
		t.Errorf("the next finds %s", other)
	}
}

func TestAReleaseThatIsGoneLosesItsNamespaces(t *testing.T) {
	clock := time.Now()
	namespace := newNamespace(t)
	gone, next := releaseOf("gone/weir", &clock, namespace), releaseOf("next/weir", &clock, namespace)
	if other := rival(t, gone, namespace); other != "" {
		t.Fatalf("the first finds %s", other)
	}
	for _, step := range []struct {
		after time.Duration
		renew bool
		want  string
	}{
		{after: 0, want: "gone/weir"},
		{after: 89 * time.Second, renew: true, want: "gone/weir"}, // it has renewed meanwhile
		{after: 89 * time.Second, want: "gone/weir"},
		{after: time.Second, want: ""},
	} {
		clock = clock.Add(step.after)
		if step.renew {
			rival(t, gone, namespace)
		}
		if got := rival(t, next, namespace); got != step.want {
			t.Fatalf("%s later it finds %q, want %q", step.after, got, step.want)
		}
	}
	clock = clock.Add(time.Minute)
	if got := rival(t, gone, namespace); got != "next/weir" {
		t.Errorf("when the first comes back it finds %q", got)
	}
}

// TestASecondReleaseLeavesObjectsAlone runs two operators for one namespace, whose images differ: without leases they
// would undo each other's work for ever.
func TestASecondReleaseLeavesObjectsAlone(t *testing.T) {
	namespace := newNamespace(t)
	address := redistest.URL(t)
	begin := func(name string) (*controllers.NamespaceLeases, *operator) {
		leases := &controllers.NamespaceLeases{
			Client: server.client, Holder: name, Namespaces: []string{namespace}, Duration: 3 * time.Second, Now: time.Now, Logger: slog.New(slog.DiscardHandler),
		}
		return leases, startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{
			RedisURL: address, Image: "weir:" + strings.ReplaceAll(name, "/", "-"), Leases: leases,
		}})
	}
	_, first := begin("first/weir")
	create(t, property(namespace, "shop"))
	waitFor(t, namespace, "shop", v1alpha1.ConditionRedisReady, metav1.ConditionTrue, v1alpha1.ReasonReady)

	second, later := begin("second/weir")
	eventually(t, func() error {
		if err := second.Check(nil); err == nil {
			return fmt.Errorf("it is ready")
		} else if want := "namespace " + namespace + " is served by the release first/weir already"; !strings.Contains(err.Error(), want) {
			return fmt.Errorf("it says %w, want %q", err, want)
		}
		return nil
	})
	change(t, &v1alpha1.Property{}, namespace, "shop", func(p *v1alpha1.Property) { p.Spec.Retention.Days = 70 })
	eventually(t, func() error {
		if text := get(t, &corev1.ConfigMap{}, namespace, "shop-config").Data["property.json"]; !strings.Contains(text, "70") {
			return fmt.Errorf("the first has not applied it: %s", text)
		}
		return nil
	})
	if calls := later.since(0); len(calls) > 0 {
		t.Errorf("the second has written: %v", calls)
	}

	first.stop()
	eventually(t, func() error { return second.Check(nil) })
	eventually(t, func() error {
		if len(later.since(0)) == 0 {
			return fmt.Errorf("the second has written nothing although the first is gone")
		}
		return nil
	})
}

func TestNothingIsMadeInTheClustersOwnNamespaces(t *testing.T) {
	started := startOperator(t, operatorOptions{namespaces: []string{"kube-system"}, Options: controllers.Options{RedisURL: redistest.URL(t)}})
	p := property("kube-system", "shop")
	create(t, p)
	t.Cleanup(func() {
		if err := server.client.Delete(context.Background(), p); err != nil {
			t.Error(err)
		}
	})
	waitFor(t, "kube-system", "shop", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonNamespaceNotServed)
	for _, call := range started.since(0) {
		if !strings.HasPrefix(call, "patch status") {
			t.Errorf("it has made something: %s", call)
		}
	}
}
