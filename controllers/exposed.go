package controllers

import (
	"context"
	"fmt"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/controllers/resources"
)

// exposed looks whether what the hosts are to be reached through is there. What was applied stays: a certificate's Secret
// often comes after the Ingress that asks for it.
func (r *Reconciler) exposed(ctx context.Context, s *scope) error {
	if s.exposureProblem != nil || len(s.failures[v1alpha1.ConditionExposed]) > 0 {
		return nil
	}
	look := map[v1alpha1.ExposureType]func(context.Context, *scope) (*conditionReason, error){
		v1alpha1.ExposureIngress: r.throughIngress, v1alpha1.ExposureGateway: r.throughGateway,
	}[s.property.Spec.Exposure.Type]
	if look == nil {
		return nil
	}
	var err error
	if s.exposureGap, err = look(ctx, s); s.exposureGap != nil {
		s.again(foreignInterval) // nobody tells of classes, and not everybody of routes
	}
	return err
}

func (r *Reconciler) throughIngress(ctx context.Context, s *scope) (*conditionReason, error) {
	settings := s.property.Spec.Exposure.Ingress
	if settings == nil {
		return nil, nil
	}
	if name := settings.TLSSecretName; name != "" {
		version, err := r.secretVersion(ctx, s.property.Namespace, name)
		if err != nil {
			return nil, err
		}
		if version == "" {
			return reasonf(v1alpha1.ReasonSecretMissing,
				"spec.exposure.ingress.tlsSecretName: there is no Secret %s in namespace %s; create it with the type kubernetes.io/tls", name, s.property.Namespace), nil
		}
	}
	if settings.ClassName == "" {
		return nil, nil
	}
	class := partial(networkingv1.SchemeGroupVersion.WithKind("IngressClass"))
	err := r.Live.Get(ctx, client.ObjectKey{Name: settings.ClassName}, class)
	switch {
	case apierrors.IsNotFound(err):
		return reasonf(v1alpha1.ReasonIngressClassMissing, "spec.exposure.ingress.className: the cluster has no IngressClass %s; name one that it has", settings.ClassName), nil
	case apierrors.IsForbidden(err):
		return r.publishedAddress(ctx, s, settings.ClassName)
	}
	return nil, objectFailed("read", objectKey{class.GroupVersionKind(), settings.ClassName}, nil, err)
}

// publishedAddress is for an operator that may not read classes: an Ingress that somebody has given an address is served.
func (r *Reconciler) publishedAddress(ctx context.Context, s *scope, class string) (*conditionReason, error) {
	name := resources.ObjectName(s.property, resources.Collector)
	ingress := &networkingv1.Ingress{}
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: s.property.Namespace, Name: name}, ingress)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, objectFailed("read", objectKey{networkingv1.SchemeGroupVersion.WithKind("Ingress"), name}, nil, err)
	}
	if len(ingress.Status.LoadBalancer.Ingress) > 0 {
		return nil, nil
	}
	return reasonf(v1alpha1.ReasonIngressClassUnknown,
		"the operator may not look whether there is an IngressClass %s, and nobody has given the Ingress %s an address", class, name), nil
}

// throughGateway goes by what the Gateways' controllers say of the routes: they have to say so of each that they take.
func (r *Reconciler) throughGateway(ctx context.Context, s *scope) (*conditionReason, error) {
	for kind, there := range s.available {
		if !there || !resources.IsGatewayRoute(kind) {
			continue
		}
		routes, err := r.owned(ctx, s.property, kind)
		if err != nil {
			return nil, err
		}
		for i := range routes {
			route := &unstructured.Unstructured{}
			route.SetGroupVersionKind(kind)
			key := client.ObjectKeyFromObject(&routes[i])
			if err := client.IgnoreNotFound(r.Live.Get(ctx, key, route)); err != nil {
				return nil, objectFailed("read", objectKey{kind, key.Name}, nil, err)
			}
			if gap := notAccepted(s.property, route); gap != nil {
				return gap, nil
			}
		}
	}
	return nil, nil
}

// notAccepted names the first Gateway that has not accepted a route.
func notAccepted(property *v1alpha1.Property, route *unstructured.Unstructured) *conditionReason {
	parents, _, _ := unstructured.NestedSlice(route.Object, "status", "parents")
	for i, reference := range property.Spec.Exposure.Gateway.ParentRefs {
		accepted := slices.ContainsFunc(parents, func(parent any) bool { return accepts(parent, property.Namespace, reference) })
		if accepted {
			continue
		}
		namespace := reference.Namespace
		if namespace == "" {
			namespace = property.Namespace
		}
		return reasonf(v1alpha1.ReasonRouteNotAccepted,
			"spec.exposure.gateway.parentRefs[%d]: no Gateway %s in namespace %s has accepted the HTTPRoute %s; is it there, and does it let routes of namespace %s in?",
			i, reference.Name, namespace, route.GetName(), property.Namespace)
	}
	return nil
}

// accepts says whether a member of a route's status.parents is that a Gateway has accepted it.
func accepts(parent any, namespace string, reference v1alpha1.GatewayReference) bool {
	entry, isObject := parent.(map[string]any)
	if !isObject {
		return false
	}
	text := func(fields ...string) string {
		value, _, _ := unstructured.NestedFieldNoCopy(entry, fields...)
		return strings.TrimPrefix(fmt.Sprint(value), "<nil>")
	}
	in := func(given string) string {
		if given == "" {
			return namespace
		}
		return given
	}
	if text("parentRef", "name") != reference.Name || in(text("parentRef", "namespace")) != in(reference.Namespace) || text("parentRef", "sectionName") != reference.SectionName {
		return false
	}
	conditions, _, _ := unstructured.NestedSlice(entry, "conditions")
	return slices.ContainsFunc(conditions, func(condition any) bool {
		members, _ := condition.(map[string]any)
		return members["type"] == "Accepted" && members["status"] == "True"
	})
}
