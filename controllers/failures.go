package controllers

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/history/access"
	"github.com/weir-dev/weir/controllers/resources"
)

const (
	// shortestBackoff and longestBackoff bound how long what failed waits to be tried again. Nobody tells the operator that
	// a quota was raised or a policy mended.
	shortestBackoff = 50 * time.Millisecond
	longestBackoff  = 30 * time.Second
	// mostWords bounds what a condition repeats of one answer of the API server's, mostMessage all of a condition.
	mostWords   = 600
	mostMessage = 3000
)

// newBackoff doubles the wait from one failure to the next, up to longest; 0 is half a minute.
func newBackoff(longest time.Duration) workqueue.TypedRateLimiter[reconcile.Request] {
	if longest == 0 {
		longest = longestBackoff
	}
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](shortestBackoff, longest)
}

// changesOfProperties passes what is news of a Property: another spec, which is tried without the waits of the one
// before, other metadata, and that it is to be looked at again. Another status, which the operator writes itself, is none:
// words that differ each time would make it try without end.
func changesOfProperties(backoff workqueue.TypedRateLimiter[reconcile.Request]) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld, e.ObjectNew
		if before.GetGeneration() != after.GetGeneration() {
			backoff.Forget(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(after)})
			return true
		}
		return before.GetDeletionTimestamp().IsZero() != after.GetDeletionTimestamp().IsZero() ||
			equality.Semantic.DeepEqual(before.(*v1alpha1.Property).Status, after.(*v1alpha1.Property).Status)
	}}
}

// objectError is why an object could not be read, made, changed or deleted, in the API server's words. Its text can be
// shown: what a Secret holds is not in it.
type objectError struct {
	verb   string
	object objectKey
	words  string
	cause  error
}

func (e *objectError) Error() string {
	return fmt.Sprintf("cannot %s %s %s: %s", e.verb, e.object.Kind, e.object.name, e.words)
}

func (e *objectError) Unwrap() error { return e.cause }

// objectFailed words an error about an object; nil for none. held are the values of a Secret, which an answer may repeat.
func objectFailed(verb string, object objectKey, held map[string][]byte, err error) error {
	if err == nil {
		return nil
	}
	words := err.Error()
	for _, value := range held {
		const shortest = 4 // what is shorter is in any text
		for _, form := range []string{string(value), base64.StdEncoding.EncodeToString(value)} {
			if len(form) >= shortest {
				words = strings.ReplaceAll(words, form, "…")
			}
		}
	}
	return &objectError{verb, object, words, err}
}

// failed notes what could not be done. It is tried again, and the condition that it belongs to says why: that of its
// object, or else the one given.
func (s *scope) failed(condition string, err error) {
	for _, one := range leaves(err) {
		if passing(one) {
			s.behind = true
			continue
		}
		s.errs = append(s.errs, one)
		kind := condition
		if named := (*objectError)(nil); errors.As(one, &named) {
			kind = s.conditionOf(named.object, condition)
		}
		if s.failures == nil {
			s.failures = map[string][]conditionReason{}
		}
		s.failures[kind] = append(s.failures[kind], failureOf(one))
	}
}

// leaves are the errors that were joined.
func leaves(err error) []error {
	if err == nil {
		return nil
	}
	joined, many := err.(interface{ Unwrap() []error }) // what wraps a join is one error
	if !many {
		return []error{err}
	}
	var all []error
	for _, one := range joined.Unwrap() {
		all = append(all, leaves(one)...)
	}
	return all
}

// passing says whether an error is over when the cache has caught up with what we wrote, or somebody else was faster. A
// webhook that answers like that is neither.
func passing(err error) bool {
	status := apierrors.APIStatus(nil)
	return (apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)) &&
		errors.As(err, &status) && !strings.HasPrefix(status.Status().Message, "admission webhook")
}

// conditionOf is the condition that an object's failures belong to.
func (s *scope) conditionOf(object objectKey, otherwise string) string {
	if resources.Exposes(object.GroupVersionKind) {
		return v1alpha1.ConditionExposed
	}
	for _, role := range resources.Roles() {
		if object.name == resources.RedisSecretName(s.property, role) {
			return v1alpha1.ConditionRedisReady
		}
	}
	switch object.name {
	case resources.DedicatedRedisName(s.property), resources.RedisAdminSecretName(s.property), resources.RedisTLSSecretName(s.property):
		return v1alpha1.ConditionRedisReady
	}
	for _, role := range access.Roles() {
		if object.name == resources.HistorySecretName(s.property, role) {
			return v1alpha1.ConditionHistoryReady
		}
	}
	if object.name == resources.CredentialsSecretName(s.property) || object.name == resources.SessionsSecretName(s.property) {
		return v1alpha1.ConditionCredentialsReady
	}
	for part := range config.MaxLedgerParts {
		if object.name == resources.ErasuresSecretName(s.property, part) {
			return v1alpha1.ConditionErasuresReady
		}
	}
	return otherwise
}

// failureOf words an error for a condition. What is not of the API server is not repeated: nobody knows what it holds.
func failureOf(err error) conditionReason {
	status, named := apierrors.APIStatus(nil), (*objectError)(nil)
	if !errors.As(err, &status) {
		return conditionReason{v1alpha1.ReasonServerFailed, "something failed, and is tried again; the operator's log says what"}
	}
	reason := v1alpha1.ReasonServerFailed
	if code := status.Status().Code; code >= http.StatusBadRequest && code < http.StatusInternalServerError && code != http.StatusTooManyRequests {
		reason = v1alpha1.ReasonRefused
	}
	words := status.Status().Message
	if errors.As(err, &named) {
		words = named.Error()
	}
	return conditionReason{reason, shortened(words, mostWords)}
}

// shortened cuts a text to a length in bytes.
func shortened(text string, most int) string {
	const sign = " …"
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len(sign)], "") + sign
}

// failuresOf is the check of what failed for a condition: refusals before what only time mends.
func failuresOf(condition string) check {
	return func(s *scope) *conditionReason { return inOne(s.failures[condition]) }
}

// inOne says several things in one, by the order of their reasons, under the first of these; nil where there is nothing to say.
func inOne(all []conditionReason) *conditionReason {
	if len(all) == 0 {
		return nil
	}
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b conditionReason) int { return strings.Compare(a.reason, b.reason) })
	messages := make([]string, len(all))
	for i, one := range all {
		messages[i] = one.message
	}
	return &conditionReason{all[0].reason, shortened(strings.Join(messages, "; "), mostMessage)}
}
