package controllers

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/auth"
)

// propertyMemory is what the operator remembers of a Property from one reconcile to the next. What each part saves is
// in docs/internals/performance.md. Only the worker that reconciles the Property uses it, and there is one at a time.
type propertyMemory struct {
	// owner is the Property's UID: another one of its name begins anew.
	owner types.UID
	// superseded is the version of the Property that the operator's last write replaced. Where the cache still has it,
	// it does not have that write yet: a status would be written twice, its events made twice, and the data of a
	// Property that was let go might by now be that of another one of its name.
	superseded string
	// secrets are those that were read by value since the reconcile began, by name; earlier are those of the reconcile
	// before. What neither has asked for is forgotten: an owner may name one Secret after another.
	secrets, earlier map[string]*corev1.Secret
	// applied says of each object what was applied last, the zero value of one that was only asked for.
	applied map[digest]appliedState
	// handedOver are the Deployments whose replicas are known to be somebody else's.
	handedOver map[string]bool
	// published are the API keys and access tokens that pods were told of last, by Secret.
	published map[string][]auth.Credential
	// objects are what is remembered of keys and tokens, by UID.
	objects map[types.UID]objectMemory
}

// begin starts a reconcile. One that ended before it read any Secret does not count.
func (m *propertyMemory) begin() {
	if len(m.secrets) > 0 {
		m.earlier, m.secrets = m.secrets, map[string]*corev1.Secret{}
	}
}

// keep remembers a Secret as the server has it, but for the metadata that nobody reads: the labels are read of one that is to be
// taken over.
func (m *propertyMemory) keep(secret *corev1.Secret) {
	secret.ManagedFields, secret.Annotations = nil, nil
	if owner := metav1.GetControllerOfNoCopy(secret); owner != nil && owner.UID == m.owner {
		secret.Labels = nil
	}
	shareTexts(secret)
	m.secrets[secret.Name] = secret
}

// secret returns a Secret that an earlier reconcile has read, if it is remembered in a version; nil where none is.
func (m *propertyMemory) secret(name, version string) *corev1.Secret {
	known := m.earlier[name]
	if known == nil || version == "" || known.ResourceVersion != version {
		return nil
	}
	m.secrets[name] = known
	return known
}

// first says whether an object has never been asked for, and notes that it now is: from then on the cache may only not have it yet.
func (m *propertyMemory) first(key objectKey) bool {
	_, asked := m.applied[key.digest()]
	if !asked {
		m.applied[key.digest()] = appliedState{}
	}
	return !asked
}

// hasSecret says whether a Secret is remembered, in whichever version.
func (m *propertyMemory) hasSecret(name string) bool {
	return m.secrets[name] != nil || m.earlier[name] != nil
}

// forgetSecret drops a Secret that is gone.
func (m *propertyMemory) forgetSecret(name string) {
	delete(m.secrets, name)
	delete(m.earlier, name)
}

// memories are what is remembered of all Properties, by their names. The zero value remembers nothing yet.
type memories struct {
	mu         sync.Mutex
	properties map[types.NamespacedName]*propertyMemory
}

// of returns what is remembered of a Property, for it to be read and changed.
func (m *memories) of(property *v1alpha1.Property) *propertyMemory {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.properties[keyOf(property)]
	if known == nil || known.owner != property.UID {
		known = &propertyMemory{
			owner: property.UID, secrets: map[string]*corev1.Secret{}, applied: map[digest]appliedState{}, published: map[string][]auth.Credential{},
			objects: map[types.UID]objectMemory{}, handedOver: map[string]bool{},
		}
		if m.properties == nil {
			m.properties = map[types.NamespacedName]*propertyMemory{}
		}
		m.properties[keyOf(property)] = known
	}
	return known
}

// forget drops what is remembered of a Property that is gone.
func (m *memories) forget(property types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.properties, property)
}
