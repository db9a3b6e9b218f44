package controllers

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/stream"
	"github.com/weir-dev/weir/controllers/resources"
)

// redisDedicatedField is where a Property asks for a Redis of its own that the operator makes.
const redisDedicatedField = "spec.redis.dedicated"

// redisAdministrator is that Redis's administrator.
const redisAdministrator = "weir"

// insideRanges are private addresses, at one of which such a Redis is. Its Service leads there, and whoever may write the Service's
// EndpointSlices says where: to no other private address than those that pods and Services have, and never to the machine's own.
func insideRanges() []netip.Prefix {
	var ranges []netip.Prefix
	for _, text := range []string{"10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"} {
		ranges = append(ranges, netip.MustParsePrefix(text))
	}
	return ranges
}

// dedicatedSecrets makes the Secrets of the Redis that the Property asks for, and renews its certificates. It returns what stands in the way.
func (r *Reconciler) dedicatedSecrets(ctx context.Context, s *scope) (*conditionReason, error) {
	if s.options.RedisImage == "" {
		if problem, err := r.notOffered(ctx, s); err != nil || problem != nil {
			return problem, err
		}
	}
	address := r.dedicatedURL(s.property, "")
	_, taken, err := r.createOnce(ctx, s, resources.RedisAdminSecretName(s.property), func(data map[string][]byte) map[string][]byte {
		password := string(data[resources.RedisAdminPassword])
		if password == "" {
			password = rand.Text()
		}
		return map[string][]byte{
			resources.RedisAdminURL:  []byte(r.dedicatedURL(s.property, password)),
			resources.RedisAdminName: []byte(redisAdministrator), resources.RedisAdminPassword: []byte(password),
		}
	})
	if err != nil || taken != nil {
		return taken, err
	}
	hosts, err := certificateHosts(address)
	if err != nil {
		return nil, err
	}
	var failed error
	_, taken, err = r.createOnce(ctx, s, resources.RedisTLSSecretName(s.property), func(data map[string][]byte) map[string][]byte {
		var renewed map[string][]byte
		if renewed, failed = renewCertificates(data, hosts, s.now); failed != nil {
			return data
		}
		return renewed
	})
	if err = errors.Join(failed, err); err != nil || taken != nil {
		return taken, err
	}
	// The volume may have what a Property of the name has left: its end is ours to see to before there is one.
	if err := r.addFinalizer(ctx, s, Finalizer); err != nil {
		return nil, err
	}
	s.redisSecrets = true
	s.again(certificateInterval)
	return nil, nil
}

// notOffered says that this operator makes no Redis: as what stands in the way, or as a note where the Property has one already, which
// is looked after but for its pod.
func (r *Reconciler) notOffered(ctx context.Context, s *scope) (*conditionReason, error) {
	made, err := r.readSecret(ctx, s.property, resources.RedisAdminSecretName(s.property))
	if err != nil {
		return nil, err
	}
	if made == nil || !metav1.IsControlledBy(made, s.property) {
		return reasonf(v1alpha1.ReasonRedisNotOffered,
			"%s: this operator makes no Redis: start it with --redis-image, or name a Redis in spec.redis.urlSecretKeyRef", redisDedicatedField), nil
	}
	s.redisNote = reasonf(v1alpha1.ReasonRedisNotOffered, "Redis answers and has the Property's users and functions; this operator makes no Redis, so the StatefulSet %s "+
		"stays as it is until it is started with --redis-image", resources.DedicatedRedisName(s.property))
	return nil, nil
}

// dedicatedURL is how the Redis that is made for a Property is reached by its administrator.
func (r *Reconciler) dedicatedURL(property *v1alpha1.Property, password string) string {
	name := resources.DedicatedRedisName(property)
	host := name + "." + property.Namespace + ".svc:" + strconv.Itoa(resources.RedisPort)
	if r.Options.RedisAddress != nil {
		host = r.Options.RedisAddress(property.Namespace, name)
	}
	return (&url.URL{Scheme: "rediss", Host: host, User: url.UserPassword(redisAdministrator, password)}).String()
}

// dedicatedTarget is the Redis that is made for a Property. Of the Secrets the password and the authorities count, and not the URL:
// whoever may write Secrets there does not say where the operator connects.
func (r *Reconciler) dedicatedTarget(ctx context.Context, property *v1alpha1.Property) (redisTarget, *conditionReason, error) {
	read := map[string]*corev1.Secret{}
	for _, name := range []string{resources.RedisAdminSecretName(property), resources.RedisTLSSecretName(property)} {
		secret, err := r.readSecret(ctx, property, name)
		if err != nil {
			return redisTarget{}, nil, err
		}
		if secret == nil || !metav1.IsControlledBy(secret, property) {
			return redisTarget{}, reasonf(v1alpha1.ReasonSecretMissing, "%s: there is no Secret %s of the Property's", redisDedicatedField, name), nil
		}
		read[name] = secret
	}
	password := string(read[resources.RedisAdminSecretName(property)].Data[resources.RedisAdminPassword])
	target := redisTarget{url: r.dedicatedURL(property, password), dedicated: resources.DedicatedRedisName(property)}
	target.tls.CA = string(read[resources.RedisTLSSecretName(property)].Data[bundleKey])
	if err := stream.CheckTLS(target.url, target.tls); err != nil {
		return redisTarget{}, reasonf(v1alpha1.ReasonSecretInvalid, "%s: Secret %s: %v", redisDedicatedField, resources.RedisTLSSecretName(property), stream.Explain(err)), nil
	}
	return target, nil, nil
}

// reloading is when a Redis reads its certificates again, how long it was waited after the last failure, and what that was.
type reloading struct {
	next  time.Time
	pause time.Duration
	said  string
}

// longestReload bounds the time between attempts to have certificates read, firstReload is the first.
const firstReload, longestReload = time.Minute, time.Hour

// after notes how an attempt ended. It says whether there is something to tell.
func (l *reloading) after(err error, now time.Time) bool {
	if err == nil {
		*l = reloading{next: now.Add(certificateInterval)}
		return false
	}
	l.pause = min(max(firstReload, 2*l.pause), longestReload)
	l.next = now.Add(l.pause)
	before := l.said
	l.said = err.Error()
	return l.said != before
}

// reloadCertificates has a Redis that is made for a Property read its certificates again, every hour: they may have been renewed.
func (a *RedisAccess) reloadCertificates(ctx context.Context, server *redisServer, reachable bool) {
	now := a.now()
	if server.target.dedicated == "" || !reachable || now.Before(server.reloading.next) {
		return
	}
	err := stream.Explain(server.link.Load().client.ReloadCertificates(ctx))
	if server.reloading.after(err, now) {
		a.logger.WarnContext(ctx, "have a Property's redis read its certificates", "error", err)
	}
}

// observeDedicated says of the Redis that is made for the Property why its pod does not run, where Redis cannot be reached, and that it
// has to be deleted for a change to take effect, where there is one.
func (r *Reconciler) observeDedicated(ctx context.Context, s *scope) error {
	set, err := r.dedicatedSet(ctx, s.property)
	if problem := s.redisProblem; err == nil && set == nil && problem != nil && problem.reason == v1alpha1.ReasonRedisUnreachable {
		s.redisProblem = reasonf(problem.reason, "%s; its StatefulSet %s is not there: an operator with --redis-image makes it", problem.message,
			resources.DedicatedRedisName(s.property))
	}
	if err != nil || set == nil || !metav1.IsControlledBy(set, s.property) { // of somebody else's another condition's reason says so
		return err
	}
	name := resources.RedisPodName(s.property)
	if problem := s.redisProblem; problem != nil && problem.reason == v1alpha1.ReasonRedisUnreachable {
		pod := &corev1.Pod{}
		err := r.Live.Get(ctx, client.ObjectKey{Namespace: set.Namespace, Name: name}, pod)
		if client.IgnoreNotFound(err) != nil {
			return objectFailed("read", objectKey{corev1.SchemeGroupVersion.WithKind("Pod"), name}, nil, err)
		}
		words := "is not there yet; kubectl describe statefulset " + set.Name + " says why where it stays away"
		if !apierrors.IsNotFound(err) {
			words = stateOfPod(pod)
		}
		s.redisProblem = reasonf(problem.reason, "%s; its pod %s %s", problem.message, name, words)
		return nil
	}
	if set.Status.Replicas > set.Status.UpdatedReplicas && s.redisNote == nil {
		s.redisNote = reasonf(v1alpha1.ReasonReady, "Redis answers and has the Property's users and functions; its pod %s is of before a change of its memory, image "+
			"or configuration, which takes effect when it is deleted: events are refused until the next one answers", name)
	}
	return nil
}

func dedicatedSetKey(property *v1alpha1.Property) objectKey {
	return objectKey{appsv1.SchemeGroupVersion.WithKind("StatefulSet"), resources.DedicatedRedisName(property)}
}

// dedicatedSet returns the StatefulSet of the name of the Property's Redis, whosever it is, as the server has it; nil where there is none.
func (r *Reconciler) dedicatedSet(ctx context.Context, property *v1alpha1.Property) (*appsv1.StatefulSet, error) {
	set, key := &appsv1.StatefulSet{}, dedicatedSetKey(property)
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: property.Namespace, Name: key.name}, set)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return set, objectFailed("read", key, nil, err)
}

// stateOfPod says what keeps a pod from running, as far as it is easily known.
func stateOfPod(pod *corev1.Pod) string {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return "cannot be scheduled: " + shortened(condition.Message, mostWords)
		}
	}
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		waiting := status.State.Waiting
		if waiting == nil || waiting.Reason == "" || slices.Contains([]string{"PodInitializing", "ContainerCreating"}, waiting.Reason) {
			continue
		}
		return fmt.Sprintf("waits with %s in its container %s", waiting.Reason, status.Name)
	}
	if pod.Status.Phase == corev1.PodPending {
		return "is being started; kubectl describe pod " + pod.Name + " says what it waits for"
	}
	return "runs and does not answer: it loads its data, or a NetworkPolicy keeps the operator from it"
}
