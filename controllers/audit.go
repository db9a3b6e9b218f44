package controllers

import (
	"context"
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/audit"
	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/controllers/resources"
)

// applyCredentials applies a Secret with the hashes that pods go by, and writes down what that changes: so a key counts as
// added, or as revoked, when the pods are told, whoever has made it.
func (r *Reconciler) applyCredentials(ctx context.Context, property *v1alpha1.Property, object resources.Object) (ours bool, err error) {
	made, err := r.applyFirst(ctx, property, object)
	if err != nil {
		return false, err
	}
	if made { // so there was none before
		r.publish(ctx, property, object.Name, r.memories.of(property).published[object.Name], credentialsIn(object.Values()))
		return true, nil
	}
	before, err := r.publishedCredentials(ctx, property, object.Name)
	if err != nil {
		return false, err
	}
	if ours, err = r.applyAgain(ctx, property, object); err == nil && ours {
		r.publish(ctx, property, object.Name, before, credentialsIn(object.Values()))
	}
	return ours, err
}

// revokeAll writes down that no key and no token of a Property that is gone is accepted any more.
func (r *Reconciler) revokeAll(ctx context.Context, property *v1alpha1.Property, before map[string][]auth.Credential) {
	for _, role := range resources.Roles() {
		if name := resources.HashesSecretName(property, role); name != "" {
			r.publish(ctx, property, name, before[name], nil)
		}
	}
}

// allPublished returns what [Reconciler.publishedCredentials] does, by the Secrets' names.
func (r *Reconciler) allPublished(ctx context.Context, property *v1alpha1.Property) (map[string][]auth.Credential, error) {
	all := map[string][]auth.Credential{}
	for _, role := range resources.Roles() {
		name := resources.HashesSecretName(property, role)
		if name == "" {
			continue
		}
		var err error
		if all[name], err = r.publishedCredentials(ctx, property, name); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// publish writes down in what two lists differ, and remembers the later one. That a key or token leaves the list by itself when it
// expires is nobody's act.
func (r *Reconciler) publish(ctx context.Context, property *v1alpha1.Property, secret string, before, after []auth.Credential) {
	id, now := property.Namespace+"/"+property.Name, r.Options.Now()
	before = slices.DeleteFunc(slices.Clone(before), func(c auth.Credential) bool {
		expired := c.Prefix != "" && c.ExpirationTime != nil && !now.Before(*c.ExpirationTime)
		return expired && !slices.ContainsFunc(after, func(a auth.Credential) bool { return a.Name == c.Name })
	})
	for _, entry := range audit.CredentialChanges(id, audit.Party{Kind: audit.Operator}, before, after) {
		r.Options.Audit.Write(ctx, entry)
	}
	r.memories.of(property).published[secret] = after
}

// publishedCredentials returns what a Secret has told the pods so far: from memory, or from the server for an operator that
// has just started. Where nobody keeps an audit log it is not asked for.
func (r *Reconciler) publishedCredentials(ctx context.Context, property *v1alpha1.Property, name string) ([]auth.Credential, error) {
	if known, found := r.memories.of(property).published[name]; found || r.Options.Audit == nil {
		return known, nil
	}
	secret := &corev1.Secret{}
	err := r.Live.Get(ctx, types.NamespacedName{Namespace: property.Namespace, Name: name}, secret)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, objectFailed("read", secretKey(name), nil, err)
	}
	if !metav1.IsControlledBy(secret, property) {
		return nil, nil
	}
	return credentialsIn(secret.Data), nil
}

// credentialsIn reads the one list that a Secret holds. Where somebody has put something else there, the pods have none.
func credentialsIn(data map[string][]byte) []auth.Credential {
	for _, text := range data {
		var list []auth.Credential
		if json.Unmarshal(text, &list) == nil {
			return list
		}
	}
	return nil
}
