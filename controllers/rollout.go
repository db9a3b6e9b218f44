package controllers

import (
	"context"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/sources"
	"github.com/weir-dev/weir/controllers/resources"
)

// deploymentState is how far a role's Deployment is: a reason of WorkloadsAvailable with its message, or "" where
// its pods run as the spec has them.
type deploymentState struct{ reason, message string }

// rolloutOf judges a Deployment by its status.
func rolloutOf(d *appsv1.Deployment) deploymentState {
	want := int32(1)
	if d.Spec.Replicas != nil {
		want = *d.Spec.Replicas
	}
	for _, condition := range d.Status.Conditions {
		switch {
		case condition.Type == appsv1.DeploymentProgressing && condition.Reason == "ProgressDeadlineExceeded":
			return deploymentState{v1alpha1.ReasonUnavailable, fmt.Sprintf("%s: %d of %d pods are ready, and nothing has moved for a while; look at kubectl describe pods", d.Name, d.Status.AvailableReplicas, want)}
		case condition.Type == appsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue:
			return deploymentState{v1alpha1.ReasonUnavailable, d.Name + ": pods cannot be created: " + condition.Message}
		}
	}
	if d.Status.ObservedGeneration < d.Generation {
		return deploymentState{v1alpha1.ReasonProgressing, d.Name + ": not yet seen by the deployment controller"}
	}
	// While the pods are those that the spec asks for, one that serves is enough: that another restarts is no error.
	enough := min(want, 1)
	if d.Status.UpdatedReplicas < want || d.Status.AvailableReplicas < enough || d.Status.Replicas > d.Status.UpdatedReplicas {
		return deploymentState{v1alpha1.ReasonProgressing, fmt.Sprintf("%s: %d of %d pods are ready as the spec has them", d.Name, min(d.Status.UpdatedReplicas, d.Status.AvailableReplicas), want)}
	}
	return deploymentState{}
}

// scaledToZero says why a role has to have a pod: what would wake it comes from its own pods. Who wants none says so in the spec.
func scaledToZero(name string, role resources.Role) deploymentState {
	why := map[resources.Role]string{
		resources.Collector: "nobody takes events, and senders get errors",
		resources.Deliverer: "nobody delivers, and the lag by which it is scaled is told by its own pods",
		resources.Query:     "nobody answers, and a pod that is woken has to read all events first",
	}[role]
	return deploymentState{v1alpha1.ReasonScaledToZero, fmt.Sprintf(
		"%s: somebody has scaled it to 0: %s; let it have 1 at least (minReplicaCount: 1 of KEDA), or take spec.%s.autoscaling off and set replicas: 0 to mean it", name, why, role)}
}

// observe looks at what became of the Property's objects and platforms.
func (r *Reconciler) observe(ctx context.Context, s *scope) error {
	s.deployments = map[resources.Role]*deploymentState{}
	for _, role := range resources.RolesOf(s.property) {
		deployment, err := r.deployment(ctx, s.property, role)
		if err != nil {
			return err
		}
		state := deploymentState{v1alpha1.ReasonProgressing, resources.ObjectName(s.property, role) + ": not yet there"}
		if deployment != nil && metav1.IsControlledBy(deployment, s.property) {
			state = rolloutOf(deployment)
			if resources.ScaledBySomebodyElse(s.property, role) && deployment.Spec.Replicas != nil && *deployment.Spec.Replicas == 0 {
				state = scaledToZero(deployment.Name, role)
			}
		}
		s.deployments[role] = &state
	}
	r.observeArchive(s)
	return errors.Join(r.observePlatforms(ctx, s), r.observeSources(ctx, s))
}

// observePlatforms finds the platforms whose Secret does not exist, and those that the deliverers have paused. Keys
// within the Secrets are for the deliverers to miss: the operator does not read these Secrets.
func (r *Reconciler) observePlatforms(ctx context.Context, s *scope) error {
	paused := r.Redis.paused(types.NamespacedName{Namespace: s.property.Namespace, Name: s.property.Name})
	for i, platform := range s.property.Spec.Platforms {
		field := fmt.Sprintf("spec.platforms[%d] (%s)", i, platform.Name)
		add := func(f *conditionReason) {
			s.platformProblems = append(s.platformProblems, platformProblem{platform.Name, *f})
		}
		if name := platform.SecretName(); name != "" {
			version, err := r.secretVersion(ctx, s.property.Namespace, name)
			if err != nil {
				return err
			}
			if version == "" {
				traits, _ := platform.Type.Traits()
				add(reasonf(v1alpha1.ReasonSecretMissing, "%s: there is no Secret %s; create it with the key %s", field, name, traits.Credentials[0]))
				continue
			}
		}
		if platform.Suspend || platform.Type == platforms.TypeLog {
			continue // nothing is sent that could be refused
		}
		switch reason := paused[platform.Name]; reason { // anything else is nothing that a deliverer says
		case v1alpha1.ReasonSecretInvalid:
			add(reasonf(reason, "%s: the Secret lacks a key that the platform needs, or its value is not what the platform takes; docs/reference/property.md says what it takes", field))
		case v1alpha1.ReasonConfigurationRejected:
			add(reasonf(reason, "%s: the platform refuses the settings, or is gone, or eventNames has a name that the platform's page rules out; the deliverer's log says which; correct them: events wait for as long as they are retained", field))
		case v1alpha1.ReasonEgressDenied:
			add(reasonf(reason, "%s: its host has only private, loopback or link-local addresses, which the operator does not allow; choose another host, or ask for the range with --egress-allow-cidr", field))
		case v1alpha1.ReasonCredentialsRejected:
			add(reasonf(reason, "%s: the platform refuses the credentials; renew them in the Secret: events wait for as long as they are retained", field))
		}
	}
	return nil
}

// observeSources finds the sources that have no Secret, and those whose orders the deliverers cannot read.
func (r *Reconciler) observeSources(ctx context.Context, s *scope) error {
	paused := r.Redis.paused(types.NamespacedName{Namespace: s.property.Namespace, Name: s.property.Name})
	for i, source := range s.property.Spec.Sources {
		field := fmt.Sprintf("spec.sources[%d] (%s)", i, source.Name)
		traits, _ := source.Type.Traits()
		missing := func(name, keys string) error {
			version, err := r.secretVersion(ctx, s.property.Namespace, name)
			if err == nil && version == "" {
				s.sourceProblems = append(s.sourceProblems, *reasonf(v1alpha1.ReasonSecretMissing, "%s: there is no Secret %s; create it with the key %s", field, name, keys))
			}
			return err
		}
		err := missing(source.SecretRef.Name, sources.SigningSecret)
		if source.APISecretRef != nil {
			err = errors.Join(err, missing(source.APISecretRef.Name, strings.Join(traits.APICredentials, " and ")))
		}
		if err != nil {
			return err
		}
		if words := sourceReasons[paused[sourceName(source.Name)]]; words != "" {
			s.sourceProblems = append(s.sourceProblems, *reasonf(paused[sourceName(source.Name)], "%s: %s", field, words))
		}
	}
	return nil
}

// sourceReasons are why a deliverer cannot read the orders of a source; anything else is nothing that it says.
var sourceReasons = map[string]string{
	v1alpha1.ReasonSecretInvalid:         "the Secret that apiSecretRef names lacks a key; docs/reference/property.md says which it takes",
	v1alpha1.ReasonCredentialsRejected:   "the shop refuses the credentials of apiSecretRef, or they allow too little; renew them: what was missed is fetched then",
	v1alpha1.ReasonConfigurationRejected: "there is no shop's API at the url; correct it",
	v1alpha1.ReasonEgressDenied:          "the url's host has only private, loopback or link-local addresses, which the operator does not allow; choose another host, or ask for the range with --egress-allow-cidr",
}

// podsLeft counts the Property's pods that still run.
func (r *Reconciler) podsLeft(ctx context.Context, property *v1alpha1.Property) (int, error) {
	pods, err := r.running(ctx, property)
	return len(pods), err
}

// running returns the Property's pods that have not ended. One that has stays there: an import's, until somebody removes its Job. The
// cache has no phases, so the API server is asked where there are any pods.
func (r *Reconciler) running(ctx context.Context, property *v1alpha1.Property) ([]metav1.PartialObjectMetadata, error) {
	pods := &metav1.PartialObjectMetadataList{}
	pods.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	options := []client.ListOption{client.InNamespace(property.Namespace), client.MatchingLabels(resources.Labels(property))}
	if err := r.Client.List(ctx, pods, options...); err != nil || len(pods.Items) == 0 {
		return nil, err
	}
	err := r.Live.List(ctx, pods, append(options, client.MatchingFieldsSelector{Selector: fields.AndSelectors(
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)), fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed)),
	)})...)
	return pods.Items, err
}
