package property

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/cli/cluster"
)

// Names are those of the Properties of the namespace.
func Names(ctx context.Context, reached *cluster.Cluster) ([]string, error) {
	var properties v1alpha1.PropertyList
	if err := reached.List(ctx, &properties, client.InNamespace(reached.Namespace)); err != nil {
		return nil, err
	}
	names := make([]string, len(properties.Items))
	for i := range properties.Items {
		names[i] = properties.Items[i].Name
	}
	return names, nil
}

// Platforms are the names of a Property's platforms.
func Platforms(ctx context.Context, reached *cluster.Cluster, name string) ([]string, error) {
	property, err := reached.Property(ctx, name)
	if err != nil {
		return nil, err
	}
	var names []string
	for i := range property.Spec.Platforms {
		names = append(names, property.Spec.Platforms[i].Name)
	}
	return names, nil
}

// Namespaces are those of the cluster.
func Namespaces(ctx context.Context, reached *cluster.Cluster) ([]string, error) {
	var namespaces corev1.NamespaceList
	if err := reached.List(ctx, &namespaces); err != nil {
		return nil, err
	}
	names := make([]string, len(namespaces.Items))
	for i := range namespaces.Items {
		names[i] = namespaces.Items[i].Name
	}
	return names, nil
}
