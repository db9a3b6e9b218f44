package controllers

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// readSecret returns a Secret beside the Property, nil where there is none. The metadata cache tells whether one that an
// earlier reconcile has read is still the same. It must not be changed.
func (r *Reconciler) readSecret(ctx context.Context, property *v1alpha1.Property, name string) (*corev1.Secret, error) {
	memory := r.memories.of(property)
	if known := memory.secrets[name]; known != nil {
		return known, nil
	}
	version, err := r.secretVersion(ctx, property.Namespace, name)
	if err != nil {
		return nil, err
	}
	if known := memory.secret(name, version); known != nil {
		return known, nil
	}
	// Not in the cache means gone, or not yet there: only the server knows.
	secret := &corev1.Secret{}
	err = r.Live.Get(ctx, types.NamespacedName{Namespace: property.Namespace, Name: name}, secret)
	if apierrors.IsNotFound(err) {
		memory.forgetSecret(name)
		return nil, nil
	}
	if err != nil {
		return nil, objectFailed("read", secretKey(name), nil, err)
	}
	memory.keep(secret)
	return secret, nil
}

// secretVersion returns a Secret's resource version from the metadata cache, "" where it has none.
func (r *Reconciler) secretVersion(ctx context.Context, namespace, name string) (string, error) {
	metadata := &metav1.PartialObjectMetadata{}
	metadata.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	err := r.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, metadata, client.UnsafeDisableDeepCopy)
	return metadata.ResourceVersion, client.IgnoreNotFound(err)
}
