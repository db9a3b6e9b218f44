package controllers

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/controllers/resources"
)

// credentialObject is an AccessToken or an APIKey: what both have in common.
type credentialObject struct {
	// object is the cache's own, and must not be changed.
	object client.Object
	kind   string
	// credential is what pods are told where the object is in force.
	credential auth.Credential
	conditions []metav1.Condition
	// boundTo is the Property that the object is for for good, as its status remembers; "" before it has been seen.
	boundTo types.UID

	// adoption says whose the object is.
	adoption adoption
	// refused is why the object is not in force; nil where it is.
	refused *conditionReason
	// written says that the cache does not have the last write of ours to the object, resting that it could not be written to a
	// moment ago, failed that this was in this reconcile, copied that it was found to be a copy before.
	written, resting, failed, copied bool
}

// adoption is how an object stands to the Property that it names.
type adoption int

const (
	// unadopted: it has no Property for an owner yet.
	unadopted adoption = iota
	// adopted: it goes when the Property goes.
	adopted
	// anothers: it belongs to another Property, or was made for one of the name that is gone.
	anothers
)

func (o *credentialObject) ready() *metav1.Condition {
	return meta.FindStatusCondition(o.conditions, v1alpha1.ConditionReady)
}

// accepted says whether the object was in force when it was looked at last.
func (o *credentialObject) accepted() bool {
	ready := o.ready()
	return ready != nil && ready.Status == metav1.ConditionTrue
}

func (o *credentialObject) key() objectKey {
	return objectKey{v1alpha1.GroupVersion.WithKind(o.kind), o.object.GetName()}
}

func objectOfToken(token *v1alpha1.AccessToken) *credentialObject {
	o := objectOf(token, v1alpha1.AccessTokenKind, "accesstoken/", auth.AccessTokenPrefix, token.Spec.SHA256, token.Spec.ExpirationTime, &token.Status)
	o.credential.Scope = auth.Scope(token.GrantedScope())
	return o
}

func objectOfKey(key *v1alpha1.APIKey) *credentialObject {
	return objectOf(key, v1alpha1.APIKeyKind, "apikey/", auth.APIKeyPrefix, key.Spec.SHA256, key.Spec.ExpirationTime, &key.Status)
}

// objectOf reads what both kinds have. In pods the name has its kind before it, so that it is none of the spec's.
func objectOf(object client.Object, kind, before, begins, hash string, expires *metav1.Time, status *v1alpha1.CredentialStatus) *credentialObject {
	o := &credentialObject{object: object, kind: kind, conditions: status.Conditions, boundTo: status.PropertyUID}
	o.credential = auth.Credential{Name: before + object.GetName(), Prefix: begins}
	if o.credential.Hash.UnmarshalText([]byte(hash)) != nil {
		o.credential.Hash = auth.Hash{}
	}
	o.credential.ExpirationTime = resources.Expiration(expires)
	return o
}

// adoptionBy reads whose an object is: its status first, which nobody else writes, for who may edit the object may take its owner off.
func (o *credentialObject) adoptionBy(property types.UID) adoption {
	found := unadopted
	if o.boundTo != "" && o.boundTo != property {
		return anothers
	}
	for _, owner := range o.object.GetOwnerReferences() {
		if owner.Kind != v1alpha1.Kind || !strings.HasPrefix(owner.APIVersion, v1alpha1.GroupVersion.Group+"/") {
			continue
		}
		if owner.UID == property {
			return adopted
		}
		found = anothers
	}
	return found
}

// chooseCredentials says of each object why it is not in force, and returns those that are. Of each kind it is the oldest ones
// that have not expired; one that was in force is not displaced by one that seems older. An object with a hash that the
// Property's spec has, or an object before it, is refused for good. own are the spec's hashes, with what each belongs to.
// The order of the objects is changed.
func chooseCredentials(objects []*credentialObject, own map[auth.Hash]string, now time.Time) []*credentialObject {
	slices.SortFunc(objects, func(a, b *credentialObject) int {
		if a.accepted() != b.accepted() {
			if a.accepted() {
				return -1
			}
			return 1
		}
		return cmp.Or(a.object.GetCreationTimestamp().Compare(b.object.GetCreationTimestamp().Time),
			cmp.Compare(a.object.GetName(), b.object.GetName()), cmp.Compare(a.kind, b.kind))
	})
	var chosen []*credentialObject
	taken, counts := maps.Clone(own), map[string]int{}
	for _, o := range objects {
		if o.refused = o.unfit(taken, now); o.refused != nil {
			continue
		}
		if counts[o.kind]++; counts[o.kind] > v1alpha1.MaxCredentials {
			o.refused = reasonf(v1alpha1.ReasonLimitReached, "%d others of the Property's are in force; delete one of them, or wait for one to expire", v1alpha1.MaxCredentials)
			continue
		}
		chosen = append(chosen, o)
	}
	return chosen
}

// unfit is why an object is not in force, whatever others there are room for. It notes whose the hash is.
func (o *credentialObject) unfit(taken map[auth.Hash]string, now time.Time) *conditionReason {
	ready := o.ready()
	switch other := taken[o.credential.Hash]; {
	case ready != nil && ready.Reason == v1alpha1.ReasonDuplicate: // whatever becomes of its owner
		return &conditionReason{ready.Reason, ready.Message}
	case o.adoption == anothers:
		return reasonf(v1alpha1.ReasonPropertyMissing, "it belongs to another Property, or was made for one of this name that is gone; delete it and make another")
	case o.credential.Hash == auth.Hash{}: // pods would refuse all keys for it
		return reasonf(v1alpha1.ReasonPending, "spec.sha256: is the hash of nothing; delete the object and make another")
	case other != "" || o.copied:
		return reasonf(v1alpha1.ReasonDuplicate, "spec.sha256: is that of %s, and is refused for good, also when that is revoked; make another",
			cmp.Or(other, "another of the Property's"))
	}
	taken[o.credential.Hash] = o.kind + " " + o.object.GetName()
	if expires := o.credential.ExpirationTime; expires != nil && !now.Before(*expires) {
		return reasonf(v1alpha1.ReasonExpired, "spec.expirationTime is past")
	}
	return nil
}

// indexProperty finds keys and tokens by the Property that they name.
const indexProperty = "weir.dev/property"

func propertyOfToken(object client.Object) []string {
	return []string{object.(*v1alpha1.AccessToken).Spec.PropertyRef.Name}
}

func propertyOfKey(object client.Object) []string {
	return []string{object.(*v1alpha1.APIKey).Spec.PropertyRef.Name}
}

// credentialObjects lists the objects that name a Property from the cache, but those that are being deleted: deleting revokes,
// whatever still holds the object.
func (r *Reconciler) credentialObjects(ctx context.Context, property types.NamespacedName, owner types.UID) ([]*credentialObject, error) {
	options := []client.ListOption{
		client.InNamespace(property.Namespace), client.MatchingFields{indexProperty: property.Name}, client.UnsafeDisableDeepCopy,
	}
	var tokens v1alpha1.AccessTokenList
	if err := r.Client.List(ctx, &tokens, options...); err != nil {
		return nil, err
	}
	var keys v1alpha1.APIKeyList
	if err := r.Client.List(ctx, &keys, options...); err != nil {
		return nil, err
	}
	found := make([]*credentialObject, 0, len(tokens.Items)+len(keys.Items))
	for i := range tokens.Items {
		found = append(found, objectOfToken(&tokens.Items[i]))
	}
	for i := range keys.Items {
		found = append(found, objectOfKey(&keys.Items[i]))
	}
	found = slices.DeleteFunc(found, func(o *credentialObject) bool { return o.object.GetDeletionTimestamp() != nil })
	for _, o := range found {
		o.adoption = o.adoptionBy(owner)
	}
	return found, nil
}

// longestWait is how far ahead a reconcile is planned.
const longestWait = 24 * time.Hour

// madeCredentials adds the keys and tokens that are objects of their own to those of the spec, those in force. Each has the
// Property for an owner before pods are told of it, so that none is left for another Property of the name.
func (r *Reconciler) madeCredentials(ctx context.Context, s *scope) error {
	objects, err := r.credentialObjects(ctx, keyOf(s.property), s.property.UID)
	if err != nil {
		s.credentialsUnknown = true
		return err
	}
	memory := r.memories.of(s.property)
	memory.recall(objects, s.now, r.Options.objectRest())
	s.made = objects
	for _, o := range chooseCredentials(objects, s.ownHashes(), s.now) {
		if expires := o.credential.ExpirationTime; expires != nil {
			s.again(min(expires.Sub(s.now), longestWait))
		}
		if !r.adopt(ctx, s, o) {
			continue
		}
		if o.kind == v1alpha1.AccessTokenKind {
			s.credentials.MadeAccessTokens = append(s.credentials.MadeAccessTokens, o.credential)
		} else {
			s.credentials.MadeAPIKeys = append(s.credentials.MadeAPIKeys, o.credential)
		}
	}
	for _, o := range objects {
		if o.refused != nil && o.refused.reason == v1alpha1.ReasonDuplicate {
			memory.remember(o, func(m *objectMemory) { m.duplicate = true }) // before it is written down
		}
	}
	return nil
}

// ownHashes are those of the keys and tokens of the spec, with what each is.
func (s *scope) ownHashes() map[auth.Hash]string {
	own := map[auth.Hash]string{}
	for name, key := range s.credentials.APIKeys {
		own[auth.HashOf(key)] = "the API key " + name + " of the Property's spec"
	}
	for name, token := range s.credentials.AccessTokens {
		own[auth.HashOf(token)] = "the access token " + name + " of the Property's spec"
	}
	return own
}

// told notes whether the pods have what a Secret of hashes shall have.
func (s *scope) told(secret string, told bool) {
	if s.toldSecrets == nil {
		s.toldSecrets = map[string]bool{}
	}
	s.toldSecrets[secret] = told
}

// podsKnow says whether the pods that take a kind of credential are told of what is in force.
func (s *scope) podsKnow(kind string) bool {
	role := resources.Collector
	if kind == v1alpha1.AccessTokenKind {
		role = resources.Query
	}
	return s.toldSecrets[resources.HashesSecretName(s.property, role)]
}
