package controllers

import (
	"context"
	"log/slog"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/collector/stream"
	"github.com/weir-dev/weir/controllers/resources"
)

// trustedNow is what the operator trusts at the moment.
type trustedNow struct{ tls stream.TLS }

func (s *trustedNow) Read() (stream.TLS, error) { return s.tls, nil }

// A Redis whose certificates have run out is away. When it is back with others, what a Property that was deleted
// meanwhile has left there is removed by these.
func TestWhatIsLeftIsRemovedWhenRedisIsBackWithOtherCertificates(t *testing.T) {
	ctx := t.Context()
	old, renewed := redistest.NewAuthority(t), redistest.NewAuthority(t)
	certificate, key := old.Sign(t, nil)
	server := redistest.StartTLS(t, certificate, key, "")
	trusted := &trustedNow{stream.TLS{CA: old.PEM}}
	access := NewRedisAccess(slog.New(slog.DiscardHandler), trusted, nil, time.Now)
	t.Cleanup(func() {
		if err := access.close(); err != nil {
			t.Error(err)
		}
	})
	property := &v1alpha1.Property{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shops", Name: "shop"},
		Spec:       v1alpha1.PropertySpec{DeletionPolicy: v1alpha1.DeletionPolicyDelete, Retention: v1alpha1.Retention{Days: 1}},
	}
	target := redisTarget{url: server.Address, tls: trusted.tls, own: true}
	if state, err := access.reach(ctx, target, property); err != nil || !state.reachable() {
		t.Fatalf("Redis is %v, %v", state, err)
	}
	user := roleUser{role: resources.Collector, name: redisUserName(property, resources.Collector), password: "secret"}
	if err := access.ensure(ctx, target, property, []roleUser{user}); err != nil {
		t.Fatal(err)
	}
	certificate, key = renewed.Sign(t, nil)
	server.Give(t, certificate, key, "")
	if err := server.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	if err := access.release(ctx, target, property); err == nil {
		t.Fatal("a Redis of another authority was cleared")
	}
	if !access.owe(property, func(context.Context) bool { return true }) {
		t.Fatal("what is left is not remembered")
	}
	trusted.tls = stream.TLS{CA: renewed.PEM}
	access.lookAtCertificates(ctx)
	for _, server := range access.list() {
		access.look(ctx, server)
	}
	if access.desiredOf(keyOf(property)).debt != nil {
		t.Error("what the Property left is still there")
	}
	if got := len(access.list()); got != 0 {
		t.Errorf("%d Redis servers are looked at, for nobody", got)
	}
}
