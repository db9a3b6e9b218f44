package controllers_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/controllers"
)

// TestSomebodyElseMayScaleARole scales each role by the Deployment's scale, as KEDA and an autoscaler do.
func TestSomebodyElseMayScaleARole(t *testing.T) {
	t.Parallel()
	for role, spec := range map[string]func(*v1alpha1.PropertySpec, *int32){
		"collector": func(s *v1alpha1.PropertySpec, replicas *int32) {
			if s.Collector.Replicas, s.Collector.Autoscaling = replicas, nil; replicas == nil {
				s.Collector.Autoscaling = &v1alpha1.Autoscaling{Type: v1alpha1.AutoscalingExternal}
			}
		},
		"deliverer": func(s *v1alpha1.PropertySpec, replicas *int32) { leave(&s.Deliverer, replicas) },
		"query":     func(s *v1alpha1.PropertySpec, replicas *int32) { leave(&s.Query.Workload, replicas) },
	} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			namespace, ctx := newNamespace(t), context.Background()
			startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: redistest.URL(t)}})
			create(t, property(namespace, "shop", func(p *v1alpha1.Property) { spec(&p.Spec, new(int32(3))) }))
			p := settled(t, namespace, "shop")
			quiet(t, p)
			said := func(replicas *int32) {
				t.Helper()
				change(t, &v1alpha1.Property{}, namespace, "shop", func(p *v1alpha1.Property) { spec(&p.Spec, replicas) })
				settled(t, namespace, "shop")
				quiet(t, p)
			}
			has := func(want int32) {
				t.Helper()
				if got := *get(t, &appsv1.Deployment{}, namespace, "shop-"+role).Spec.Replicas; got != want {
					t.Fatalf("%d pods are asked for, want %d", got, want)
				}
			}
			scale := func(replicas int32) {
				t.Helper()
				deployment := get(t, &appsv1.Deployment{}, namespace, "shop-"+role)
				asked := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: replicas}}
				if err := server.client.SubResource("scale").Update(ctx, deployment, client.WithSubResourceBody(asked)); err != nil {
					t.Fatal(err)
				}
				quiet(t, p)
			}
			has(3)
			said(nil)
			has(3)
			if slices.Contains(names(owned(t, p)), "HorizontalPodAutoscaler shop-"+role) || !slices.Contains(names(owned(t, p)), "PodDisruptionBudget shop-"+role) {
				t.Errorf("beside another's autoscaler there are %v", names(owned(t, p)))
			}
			scale(5)
			has(5)
			change(t, &v1alpha1.Property{}, namespace, "shop", func(p *v1alpha1.Property) { p.Spec.TimeZone = "Europe/Berlin" })
			settled(t, namespace, "shop")
			quiet(t, p)
			has(5)
			scale(0)
			waitFor(t, namespace, "shop", v1alpha1.ConditionWorkloadsAvailable, metav1.ConditionFalse, v1alpha1.ReasonScaledToZero)
			has(0)
			scale(2)
			eventually(t, func() error {
				get(t, p, namespace, "shop")
				if said := message(p, v1alpha1.ConditionWorkloadsAvailable); strings.Contains(said, "scaled it to 0") {
					return errors.New(said)
				}
				return nil
			})
			said(new(int32(4)))
			eventually(t, func() error {
				if got := *get(t, &appsv1.Deployment{}, namespace, "shop-"+role).Spec.Replicas; got != 4 {
					return fmt.Errorf("%d pods are asked for, want the spec's 4 again", got)
				}
				return nil
			})
			said(new(int32(0))) // which somebody means
			rollOut(t, namespace, "shop")
			waitFor(t, namespace, "shop", v1alpha1.ConditionWorkloadsAvailable, metav1.ConditionTrue, v1alpha1.ReasonReady)
		})
	}
}

func leave(w *v1alpha1.Workload, replicas *int32) {
	if w.Replicas, w.Autoscaling = replicas, nil; replicas == nil {
		w.Autoscaling = &v1alpha1.ExternalAutoscaling{Type: "External"}
	}
}
