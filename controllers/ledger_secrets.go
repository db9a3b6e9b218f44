package controllers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/event/erasure"
	"github.com/weir-dev/weir/collector/ledger"
	"github.com/weir-dev/weir/controllers/resources"
)

const (
	// annotationErasures is how many identifiers the part of a ledger has that is in a Secret.
	annotationErasures = "weir.dev/erasures"
	// ledgerPartBytes is how large a part of a ledger may be: as large as a Secret.
	ledgerPartBytes = corev1.MaxSecretSize
	// smallLedgerBytes is how large a ledger may be of which several are in memory at a time: some 10,000 identifiers.
	smallLedgerBytes = 150_000
)

// ledgerCapacity is how many identifiers a Property's ledger of erasures has room for.
func ledgerCapacity() int { return config.MaxLedgerParts * erasure.Capacity(ledgerPartBytes) }

// errNoLedger says that the Secret with a Property's ledger is not there; a reconcile makes it.
var errNoLedger = errors.New("there is no ledger of erasures yet")

// errLedgerLarge says that a ledger is larger than it was taken to be.
var errLedgerLarge = errors.New("the ledger of erasures is a large one")

// ledgerInvalidError says that a Secret does not hold what it has to.
type ledgerInvalidError struct{ secret string }

func (e *ledgerInvalidError) Error() string {
	return fmt.Sprintf("Secret %s: key %s does not hold a ledger of erasures as Weir has made it", e.secret, resources.LedgerKey)
}

// ledgerSecrets keep a Property's ledger of erasures in Secrets beside it. It implements [ledger.Store].
type ledgerSecrets struct {
	client client.Client
	live   client.Reader
	// property has what [ledgerOwner] leaves of it.
	property *v1alpha1.Property

	// most is how many bytes are loaded at most.
	most int
	// loaded are the parts as they were loaded last, with their values until [ledgerSecrets.drop]; written counts the bytes that
	// were saved since.
	loaded  []*corev1.Secret
	written int

	mu sync.Mutex
	// versions are those of the parts, as long as nobody else has changed them.
	versions []string
}

// ledgerOwner is what of a Property its ledger goes by: it is kept in memory for each.
func ledgerOwner(property *v1alpha1.Property) *v1alpha1.Property {
	return &v1alpha1.Property{
		ObjectMeta: metav1.ObjectMeta{Namespace: property.Namespace, Name: property.Name, UID: property.UID},
		Spec:       v1alpha1.PropertySpec{DeletionPolicy: property.Spec.DeletionPolicy},
	}
}

// Load implements [ledger.Store]. It fails with errNoLedger, errLedgerLarge or a [*ledgerInvalidError].
func (l *ledgerSecrets) Load(ctx context.Context) (*erasure.Ledger, error) {
	l.loaded = nil
	var whole *erasure.Ledger
	left := l.most
	for part := range config.MaxLedgerParts {
		secret := &corev1.Secret{}
		name := resources.ErasuresSecretName(l.property, part)
		err := l.live.Get(ctx, client.ObjectKey{Namespace: l.property.Namespace, Name: name}, secret)
		if apierrors.IsNotFound(err) {
			break
		}
		if err != nil {
			return nil, objectFailed("read", secretKey(name), nil, err)
		}
		if left -= len(secret.Data[resources.LedgerKey]); left < 0 {
			return nil, errLedgerLarge
		}
		read, err := erasure.Decode(secret.Data[resources.LedgerKey])
		if err != nil || !ledgerOf(secret, l.property) || whole != nil && whole.Salt != read.Salt {
			return nil, &ledgerInvalidError{name}
		}
		if whole == nil {
			whole = read
		}
		for _, entry := range read.Entries() {
			whole.Add(entry)
		}
		l.loaded = append(l.loaded, secret)
	}
	if whole == nil {
		return nil, errNoLedger
	}
	return whole, nil
}

// Save implements [ledger.Store]. Only the parts that change are written, each on condition that it is as it was loaded: of two
// operators one begins anew. What was written before that stays; it is in the ledger of both.
func (l *ledgerSecrets) Save(ctx context.Context, whole *erasure.Ledger) error {
	before := make([][]erasure.Entry, len(l.loaded))
	for i, secret := range l.loaded {
		part, err := erasure.Decode(secret.Data[resources.LedgerKey])
		if err != nil {
			return &ledgerInvalidError{secret.Name}
		}
		before[i] = part.Entries()
	}
	alone := slices.Equal(versionsOf(l.loaded), l.known())
	for i, part := range spread(whole.Entries(), before, erasure.Capacity(ledgerPartBytes)) {
		if !part.changed {
			continue
		}
		encoded := &erasure.Ledger{Salt: whole.Salt}
		for _, entry := range part.entries {
			encoded.Add(entry)
		}
		if err := l.write(ctx, i, encoded); err != nil {
			return err
		}
	}
	if alone {
		l.note(versionsOf(l.loaded))
	}
	return nil
}

// write writes a part, which is a new one behind those that were loaded.
func (l *ledgerSecrets) write(ctx context.Context, part int, content *erasure.Ledger) error {
	secret, verb := ledgerSecret(l.property, part, content), "create"
	var err error
	if part < len(l.loaded) {
		verb = "update"
		updated := l.loaded[part].DeepCopy()
		updated.Data, updated.OwnerReferences = secret.Data, secret.OwnerReferences
		metav1.SetMetaDataAnnotation(&updated.ObjectMeta, annotationErasures, secret.Annotations[annotationErasures])
		secret = updated
		err = l.client.Update(ctx, secret, client.FieldOwner(resources.ManagedBy))
	} else {
		err = l.client.Create(ctx, secret, client.FieldOwner(resources.ManagedBy))
	}
	if apierrors.IsNotFound(err) || passing(err) {
		return fmt.Errorf("%w: %w", ledger.ErrConflict, err)
	}
	if err != nil {
		return objectFailed(verb, secretKey(secret.Name), secret.Data, err)
	}
	l.written += len(secret.Data[resources.LedgerKey])
	if part == len(l.loaded) {
		l.loaded = append(l.loaded, nil)
	}
	l.loaded[part] = secret
	return nil
}

// drop forgets the values, and returns how many bytes have been written since the last time.
func (l *ledgerSecrets) drop() int {
	written := l.written
	l.loaded, l.written = nil, 0
	return written
}

func (l *ledgerSecrets) note(versions []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.versions = versions
}

// known are the versions of the parts when nobody else had changed them.
func (l *ledgerSecrets) known() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.versions
}

func versionsOf(secrets []*corev1.Secret) []string {
	versions := make([]string, len(secrets))
	for i, secret := range secrets {
		versions[i] = secret.ResourceVersion
	}
	return versions
}

// ledgerSecret is the Secret with a part of a ledger.
func ledgerSecret(property *v1alpha1.Property, part int, content *erasure.Ledger) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: property.Namespace, Name: resources.ErasuresSecretName(property, part), Labels: resources.Labels(property),
			Annotations:     map[string]string{annotationErasures: strconv.Itoa(content.Len())},
			OwnerReferences: ledgerOwners(property, content.Len()),
		},
		Data: map[string][]byte{resources.LedgerKey: content.Encode()},
	}
}

// ledgerOwners are the owners of the Secret with a part of a ledger: one in which somebody stands outlives its Property
// unless that has the deletion policy Delete, however it is deleted.
func ledgerOwners(property *v1alpha1.Property, identifiers int) []metav1.OwnerReference {
	if identifiers > 0 && property.Spec.DeletionPolicy != v1alpha1.DeletionPolicyDelete {
		return nil
	}
	return []metav1.OwnerReference{resources.OwnerReference(property)}
}

// ledgerOf says whether a Secret is the Property's, or was that of one of its name.
func ledgerOf(secret *corev1.Secret, property *v1alpha1.Property) bool {
	return metav1.IsControlledBy(secret, property) || leftByNamesake(secret, property)
}

// ledgerPart is what shall be in a part of a ledger.
type ledgerPart struct {
	entries []erasure.Entry
	changed bool
}

// spread returns the parts that a ledger's entries make: each entry stays in the part that it is in, and new ones go where
// there is room.
func spread(entries []erasure.Entry, before [][]erasure.Entry, room int) []ledgerPart {
	left := make(map[erasure.Digest]erasure.Entry, len(entries))
	for _, entry := range entries {
		left[entry.Digest] = entry
	}
	parts := make([]ledgerPart, 0, len(before)+1)
	for _, held := range before {
		var part ledgerPart
		for _, was := range held {
			entry, found := left[was.Digest]
			if !found {
				part.changed = true
				continue
			}
			delete(left, was.Digest)
			part.entries = append(part.entries, entry)
			part.changed = part.changed || entry != was
		}
		parts = append(parts, part)
	}
	added := slices.Collect(maps.Values(left))
	for i := 0; len(added) > 0; i++ {
		if i == len(parts) {
			parts = append(parts, ledgerPart{})
		}
		if n := min(room-len(parts[i].entries), len(added)); n > 0 {
			parts[i].entries, parts[i].changed = append(parts[i].entries, added[:n]...), true
			added = added[n:]
		}
	}
	return parts
}
