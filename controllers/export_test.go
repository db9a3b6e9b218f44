package controllers

import (
	"context"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/egress"
	"github.com/weir-dev/weir/controllers/resources"
)

// Index makes the lookups of a reconciler that a test drives by hand, those of the optional kinds too.
func Index(ctx context.Context, indexer client.FieldIndexer) error {
	if err := index(ctx, indexer, ExposureRules{}); err != nil {
		return err
	}
	for _, kind := range resources.OptionalKinds() {
		if err := indexer.IndexField(ctx, partial(kind), indexOwner, ownerOf); err != nil {
			return err
		}
	}
	return nil
}

// RedisOverlap is for how long a role's old password holds beside a new one.
const RedisOverlap = redisOverlap

// HistoryInterval is how often each history is looked at.
const HistoryInterval = historyInterval

// Refusals are what the operator does not allow of a Property, in the words of its conditions.
func Refusals(options Options, property *v1alpha1.Property) []string {
	var messages []string
	if refused, _ := options.Exposure.check(property); refused != nil {
		messages = append(messages, refused.reason+" "+refused.message)
	}
	podProblems := options.refusedPods(property)
	for _, role := range resources.Roles() {
		if refused := podProblems[role]; refused != nil {
			messages = append(messages, refused.reason+" "+refused.message)
		}
	}
	return messages
}

// Lost is why a Property does not get its hosts, in the words of its condition; "" where it does.
func Lost(rules ExposureRules, property *v1alpha1.Property, rivals []v1alpha1.Property) string {
	if lost := rules.lost(property, rivals); lost != nil {
		return lost.reason + " " + lost.message
	}
	return ""
}

// Rollout judges a Deployment: a reason of WorkloadsAvailable, "" where it is as the spec has it.
func Rollout(d *appsv1.Deployment) string { return rolloutOf(d).reason }

// Backoff is how long what failed waits.
var Backoff = newBackoff

// IsNews says whether a change of a Property has it reconciled.
func IsNews(backoff workqueue.TypedRateLimiter[reconcile.Request], before, after *v1alpha1.Property) bool {
	return changesOfProperties(backoff).Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})
}

// Overdue says whether what is left in a Redis is given up after it was looked at so often.
func Overdue(own bool, looks int) bool {
	return (&redisDebt{looks: looks}).overdue(redisTarget{own: own})
}

// ObjectFailed words what the API server answered about a Secret.
func ObjectFailed(held map[string][]byte, err error) error {
	return objectFailed("create", secretKey("shop"), held, err)
}

// Choose says of keys and tokens that name a Property of a UID why each is not in force, by its name; "" where it is.
func Choose(property types.UID, tokens []v1alpha1.AccessToken, keys []v1alpha1.APIKey, own map[auth.Hash]string, duplicate types.UID, now time.Time) map[string]string {
	var objects []*credentialObject
	for i := range tokens {
		objects = append(objects, objectOfToken(&tokens[i]))
	}
	for i := range keys {
		objects = append(objects, objectOfKey(&keys[i]))
	}
	for _, o := range objects {
		o.adoption, o.copied = o.adoptionBy(property), o.object.GetUID() == duplicate
	}
	chosen := chooseCredentials(objects, own, now)
	found := map[string]string{}
	for _, o := range objects {
		switch in := slices.Contains(chosen, o); {
		case in != (o.refused == nil):
			found[o.object.GetName()] = "both chosen and refused, or neither"
		case in:
			found[o.object.GetName()] = ""
		default:
			found[o.object.GetName()] = o.refused.reason
		}
	}
	return found
}

// StateOfPod says what keeps the pod of a Property's Redis from running.
func StateOfPod(pod *corev1.Pod) string { return stateOfPod(pod) }

// InsideGuard is asked where the Redis may be that is made for a Property.
func InsideGuard() *egress.Guard { return &egress.Guard{Allowed: insideRanges()} }

// ProblemOfDedicated is what the condition says of a problem of the Redis of the name that was made for a Property.
func ProblemOfDedicated(name string, problem error) string {
	return redisProblemOf(redisTarget{dedicated: name}, problem).message
}
