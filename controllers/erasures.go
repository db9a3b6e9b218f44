package controllers

import (
	"context"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/ledger"
	"github.com/weir-dev/weir/controllers/resources"
)

// annotationLedgerLost is on the Secret of a ledger that was made in place of one that had been deleted.
const annotationLedgerLost = "weir.dev/ledger-lost"

// erasures makes the Secret with the ledger of erasures, before there are pods that wait for it, and has requests written to it
// that come by way of Redis. It reads no value: what is in the Secret is for [ledgerSecrets].
func (r *Reconciler) erasures(ctx context.Context, s *scope) error {
	var parts ledgerParts
	isNew, err := r.isNewLedger(ctx, s.property)
	if err == nil && !isNew {
		parts, err = r.ownLedger(ctx, s.property)
	}
	if err != nil {
		return err
	}
	if parts.foreign != "" {
		s.foreignLedger(parts.foreign)
		return nil
	}
	if len(parts.versions) == 0 {
		made, err := r.makeLedger(ctx, s)
		if err != nil {
			return err
		}
		parts.versions, parts.lost = []string{made.ResourceVersion}, made.Annotations[annotationLedgerLost] != ""
	}
	s.ledgerParts = len(parts.versions)
	s.erasureProblem = r.Redis.keepLedger(s.property, parts.versions, &ledgerSecrets{client: r.Client, live: r.Live, property: ledgerOwner(s.property)})
	if parts.lost {
		s.erasureProblem = reasonf(v1alpha1.ReasonLedgerLost,
			"Secret %s was deleted, and made anew: whoever was erased before is not known any more, so their later events are stored, and an older backup of Redis "+
				"brings them back; put the Secret back from a backup by kubectl replace, or take its annotation %s off", resources.ErasuresSecretName(s.property, 0), annotationLedgerLost)
	}
	return nil
}

// foreignLedger notes that the name of a Secret of the ledger's is taken.
func (s *scope) foreignLedger(name string) {
	if s.foreign == nil {
		s.foreign = map[string][]string{}
	}
	for _, condition := range []string{v1alpha1.ConditionErasuresReady, v1alpha1.ConditionWorkloadsAvailable} { // the pods wait for it
		s.foreign[condition] = append(s.foreign[condition], "Secret "+name)
	}
	s.again(foreignInterval)
}

// ledgerParts are the Secrets that a ledger is spread over.
type ledgerParts struct {
	// versions are their resource versions, in order.
	versions []string
	// foreign is the name of one that is somebody else's, "" for none.
	foreign string
	// lost says that there was another one before.
	lost bool
}

// ownLedger finds the Secrets with the Property's ledger and makes their owners what they shall be.
func (r *Reconciler) ownLedger(ctx context.Context, property *v1alpha1.Property) (ledgerParts, error) {
	var found ledgerParts
	for part := range config.MaxLedgerParts {
		name := resources.ErasuresSecretName(property, part)
		metadata, err := r.ledgerMetadata(ctx, property, part)
		if err != nil || metadata == nil {
			return found, err
		}
		if !asWanted(metadata, property) {
			secret := &corev1.Secret{}
			err := r.Live.Get(ctx, client.ObjectKeyFromObject(metadata), secret)
			switch {
			case apierrors.IsNotFound(err):
				return found, nil
			case err != nil:
				return found, objectFailed("read", secretKey(name), nil, err)
			case !ledgerOf(secret, property):
				return ledgerParts{foreign: name}, nil
			}
			secret.Labels = resources.Labels(property)
			secret.OwnerReferences = ledgerOwners(property, identifiersIn(secret))
			if err := r.Client.Update(ctx, secret, client.FieldOwner(resources.ManagedBy)); err != nil {
				return found, objectFailed("update", secretKey(name), secret.Data, err)
			}
			metadata.ResourceVersion = secret.ResourceVersion
		}
		found.versions = append(found.versions, metadata.ResourceVersion)
		found.lost = found.lost || metadata.Annotations[annotationLedgerLost] != ""
	}
	return found, nil
}

// isNewLedger says whether the cache has no ledger and nobody has asked for it before. A ledger is never made twice all the same: who
// makes it is told where there is one.
func (r *Reconciler) isNewLedger(ctx context.Context, property *v1alpha1.Property) (bool, error) {
	key := secretKey(resources.ErasuresSecretName(property, 0))
	if !r.memories.of(property).first(key) {
		return false, nil
	}
	version, err := r.secretVersion(ctx, property.Namespace, key.name)
	return version == "", err
}

// ledgerMetadata is that of a Secret with a part of the ledger, nil where there is none. The first part is looked for at the
// server where the cache has not.
func (r *Reconciler) ledgerMetadata(ctx context.Context, property *v1alpha1.Property, part int) (*metav1.PartialObjectMetadata, error) {
	key := secretKey(resources.ErasuresSecretName(property, part))
	object := resources.Object{GroupVersionKind: key.GroupVersionKind, Namespace: property.Namespace, Name: key.name}
	if part > 0 {
		return r.cachedMetadata(ctx, object)
	}
	return r.currentMetadata(ctx, object)
}

// asWanted says whether the metadata of a Secret of a ledger are as they shall be. The cache has no labels of what a Property
// controls.
func asWanted(metadata *metav1.PartialObjectMetadata, property *v1alpha1.Property) bool {
	if len(ledgerOwners(property, identifiersIn(metadata))) > 0 {
		return metav1.IsControlledBy(metadata, property)
	}
	return len(metadata.OwnerReferences) == 0 &&
		equality.Semantic.DeepEqual(resources.Labels(property), selected(metadata.Labels, resources.Labels(property)))
}

// identifiersIn is how many identifiers a part of a ledger has, 1 where that is not known: nothing is lost by that.
func identifiersIn(object metav1.Object) int {
	n, err := strconv.Atoi(object.GetAnnotations()[annotationErasures])
	if err != nil {
		return 1
	}
	return n
}

// makeLedger makes an empty ledger with a salt of its own. Of two operators one makes it.
func (r *Reconciler) makeLedger(ctx context.Context, s *scope) (*corev1.Secret, error) {
	secret := ledgerSecret(s.property, 0, ledger.New())
	if hadLedger(s.property) {
		secret.Annotations[annotationLedgerLost] = "true"
	}
	if err := r.Client.Create(ctx, secret, client.FieldOwner(resources.ManagedBy)); err != nil {
		return nil, objectFailed("create", secretKey(secret.Name), secret.Data, err)
	}
	return secret, nil
}

// hadLedger says whether the Property has had a ledger before.
func hadLedger(property *v1alpha1.Property) bool {
	before := meta.FindStatusCondition(property.Status.Conditions, v1alpha1.ConditionErasuresReady)
	return before != nil && (before.Status == metav1.ConditionTrue || slices.Contains([]string{
		v1alpha1.ReasonLedgerFull, v1alpha1.ReasonLedgerLost, v1alpha1.ReasonRedisRewriteDenied, v1alpha1.ReasonRedisKeepsErased, v1alpha1.ReasonRedisRewriteFailed,
	}, before.Reason))
}
