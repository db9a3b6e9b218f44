package controllers

import (
	"context"
	"math"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// isPaused says whether the operator is to change nothing of a Property. Only one value says so: whoever means something else
// reads in the status that it was not understood.
func isPaused(property *v1alpha1.Property) bool {
	return property.Annotations[v1alpha1.AnnotationPaused] == "true"
}

// pausedMessage says what does not happen. That nothing is revoked is the one thing that somebody may be hurt by.
const pausedMessage = "the annotation " + v1alpha1.AnnotationPaused + " is true: the operator changes nothing that belongs to the Property until it is taken off. " +
	"Keys and tokens that are deleted or taken out of the spec meanwhile are NOT revoked, and work until then, and pods go on trusting the console's old keys; erasures wait; " +
	"users that Redis loses are not put back; the other conditions say what was found before"

// pause leaves the Property as it is, as if no operator were there, and says so. What is kept of it in Redis and in its history is
// no longer looked at. The status goes on speaking of the generation that was made last: another one has not been made.
func (r *Reconciler) pause(ctx context.Context, property *v1alpha1.Property) error {
	r.Redis.rest(keyOf(property))
	r.History.rest(keyOf(property))
	before := property.DeepCopy()
	setPaused(property, &property.Status, metav1.NewTime(r.Options.Now()))
	if equality.Semantic.DeepEqual(before.Status, property.Status) {
		return nil
	}
	return r.patchStatus(ctx, property, before)
}

// setPaused makes the condition Paused what the annotation says: absent without one.
func setPaused(property *v1alpha1.Property, status *v1alpha1.PropertyStatus, now metav1.Time) {
	condition := metav1.Condition{Type: v1alpha1.ConditionPaused, ObservedGeneration: property.Generation, LastTransitionTime: now}
	switch property.Annotations[v1alpha1.AnnotationPaused] {
	case "", "false":
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionPaused)
		return
	case "true":
		condition.Status, condition.Reason, condition.Message = metav1.ConditionTrue, v1alpha1.ReasonPaused, pausedMessage
	default:
		condition.Status, condition.Reason = metav1.ConditionFalse, v1alpha1.ReasonPauseInvalid
		condition.Message = "the annotation " + v1alpha1.AnnotationPaused + ` must be "true" or "false", in quotes and lower case; it is neither, and so the Property is not paused`
	}
	meta.SetStatusCondition(&status.Conditions, condition)
}

// PausedProperties counts the Properties of a class that are paused, of those that a cache has.
func PausedProperties(cached client.Reader, class string) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "weir_operator_paused_properties", Help: "Properties that the annotation weir.dev/paused keeps the operator from changing.",
	}, func() float64 {
		var list v1alpha1.PropertyList
		if err := cached.List(context.Background(), &list, client.UnsafeDisableDeepCopy); err != nil {
			return math.NaN() // before the cache is there
		}
		paused := 0
		for i := range list.Items {
			if list.Items[i].Spec.OperatorClass == class && isPaused(&list.Items[i]) {
				paused++
			}
		}
		return float64(paused)
	})
}
