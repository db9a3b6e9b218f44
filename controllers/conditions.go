package controllers

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/controllers/resources"
)

// check is one step of the chain that judges a condition: it returns a fault, or nil to let the next one look.
type check func(*scope) *fault

// conditionChecks judge each condition by the first check that finds something. No condition is judged twice.
func conditionChecks() []struct {
	kind   string
	checks []check
	good   func(*scope) fault
} {
	ready := func(message string) func(*scope) fault {
		return func(*scope) fault { return fault{v1alpha1.ReasonReady, message} }
	}
	return []struct {
		kind   string
		checks []check
		good   func(*scope) fault
	}{
		{v1alpha1.ConditionCredentialsReady, []check{credentialsAreThere},
			ready("every API key and access token exists")},
		{v1alpha1.ConditionRedisReady, []check{redisIsFit}, redisIsReady},
		{v1alpha1.ConditionWorkloadsAvailable, []check{namesAreFree, configurationIsValid, podsAreAllowed, podsRun},
			ready("the pods of all roles run as the spec has them")},
		{v1alpha1.ConditionExposed, []check{hostsAreFree}, exposedAsAsked},
		{v1alpha1.ConditionPlatformsReady, []check{platformsAccept},
			ready("no platform refuses deliveries")},
	}
}

func credentialsAreThere(s *scope) *fault { return s.credentialsFault }

func redisIsFit(s *scope) *fault { return s.redisFault }

func redisIsReady(s *scope) fault {
	if s.redisNote != nil {
		return *s.redisNote
	}
	return fault{v1alpha1.ReasonReady, "Redis answers and has the Property's users and functions"}
}

func namesAreFree(s *scope) *fault {
	if len(s.foreign) == 0 {
		return nil
	}
	return newFault(v1alpha1.ReasonObjectConflict, "%s: not this Property's, and left alone; delete or rename it, or name the Property otherwise", strings.Join(s.foreign, ", "))
}

func configurationIsValid(s *scope) *fault { return s.configurationFault }

func podsAreAllowed(s *scope) *fault {
	for _, role := range resources.Roles() {
		if refused := s.podFaults[role]; refused != nil {
			return refused
		}
	}
	return nil
}

func podsRun(s *scope) *fault {
	var worst *fault
	for _, role := range resources.Roles() {
		state := s.deployments[role]
		switch {
		case state == nil:
			return newFault(v1alpha1.ReasonProgressing, "the pods have not been looked at yet")
		case state.reason == v1alpha1.ReasonUnavailable:
			return &fault{state.reason, state.message}
		case state.reason != "" && worst == nil:
			worst = &fault{state.reason, state.message}
		}
	}
	return worst
}

func hostsAreFree(s *scope) *fault { return s.exposureFault }

func exposedAsAsked(s *scope) fault {
	if s.property.Spec.Exposure.Type == v1alpha1.ExposureNone {
		return fault{v1alpha1.ReasonNotExposed, "spec.exposure.type is None: reachable from inside the cluster"}
	}
	return fault{v1alpha1.ReasonReady, "the hosts lead to the pods"}
}

func platformsAccept(s *scope) *fault {
	if len(s.platformFaults) == 0 {
		return nil
	}
	messages := make([]string, len(s.platformFaults))
	for i, f := range s.platformFaults {
		messages[i] = f.message
	}
	return newFault(s.platformFaults[0].reason, "%s", strings.Join(messages, "; "))
}

// statusOf returns the status that the scope's findings make of the one before.
func statusOf(s *scope) v1alpha1.PropertyStatus {
	status := *s.property.Status.DeepCopy()
	status.ObservedGeneration = s.property.Generation
	status.CredentialsSecretRef = &v1alpha1.SecretReference{Name: resources.CredentialsSecretName(s.property)}
	status.CollectURL, status.APIURL = resources.URLs(s.property)
	if s.exposureFault != nil && !s.exposureKept && s.property.Spec.Exposure.Type != v1alpha1.ExposureNone {
		status.CollectURL, status.APIURL = "", "" // of whoever has the hosts
	}
	status.Platforms = nil
	for _, f := range s.platformFaults {
		status.Platforms = append(status.Platforms, v1alpha1.PlatformStatus{Name: f.platform, Reason: f.reason})
	}
	set := func(kind string, good metav1.ConditionStatus, f fault) {
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: kind, Status: good, Reason: f.reason, Message: f.message,
			ObservedGeneration: s.property.Generation, LastTransitionTime: metav1.NewTime(s.now),
		})
	}
	var notReady *fault
	for _, condition := range conditionChecks() {
		found := firstFault(s, condition.checks)
		if found == nil {
			set(condition.kind, metav1.ConditionTrue, condition.good(s))
			continue
		}
		set(condition.kind, metav1.ConditionFalse, *found)
		if notReady == nil && condition.kind != v1alpha1.ConditionPlatformsReady {
			notReady = found
		}
	}
	if notReady != nil {
		set(v1alpha1.ConditionReady, metav1.ConditionFalse, *notReady)
	} else {
		set(v1alpha1.ConditionReady, metav1.ConditionTrue, fault{v1alpha1.ReasonReady, "events can be sent and read"})
	}
	return status
}

func firstFault(s *scope, checks []check) *fault {
	for _, look := range checks {
		if found := look(s); found != nil {
			return found
		}
	}
	return nil
}

// writeStatus writes the status once, where it has changed, and makes an event of each condition that has turned.
func (r *Reconciler) writeStatus(ctx context.Context, s *scope) error {
	if s.deployments == nil {
		return nil // a phase failed and will be tried again: nothing is known that would be worth saying
	}
	before := s.property.DeepCopy()
	s.property.Status = statusOf(s)
	if equality.Semantic.DeepEqual(before.Status, s.property.Status) {
		return nil
	}
	if err := r.Client.Status().Patch(ctx, s.property, client.MergeFrom(before), client.FieldOwner(resources.ManagedBy)); err != nil {
		return client.IgnoreNotFound(err)
	}
	r.written.Store(s.property.UID, writtenStatus{s.cachedVersion, *s.property.Status.DeepCopy()})
	for _, condition := range s.property.Status.Conditions {
		old := meta.FindStatusCondition(before.Status.Conditions, condition.Type)
		if old != nil && old.Status == condition.Status && old.Reason == condition.Reason {
			continue
		}
		kind := corev1.EventTypeNormal
		if condition.Status != metav1.ConditionTrue && condition.Reason != v1alpha1.ReasonProgressing {
			kind = corev1.EventTypeWarning
		}
		r.Recorder.Eventf(s.property, nil, kind, condition.Reason, condition.Type, "%s", condition.Message)
	}
	return nil
}

// writtenStatus is a status that was written, and the version of the Property that it was made from.
type writtenStatus struct {
	version string
	status  v1alpha1.PropertyStatus
}

// recallStatus puts in the status that was written last where the cache has not seen it yet: otherwise it would be
// written twice, and its events made twice.
func (r *Reconciler) recallStatus(property *v1alpha1.Property) {
	value, _ := r.written.Load(property.UID)
	if last, found := value.(writtenStatus); found && last.version == property.ResourceVersion {
		last.status.DeepCopyInto(&property.Status)
	}
}
