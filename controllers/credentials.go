package controllers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/controllers/resources"
)

// credentialKind is a kind of key or token that Weir makes.
type credentialKind struct {
	// secretKey begins the keys of the credentials Secret; the name in the spec follows.
	secretKey string
	what      string
	// begins is how what generate makes begins.
	begins   string
	generate func() string
}

var (
	secretKeys      = credentialKind{"api-key.", "an API key", auth.APIKeyPrefix, auth.NewAPIKey}
	publishableKeys = credentialKind{"publishable-key.", "a publishable API key", auth.PublishableKeyPrefix, auth.NewPublishableKey}
	accessTokens    = credentialKind{resources.ShownToken, "an access token", auth.AccessTokenPrefix, auth.NewAccessToken}
)

// kindOf returns the kind of an API key. A key whose type changes is made anew: what was secret is never published, and
// what was published never becomes secret.
func kindOf(key v1alpha1.PropertyAPIKey) credentialKind {
	if key.Type == v1alpha1.APIKeyPublishable {
		return publishableKeys
	}
	return secretKeys
}

// credentials makes the keys and tokens that the spec asks for and nobody has made yet, and drops those that it
// no longer names. What exists is never overwritten. A key or token that its owner brings and that is not there is not
// accepted: deleting its Secret revokes it.
func (r *Reconciler) credentials(ctx context.Context, s *scope) error {
	s.accepted = s.property.DeepCopy()
	s.accepted.Spec.APIKeys, s.accepted.Spec.AccessTokens = nil, nil
	s.credentials = resources.Credentials{APIKeys: map[string]string{}, AccessTokens: map[string]string{}}
	secret, taken, err := r.credentialsSecret(ctx, s)
	s.credentialsProblem = taken
	if secret == nil {
		s.credentialsUnknown = true
		return err
	}
	errs := []error{err}
	// Keys first: a token that is one of them may stand in a page.
	values := map[string]string{}
	for i, key := range s.property.Spec.APIKeys {
		field := fmt.Sprintf("spec.apiKeys[%d]", i)
		value := r.credentialOf(ctx, s, secret, specCredential{
			kindOf(key), key.Name, field, key.SecretKeyRef, resources.BroughtAPIKey,
		}, &errs)
		if value != "" && s.alone(value, field, values) {
			s.credentials.APIKeys[key.Name] = value
			s.accepted.Spec.APIKeys = append(s.accepted.Spec.APIKeys, key)
		}
	}
	for i, token := range s.property.Spec.AccessTokens {
		field := fmt.Sprintf("spec.accessTokens[%d]", i)
		value := r.credentialOf(ctx, s, secret, specCredential{
			accessTokens, token.Name, field, token.SecretKeyRef, resources.BroughtAccessToken,
		}, &errs)
		if value != "" && s.alone(value, field, values) {
			s.credentials.AccessTokens[token.Name] = value
			s.accepted.Spec.AccessTokens = append(s.accepted.Spec.AccessTokens, token)
		}
	}
	return errors.Join(errs...)
}

// alone says whether nothing before has the value of a key or token; values say what has which. Removing one of two that are the same
// would revoke nothing.
func (s *scope) alone(value, field string, values map[string]string) bool {
	other, taken := values[value]
	if !taken {
		values[value] = field
		return true
	}
	s.credentialsProblem = cmp.Or(s.credentialsProblem, reasonf(v1alpha1.ReasonSecretInvalid, "%s: has the same value as %s, and is refused; give each a value of its own", field, other))
	return false
}

// specCredential is a key or token of the spec. Where ref is not nil its owner brings it, and read says whether it will do.
type specCredential struct {
	kind  credentialKind
	name  string
	field string
	ref   *v1alpha1.SecretKeyReference
	read  func(string) (string, error)
}

// credentialOf returns the value of a key or token, "" where there is none that will do; the condition says why, or an error.
func (r *Reconciler) credentialOf(ctx context.Context, s *scope, secret *corev1.Secret, c specCredential, errs *[]error) string {
	if c.ref == nil {
		return s.madeCredential(secret, c.kind, c.name)
	}
	field := c.field + ".secretKeyRef"
	value, missing, err := r.secretValue(ctx, s.property, field, *c.ref)
	if err != nil {
		*errs, s.credentialsUnknown = append(*errs, err), true
		return ""
	}
	if missing == nil {
		fit, unfit := c.read(value)
		if unfit == nil {
			return fit
		}
		missing = reasonf(v1alpha1.ReasonSecretInvalid, "%s: key %s of Secret %s: %v", field, c.ref.Key, c.ref.Name, unfit)
	}
	s.credentialsProblem = cmp.Or(s.credentialsProblem, missing)
	return ""
}

// madeCredential returns a key or token that Weir has made, "" where the Secret has something else in its place: whoever may
// edit that must not thereby make a key that can be guessed.
func (s *scope) madeCredential(secret *corev1.Secret, kind credentialKind, name string) string {
	key := kind.secretKey + name
	value := string(secret.Data[key])
	if value == "" || strings.HasPrefix(value, kind.begins) && auth.WellFormed(value) {
		return value
	}
	s.credentialsProblem = cmp.Or(s.credentialsProblem, reasonf(v1alpha1.ReasonSecretInvalid,
		"Secret %s: key %s does not hold %s that Weir has made (%s, 33 letters and digits, the last six a checksum), and is refused; "+
			"delete that key from the Secret, and Weir makes another", secret.Name, key, kind.what, kind.begins))
	return ""
}

// secretValue reads what the spec refers to. The error says which Secret or key is missing.
func (r *Reconciler) secretValue(ctx context.Context, property *v1alpha1.Property, field string, ref v1alpha1.SecretKeyReference) (string, *conditionReason, error) {
	secret, err := r.readSecret(ctx, property, ref.Name)
	if err != nil {
		return "", nil, err
	}
	if secret == nil {
		return "", reasonf(v1alpha1.ReasonSecretMissing, "%s: there is no Secret %s in namespace %s; create it with the key %s", field, ref.Name, property.Namespace, ref.Key), nil
	}
	value, found := secret.Data[ref.Key]
	if !found {
		return "", reasonf(v1alpha1.ReasonSecretMissing, "%s: Secret %s has no key %s; add it", field, ref.Name, ref.Key), nil
	}
	return string(value), nil, nil
}

func reasonf(reason, format string, args ...any) *conditionReason {
	return &conditionReason{reason, fmt.Sprintf(format, args...)}
}

// leftByNamesake says whether a Secret was made for a Property of the same name that is gone: kept, or restored from a
// backup ahead of its Property. It is taken over with what it holds, so that keys go on being valid.
func leftByNamesake(secret *corev1.Secret, property *v1alpha1.Property) bool {
	owner := metav1.GetControllerOf(secret)
	return (owner == nil || (owner.Kind == v1alpha1.Kind && owner.Name == property.Name && owner.UID != property.UID)) &&
		(secret.Type == corev1.SecretTypeOpaque || secret.Type == "") &&
		equality.Semantic.DeepEqual(resources.Labels(property), selected(secret.Labels, resources.Labels(property)))
}

// selected are those of the labels that are among others.
func selected(labels, among map[string]string) map[string]string {
	found := map[string]string{}
	for key := range among {
		if value, there := labels[key]; there {
			found[key] = value
		}
	}
	return found
}

// credentialsSecret returns the owner-readable Secret as the spec wants it.
func (r *Reconciler) credentialsSecret(ctx context.Context, s *scope) (*corev1.Secret, *conditionReason, error) {
	return r.createOnce(ctx, s, resources.CredentialsSecretName(s.property), func(data map[string][]byte) map[string][]byte {
		wanted := map[string]func() string{}
		for _, key := range s.property.Spec.APIKeys {
			if key.SecretKeyRef == nil {
				wanted[kindOf(key).secretKey+key.Name] = kindOf(key).generate
			}
		}
		for _, token := range s.property.Spec.AccessTokens {
			if token.SecretKeyRef == nil {
				wanted[accessTokens.secretKey+token.Name] = accessTokens.generate
			}
		}
		next := map[string][]byte{}
		var made []string
		for name, generate := range wanted {
			if next[name] = data[name]; len(next[name]) == 0 {
				next[name] = []byte(generate())
				made = append(made, name)
			}
		}
		s.noteReplaced(made, data == nil)
		return next
	})
}

// noteReplaced says that credentials were made which had been there before: whoever deletes them revokes them, and nobody
// can bring them back, for the pods have only their hashes. It is said until the spec changes.
func (s *scope) noteReplaced(made []string, secretMissing bool) {
	name, status := resources.CredentialsSecretName(s.property), &s.property.Status
	before := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionCredentialsReady)
	sameSpec := status.ObservedGeneration == s.property.Generation && before != nil && before.Status == metav1.ConditionTrue
	s.credentialsNote = nil // of a Secret that was there all the same
	switch {
	case status.CredentialsSecretRef == nil: // there were none
	case len(made) > 0 && (secretMissing || sameSpec):
		slices.Sort(made)
		s.credentialsNote = reasonf(v1alpha1.ReasonCredentialsReplaced,
			"Secret %s was deleted, or lacked them: %s were made anew, and the ones before are refused; give the senders and readers the new ones",
			name, strings.Join(made, ", "))
	case len(made) == 0 && sameSpec && before.Reason == v1alpha1.ReasonCredentialsReplaced:
		s.credentialsNote = &conditionReason{before.Reason, before.Message}
	}
}

// secretKey names a Secret in errors.
func secretKey(name string) objectKey {
	return objectKey{corev1.SchemeGroupVersion.WithKind("Secret"), name}
}

// createOnce keeps a Secret whose content no apply may ever overwrite: next says what shall be in it, given what
// is. It is written with a precondition, so that of two operators one makes the keys. The error says that the name is
// taken by somebody else's Secret. Beside an error it returns the Secret as it is, where it could be read.
func (r *Reconciler) createOnce(ctx context.Context, s *scope, name string, next func(map[string][]byte) map[string][]byte) (*corev1.Secret, *conditionReason, error) {
	made, err := r.createFirst(ctx, s, name, next)
	if made != nil || err != nil {
		return made, nil, err
	}
	current, err := r.readSecret(ctx, s.property, name)
	if err != nil {
		return nil, nil, err
	}
	if current == nil {
		made, err := r.createSecret(ctx, s.property, name, next(nil))
		return made, nil, err
	}
	if !metav1.IsControlledBy(current, s.property) && !leftByNamesake(current, s.property) {
		s.again(foreignInterval)
		s.noteForeign(secretKey(name))
		return nil, reasonf(v1alpha1.ReasonObjectConflict,
			"Secret %s exists and is not this Property's; delete it, or name the Property otherwise", name), nil
	}
	data := next(current.Data)
	if maps.EqualFunc(data, current.Data, slices.Equal[[]byte]) && metav1.IsControlledBy(current, s.property) {
		return current, nil, nil
	}
	updated := current.DeepCopy()
	updated.Data, updated.OwnerReferences = data, []metav1.OwnerReference{resources.OwnerReference(s.property)}
	asRead := client.MergeFromWithOptions(current, client.MergeFromWithOptimisticLock{}) // the memory has not all of it
	if err := r.Client.Patch(ctx, updated, asRead, client.FieldOwner(resources.ManagedBy)); err != nil {
		return current, nil, objectFailed("update", secretKey(name), data, err)
	}
	r.memories.of(s.property).keep(updated)
	return updated, nil, nil
}

// createFirst makes a Secret of which neither the cache nor the memory knows. It returns nil where there is one all the same.
func (r *Reconciler) createFirst(ctx context.Context, s *scope, name string, next func(map[string][]byte) map[string][]byte) (*corev1.Secret, error) {
	version, err := r.secretVersion(ctx, s.property.Namespace, name)
	if err != nil || version != "" || r.memories.of(s.property).hasSecret(name) {
		return nil, err
	}
	made, err := r.createSecret(ctx, s.property, name, next(nil))
	if apierrors.IsAlreadyExists(err) {
		return nil, nil
	}
	return made, err
}

func (r *Reconciler) createSecret(ctx context.Context, property *v1alpha1.Property, name string, data map[string][]byte) (*corev1.Secret, error) {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: property.Namespace, Name: name, Labels: resources.Labels(property),
			OwnerReferences: []metav1.OwnerReference{resources.OwnerReference(property)},
		},
		Data: data,
	}
	if err := r.Client.Create(ctx, secret, client.FieldOwner(resources.ManagedBy)); err != nil {
		return nil, objectFailed("create", secretKey(name), data, err)
	}
	r.memories.of(property).keep(secret)
	return secret, nil
}
