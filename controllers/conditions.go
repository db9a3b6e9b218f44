package controllers

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/controllers/resources"
)

// check is one step of the chain that judges a condition: it returns an error, or nil to let the next one look.
type check func(*scope) *conditionReason

// conditionChecks judge each condition by the first check that finds something. No condition is judged twice.
func conditionChecks() []struct {
	kind   string
	checks []check
	good   func(*scope) conditionReason
} {
	ready := func(message string) func(*scope) conditionReason {
		return func(*scope) conditionReason { return conditionReason{v1alpha1.ReasonReady, message} }
	}
	return []struct {
		kind   string
		checks []check
		good   func(*scope) conditionReason
	}{
		{v1alpha1.ConditionCredentialsReady, []check{credentialsAreThere, failuresOf(v1alpha1.ConditionCredentialsReady)},
			credentialsAreReady},
		{v1alpha1.ConditionRedisReady, []check{namesAreFree(v1alpha1.ConditionRedisReady), redisIsFit, failuresOf(v1alpha1.ConditionRedisReady)}, redisIsReady},
		{v1alpha1.ConditionHistoryReady, []check{historyIsKept, failuresOf(v1alpha1.ConditionHistoryReady), archiveKeepsUp},
			ready("ClickHouse has the history's database, users and tables, and what Redis has is copied to it")},
		{v1alpha1.ConditionWorkloadsAvailable, []check{namesAreFree(v1alpha1.ConditionWorkloadsAvailable), configurationIsValid, podsAreAllowed, failuresOf(v1alpha1.ConditionWorkloadsAvailable), podsRun},
			ready("of each role a pod serves, and all are as the spec has them")},
		{v1alpha1.ConditionExposed, []check{hostsAreFree, namesAreFree(v1alpha1.ConditionExposed), failuresOf(v1alpha1.ConditionExposed), nothingIsMissing}, exposedAsAsked},
		{v1alpha1.ConditionPlatformsReady, []check{platformsAccept},
			platformsAreReady},
		{v1alpha1.ConditionVersionsSupported, []check{versionsLast},
			ready("no version that is spoken to a platform ends within 60 days, as far as announced")},
		{v1alpha1.ConditionSourcesReady, []check{sourcesAreThere},
			ready("every source has its Secrets, and no shop refuses to have its orders read")},
		{v1alpha1.ConditionErasuresReady, []check{namesAreFree(v1alpha1.ConditionErasuresReady), failuresOf(v1alpha1.ConditionErasuresReady), personsCanBeErased},
			ready("persons can be erased")},
	}
}

func credentialsAreThere(s *scope) *conditionReason { return s.credentialsProblem }

func credentialsAreReady(s *scope) conditionReason {
	if s.credentialsNote != nil {
		return *s.credentialsNote
	}
	return conditionReason{v1alpha1.ReasonReady, "every API key and access token exists"}
}

func redisIsFit(s *scope) *conditionReason { return s.redisProblem }

func redisIsReady(s *scope) conditionReason {
	if s.redisNote != nil {
		return *s.redisNote
	}
	return conditionReason{v1alpha1.ReasonReady, "Redis answers and has the Property's users and functions"}
}

func historyIsKept(s *scope) *conditionReason { return cmp.Or(s.historyProblem, s.archivePause) }

func archiveKeepsUp(s *scope) *conditionReason {
	if !s.archiveLags {
		return nil
	}
	return reasonf(v1alpha1.ReasonArchiveLagging, "what has come for minutes is not copied to the history yet, and is in no answer; after a history was "+
		"switched on this passes; else look at the archive's log and give it more resources (see docs/operate/runbooks/WeirArchiveLagging.md)")
}

func namesAreFree(condition string) check {
	return func(s *scope) *conditionReason {
		if len(s.foreign[condition]) == 0 {
			return nil
		}
		return reasonf(v1alpha1.ReasonObjectConflict, "%s: not this Property's, and left alone; delete or rename it, or name the Property otherwise",
			strings.Join(s.foreign[condition], ", "))
	}
}

func configurationIsValid(s *scope) *conditionReason { return s.configurationProblem }

func podsAreAllowed(s *scope) *conditionReason {
	for _, role := range resources.RolesOf(s.property) {
		if refused := s.podProblems[role]; refused != nil {
			return refused
		}
	}
	return nil
}

func podsRun(s *scope) *conditionReason {
	var worst *conditionReason
	for _, role := range resources.RolesOf(s.property) {
		state := s.deployments[role]
		switch {
		case state == nil:
			return reasonf(v1alpha1.ReasonProgressing, "the pods have not been looked at yet")
		case state.reason == v1alpha1.ReasonUnavailable, state.reason == v1alpha1.ReasonScaledToZero:
			return &conditionReason{state.reason, state.message}
		case state.reason != "" && worst == nil:
			worst = &conditionReason{state.reason, state.message}
		}
	}
	return worst
}

func hostsAreFree(s *scope) *conditionReason { return s.exposureProblem }

func nothingIsMissing(s *scope) *conditionReason { return s.exposureGap }

func exposedAsAsked(s *scope) conditionReason {
	if s.property.Spec.Exposure.Type == v1alpha1.ExposureNone {
		return conditionReason{v1alpha1.ReasonNotExposed, "spec.exposure.type is None: reachable from inside the cluster"}
	}
	return conditionReason{v1alpha1.ReasonReady, "the hosts lead to the pods"}
}

// platformsAreReady names the platforms to which nothing is sent, so that nobody takes Shadow for deliveries.
func platformsAreReady(s *scope) conditionReason {
	message := "no platform refuses deliveries"
	var shadowed []string
	for _, platform := range s.property.Spec.Platforms {
		if platform.Mode == platforms.Shadow {
			shadowed = append(shadowed, platform.Name)
		}
	}
	if len(shadowed) > 0 {
		message += "; in the mode Shadow, and so sent nothing: " + strings.Join(shadowed, ", ")
	}
	return conditionReason{v1alpha1.ReasonReady, message}
}

func platformsAccept(s *scope) *conditionReason {
	if len(s.platformProblems) == 0 {
		return nil
	}
	messages := make([]string, len(s.platformProblems))
	for i, f := range s.platformProblems {
		messages[i] = f.message
	}
	return reasonf(s.platformProblems[0].reason, "%s", strings.Join(messages, "; "))
}

func sourcesAreThere(s *scope) *conditionReason {
	if len(s.sourceProblems) == 0 {
		return nil
	}
	messages := make([]string, len(s.sourceProblems))
	for i, f := range s.sourceProblems {
		messages[i] = f.message
	}
	return reasonf(s.sourceProblems[0].reason, "%s", strings.Join(messages, "; "))
}

func personsCanBeErased(s *scope) *conditionReason { return s.erasureProblem }

// apart are the conditions that stand apart from Ready: of what others than the operator and the owner can break, and of what
// keeps no event from being taken, delivered and read.
func apart(condition string) bool {
	return slices.Contains([]string{
		v1alpha1.ConditionPlatformsReady, v1alpha1.ConditionVersionsSupported, v1alpha1.ConditionSourcesReady, v1alpha1.ConditionErasuresReady,
	}, condition)
}

// urls are where senders and readers reach the Property; "" where the hosts are somebody else's.
func (s *scope) urls() (collect, api string) {
	if s.exposureProblem != nil && !s.exposureKept && s.property.Spec.Exposure.Type != v1alpha1.ExposureNone {
		return "", ""
	}
	return resources.URLs(s.property)
}

// statusOf returns the status that the scope's findings make of the one before.
func statusOf(s *scope) v1alpha1.PropertyStatus {
	status := *s.property.Status.DeepCopy()
	status.ObservedGeneration = s.property.Generation
	setPaused(s.property, &status, metav1.NewTime(s.now))
	if !s.credentialsUnknown {
		status.CredentialsSecretRef = &v1alpha1.SecretReference{Name: resources.CredentialsSecretName(s.property)}
	}
	status.CollectURL, status.APIURL = s.urls()
	status.DashboardURL = resources.DashboardURL(s.property)
	if status.APIURL == "" {
		status.DashboardURL = ""
	}
	status.Platforms = nil
	for _, f := range s.platformProblems {
		status.Platforms = append(status.Platforms, v1alpha1.PlatformStatus{Name: f.platform, Reason: f.reason})
	}
	set := func(kind string, good metav1.ConditionStatus, f conditionReason) {
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: kind, Status: good, Reason: f.reason, Message: f.message,
			ObservedGeneration: s.property.Generation, LastTransitionTime: metav1.NewTime(s.now),
		})
	}
	var notReady *conditionReason
	for _, condition := range conditionChecks() {
		if condition.kind == v1alpha1.ConditionHistoryReady && !s.property.Spec.HasHistory() {
			meta.RemoveStatusCondition(&status.Conditions, condition.kind)
			continue
		}
		found := firstProblem(s, condition.checks)
		if found == nil {
			set(condition.kind, metav1.ConditionTrue, condition.good(s))
			continue
		}
		if found.reason == v1alpha1.ReasonIngressClassUnknown {
			set(condition.kind, metav1.ConditionUnknown, *found)
			continue
		}
		set(condition.kind, metav1.ConditionFalse, *found)
		if notReady == nil && !apart(condition.kind) && found.reason != v1alpha1.ReasonArchiveLagging {
			notReady = found
		}
	}
	if notReady != nil {
		set(v1alpha1.ConditionReady, metav1.ConditionFalse, *notReady)
	} else {
		set(v1alpha1.ConditionReady, metav1.ConditionTrue, conditionReason{v1alpha1.ReasonReady, "events can be sent and read"})
	}
	return status
}

func firstProblem(s *scope, checks []check) *conditionReason {
	for _, look := range checks {
		if found := look(s); found != nil {
			return found
		}
	}
	return nil
}

// writeStatus writes the status once, where it has changed.
func (r *Reconciler) writeStatus(ctx context.Context, s *scope) error {
	before := s.property.DeepCopy()
	s.property.Status = statusOf(s)
	if equality.Semantic.DeepEqual(before.Status, s.property.Status) {
		return nil
	}
	return r.patchStatus(ctx, s.property, before)
}

// notReady says of a Property with which nothing else can be done why that is so. It returns the error, for it to be
// tried again, but for one that passes. An operator that ends says nothing: it may not be the one that serves the Property.
func (r *Reconciler) notReady(ctx context.Context, property *v1alpha1.Property, err error) error {
	if err == nil || ctx.Err() != nil || passing(err) || apierrors.IsNotFound(err) {
		return err
	}
	return errors.Join(err, r.writeNotReady(ctx, property, failureOf(leaves(err)[0])))
}

// writeNotReady leaves the other conditions as they are: nobody has looked.
func (r *Reconciler) writeNotReady(ctx context.Context, property *v1alpha1.Property, why conditionReason) error {
	before := property.DeepCopy()
	property.Status.ObservedGeneration = property.Generation
	meta.SetStatusCondition(&property.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: why.reason, Message: why.message,
		ObservedGeneration: property.Generation, LastTransitionTime: metav1.NewTime(r.Options.Now()),
	})
	if equality.Semantic.DeepEqual(before.Status, property.Status) {
		return nil
	}
	return r.patchStatus(ctx, property, before)
}

// patchStatus writes a status, and makes an event of each condition that has turned. One that cannot be written is an
// event, too: there is no other place to say it.
func (r *Reconciler) patchStatus(ctx context.Context, property, before *v1alpha1.Property) error {
	patched := property.DeepCopy()
	err := r.Client.Status().Patch(ctx, patched, client.MergeFrom(before), client.FieldOwner(resources.ManagedBy))
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		err = objectFailed("write the status of", propertyKey(property), nil, err)
		if why := failureOf(err); why.reason == v1alpha1.ReasonRefused {
			r.Recorder.Eventf(property, nil, corev1.EventTypeWarning, "StatusNotWritten", why.reason, "%s", shortened(why.message, mostNote))
		}
		return err
	}
	patched.DeepCopyInto(property)
	if property.ResourceVersion != before.ResourceVersion {
		r.memories.of(property).superseded = before.ResourceVersion
	}
	for _, condition := range property.Status.Conditions {
		old := meta.FindStatusCondition(before.Status.Conditions, condition.Type)
		if old != nil && old.Status == condition.Status && old.Reason == condition.Reason {
			continue
		}
		if old == nil && condition.Status == metav1.ConditionTrue {
			continue // what is good from the start has not turned; a new Property would have seven such events
		}
		r.tell(property, condition)
	}
	return nil
}

// mostNote is how long the note of an event may be, in bytes: the API server refuses a longer one.
const mostNote = 1000

// tell makes an event of a condition that has turned. Its reason, which is what kubectl shows, says which one turned to
// what, such as RedisReadyFalse; the action is the condition's reason.
func (r *Reconciler) tell(property *v1alpha1.Property, condition metav1.Condition) {
	kind := corev1.EventTypeNormal
	bad := condition.Status != metav1.ConditionTrue && condition.Reason != v1alpha1.ReasonProgressing
	if bad || condition.Reason == v1alpha1.ReasonCredentialsReplaced {
		kind = corev1.EventTypeWarning
	}
	note := condition.Reason + ": " + condition.Message
	r.Recorder.Eventf(property, nil, kind, condition.Type+string(condition.Status), condition.Reason, "%s", shortened(note, mostNote))
}
