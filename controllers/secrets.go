package controllers

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// secretCache remembers the few Secrets that are read by value, so that a reconcile which changes nothing asks
// the API server nothing.
type secretCache struct {
	mu    sync.Mutex
	known map[types.NamespacedName]*corev1.Secret
}

// readSecret returns a Secret, nil where there is none. The metadata cache tells whether the remembered one is
// still the same. It must not be changed.
func (r *Reconciler) readSecret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	key := types.NamespacedName{Namespace: namespace, Name: name}
	version, err := r.secretVersion(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	if known := r.secrets.get(key); known != nil && version != "" && known.ResourceVersion == version {
		return known, nil
	}
	// Not in the cache means gone, or not yet there: only the server knows.
	secret := &corev1.Secret{}
	if err := r.Live.Get(ctx, key, secret); apierrors.IsNotFound(err) {
		r.secrets.forget(key)
		return nil, nil
	} else if err != nil {
		return nil, objectFailed("read", secretKey(name), nil, err)
	}
	secret.ManagedFields = nil
	r.secrets.put(key, secret)
	return secret, nil
}

// secretVersion returns a Secret's resource version from the metadata cache, "" where it has none.
func (r *Reconciler) secretVersion(ctx context.Context, namespace, name string) (string, error) {
	metadata := &metav1.PartialObjectMetadata{}
	metadata.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	err := r.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, metadata)
	return metadata.ResourceVersion, client.IgnoreNotFound(err)
}

func (c *secretCache) get(key types.NamespacedName) *corev1.Secret {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known[key]
}

func (c *secretCache) put(key types.NamespacedName, secret *corev1.Secret) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil {
		c.known = map[types.NamespacedName]*corev1.Secret{}
	}
	c.known[key] = secret
}

func (c *secretCache) forget(keys ...types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, key := range keys {
		delete(c.known, key)
	}
}
