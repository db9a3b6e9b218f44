package controllers

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/api/v1alpha1"
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
	// secrets are those that are read by value, by name.
	secrets map[string]*corev1.Secret
	// applied says of each object what was applied last.
	applied map[objectKey]appliedState
}

// keep remembers a Secret as the server has it.
func (m *propertyMemory) keep(secret *corev1.Secret) {
	secret.ManagedFields = nil
	m.secrets[secret.Name] = secret
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
		known = &propertyMemory{owner: property.UID, secrets: map[string]*corev1.Secret{}, applied: map[objectKey]appliedState{}}
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
