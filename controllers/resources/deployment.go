package resources

import (
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	applyapps "k8s.io/client-go/applyconfigurations/apps/v1"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	applymeta "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/config"
)

// What others have to know of the pods.
const (
	// ConfigDir is where the configuration is mounted.
	ConfigDir = "/etc/weir"
	// HTTPPort is the container port at which the roles answer that are asked.
	HTTPPort = 8080
	// MetricsPort is the one for readiness and metrics.
	MetricsPort = 9090
	// ShownToken begins the keys of access tokens in the Secret that shows them to the Property's owner; the token's name follows.
	ShownToken = "access-token."
)

const (
	containerName = "weir"
	userID        = 65532

	// drainDelay is how long a pod goes on taking requests after its readiness has turned false, so that load
	// balancers notice; gracePeriod leaves as much again for what is under way.
	drainDelay  = 10 * time.Second
	gracePeriod = 45 * time.Second

	// progressDeadline is how long a rollout may stand still before the Property says Unavailable.
	progressDeadline = 300
)

// What of a Property takes new pods; everything else reaches running pods through their mounted files.
const (
	// annotationRedis is a hash of where Redis is: a pod dials it once, when it starts. User, password and
	// certificates are read again when they change.
	annotationRedis = "weir.dev/redis"
	// AnnotationHistory is the same of where the history is, on the pods that reach it.
	AnnotationHistory = "weir.dev/history"
	// annotationCurrency is on the query pods, whose sums are in that currency.
	annotationCurrency = "weir.dev/currency"
	// AnnotationConfig is the [ConfigHash] that a running pod was told of.
	AnnotationConfig = "weir.dev/config"
)

// rollout is how pods are replaced: one after the other, or where there must not be two, each when the one before is gone.
func rollout(role Role) *applyapps.DeploymentStrategyApplyConfiguration {
	if role.traits().alone {
		return applyapps.DeploymentStrategy().WithType("Recreate")
	}
	return applyapps.DeploymentStrategy().WithType("RollingUpdate").WithRollingUpdate(
		applyapps.RollingUpdateDeployment().WithMaxUnavailable(intstr.FromInt32(0)).WithMaxSurge(intstr.FromInt32(1)))
}

func deployment(property *v1alpha1.Property, role Role, in Input) Object {
	name := ObjectName(property, role)
	spec := applyapps.DeploymentSpec().
		WithSelector(applymeta.LabelSelector().WithMatchLabels(selector(property, role))).
		WithStrategy(rollout(role)).
		WithRevisionHistoryLimit(3).
		WithProgressDeadlineSeconds(progressDeadline).
		WithTemplate(podTemplate(property, role, in))
	if !role.traits().spec(&property.Spec).leaves() {
		spec.WithReplicas(replicas(property, role))
	}
	return Object{kindDeployment, property.Namespace, name, applyapps.Deployment(name, property.Namespace).
		WithLabels(roleLabels(property, role)).
		WithOwnerReferences(ownedBy(property)).
		WithSpec(spec)}
}

func podTemplate(property *v1alpha1.Property, role Role, in Input) *applycore.PodTemplateSpecApplyConfiguration {
	defaults := &in.Options.PodDefaults
	options := defaults.with(PodOptions(property, role))
	annotations := maps.Clone(options.PodAnnotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[annotationRedis] = placeHash(in.RedisURLs[role])
	if address := in.HistoryURLs[role.HistoryRole()]; address != "" {
		annotations[AnnotationHistory] = placeHash(address)
	}
	if role.traits().reports {
		annotations[annotationCurrency] = property.Spec.Currency
	}
	pod := applycore.PodSpec().
		WithServiceAccountName(ObjectName(property, role)).
		WithAutomountServiceAccountToken(false).
		WithEnableServiceLinks(false).
		WithTerminationGracePeriodSeconds(int64(gracePeriod / time.Second)).
		WithSecurityContext(podSecurity(in.Options.AnyUser)).
		WithContainers(container(property, role, in)).
		WithVolumes(volumes(property, role, in)...)
	place(pod, options, selector(property, role))
	if defaults.PriorityClassName != "" {
		pod.WithPriorityClassName(defaults.PriorityClassName)
	}
	labels := under(roleLabels(property, role), defaults.Labels)
	return applycore.PodTemplateSpec().WithLabels(labels).WithAnnotations(annotations).WithSpec(pod)
}

// podSecurity is what restricted Pod Security asks for. The program needs no certain user or group: its files are read by the group
// that they are mounted for, and it writes none.
func podSecurity(anyUser bool) *applycore.PodSecurityContextApplyConfiguration {
	security := applycore.PodSecurityContext().
		WithRunAsNonRoot(true).
		WithSeccompProfile(applycore.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))
	if anyUser {
		return security
	}
	return security.WithRunAsUser(userID).WithRunAsGroup(userID).WithFSGroup(userID)
}

func container(property *v1alpha1.Property, role Role, in Input) *applycore.ContainerApplyConfiguration {
	traits := role.traits()
	args := []string{"--roles=" + traits.serves, "--config-dir=" + ConfigDir, "--metrics-listen=:9090"}
	ports := []*applycore.ContainerPortApplyConfiguration{
		applycore.ContainerPort().WithName("metrics").WithContainerPort(MetricsPort).WithProtocol(corev1.ProtocolTCP),
	}
	if traits.takesRequests {
		args = append(args, "--listen=:8080", "--drain-delay="+drainDelay.String())
		ports = append(ports, applycore.ContainerPort().WithName("http").WithContainerPort(HTTPPort).WithProtocol(corev1.ProtocolTCP))
	}
	var mounts []*applycore.VolumeMountApplyConfiguration
	for _, volume := range volumes(property, role, in) {
		mounts = append(mounts, applycore.VolumeMount().WithName(*volume.Name).WithMountPath(mountPath(*volume.Name)).WithReadOnly(true))
	}
	spec := traits.spec(&property.Spec)
	requests, limits := containerResources(traits, spec.pods.Resources, spec.autoscaling != nil)
	own := map[string]string{}
	if traits.gogc != "" {
		own[gogc] = traits.gogc
	}
	in.Options.Tracing.environment(property, role, own)
	return applycore.Container().
		WithEnv(in.Options.PodDefaults.environment(own)...).
		WithName(containerName).
		WithImage(in.Options.Image).
		WithImagePullPolicy(corev1.PullIfNotPresent).
		WithCommand("/collector").
		WithArgs(args...).
		WithPorts(ports...).
		WithVolumeMounts(mounts...).
		WithResources(applycore.ResourceRequirements().WithRequests(requests).WithLimits(limits)).
		// The view is rebuilt from the stream at the start, which may take a while.
		WithStartupProbe(probe("/livez").WithPeriodSeconds(1).WithFailureThreshold(60)).
		WithLivenessProbe(probe("/livez").WithPeriodSeconds(10).WithFailureThreshold(6).WithTimeoutSeconds(5)).
		WithReadinessProbe(probe("/readyz").WithPeriodSeconds(2).WithFailureThreshold(2).WithTimeoutSeconds(3)).
		WithSecurityContext(containerSecurity())
}

func containerSecurity() *applycore.SecurityContextApplyConfiguration {
	return applycore.SecurityContext().
		WithAllowPrivilegeEscalation(false).WithReadOnlyRootFilesystem(true).WithPrivileged(false).
		WithCapabilities(applycore.Capabilities().WithDrop("ALL"))
}

func probe(endpoint string) *applycore.ProbeApplyConfiguration {
	return applycore.Probe().WithHTTPGet(applycore.HTTPGetAction().WithPath(endpoint).WithPort(intstr.FromString("metrics")))
}

// cpuRequest is how much processor time is set aside where nobody says.
const cpuRequest = "50m"

// containerResources are the owner's, or what a small property needs. An autoscaler goes by a share of the processor time that is
// set aside. Where a limit of it is given the cluster takes that, and where neither is it would never scale.
func containerResources(role roleTraits, asked *v1alpha1.Resources, autoscaled bool) (requests, limits corev1.ResourceList) {
	if asked == nil {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpuRequest), corev1.ResourceMemory: resource.MustParse(role.memory)},
			corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(role.memoryLimit)}
	}
	requests, limits = asked.Requests, asked.Limits
	_, requested := requests[corev1.ResourceCPU]
	_, limited := limits[corev1.ResourceCPU]
	if autoscaled && !requested && !limited {
		requests = maps.Clone(requests)
		if requests == nil {
			requests = corev1.ResourceList{}
		}
		requests[corev1.ResourceCPU] = resource.MustParse(cpuRequest)
	}
	return requests, limits
}

// Volumes, by their names. Each is a directory of its own rather than a subPath, which would never be updated.
const (
	volumeProperty = "property"
	volumeAuth     = "auth"
	volumeRedis    = "redis"
	volumeHistory  = "history"
	volumeErasures = "erasures"
	volumeSessions = "sessions"
	platformPrefix = "platform-"
	sourcePrefix   = "source-"
)

func mountPath(volume string) string {
	if name, found := strings.CutPrefix(volume, platformPrefix); found {
		return path.Join(ConfigDir, config.PlatformsDir, name)
	}
	if name, found := strings.CutPrefix(volume, sourcePrefix); found {
		return path.Join(ConfigDir, config.SourcesDir, name)
	}
	return path.Join(ConfigDir, volume)
}

func volumes(property *v1alpha1.Property, role Role, in Input) []*applycore.VolumeApplyConfiguration {
	traits := role.traits()
	settings := applycore.ConfigMapVolumeSource().WithName(configMapName(property)).WithDefaultMode(0o440)
	for _, file := range traits.settings {
		settings.WithItems(applycore.KeyToPath().WithKey(path.Base(file)).WithPath(path.Base(file)))
	}
	list := []*applycore.VolumeApplyConfiguration{
		applycore.Volume().WithName(volumeProperty).WithConfigMap(settings),
		secretVolume(volumeRedis, RedisSecretName(property, role), slices.Sorted(maps.Keys(RedisSecretData(config.Redis{})))...),
		ledgerVolume(property, in.LedgerParts),
	}
	if reads := traits.reads; in.HistoryURLs[reads] != "" {
		list = append(list, secretVolume(volumeHistory, HistorySecretName(property, reads), slices.Sorted(maps.Keys(HistorySecretData(config.ClickHouse{})))...))
	}
	if traits.credentials != "" {
		list = append(list, secretVolume(volumeAuth, traits.credentialsSecret(property), path.Base(traits.credentials)))
	}
	if traits.signsIn {
		volume := secretVolume(volumeSessions, SessionsSecretName(property), path.Base(config.SessionKeysFile))
		volume.Secret.WithOptional(true) // tokens are taken without it
		list = append(list, volume)
	}
	if traits.delivers {
		list = append(list, platformVolumes(property)...)
		if in.Options.DeliveryProxy.URL != "" {
			list = append(list, deliveryProxyVolume(property))
		}
	}
	for _, source := range property.Spec.Sources {
		secret, keys := traits.sourceSecret(&source)
		if secret == "" {
			continue
		}
		volume := secretVolume(sourcePrefix+source.Name, secret, keys...)
		volume.Secret.WithOptional(true) // as with platforms
		list = append(list, volume)
	}
	return list
}

// platformVolumes are the platforms' Secrets.
func platformVolumes(property *v1alpha1.Property) []*applycore.VolumeApplyConfiguration {
	var list []*applycore.VolumeApplyConfiguration
	for _, platform := range property.Spec.Platforms {
		keys, secret := platform.Type.SecretKeys(platform.ForwardErasure), platform.SecretName()
		if secret == "" || len(keys) == 0 {
			continue
		}
		// One platform's missing Secret must not keep the deliverer of the others from starting.
		volume := secretVolume(platformPrefix+platform.Name, secret, keys...)
		volume.Secret.WithOptional(true)
		list = append(list, volume)
	}
	return list
}

// secretVolume mounts some keys of a Secret, so that a pod sees no more of it than it needs.
func secretVolume(name, secret string, keys ...string) *applycore.VolumeApplyConfiguration {
	source := applycore.SecretVolumeSource().WithSecretName(secret).WithDefaultMode(0o440)
	for _, key := range keys {
		source.WithItems(applycore.KeyToPath().WithKey(key).WithPath(key))
	}
	return applycore.Volume().WithName(name).WithSecret(source)
}

// MountedSecrets are the names of the Secrets that a role's pods mount and whose content no apply writes: the owner's, and that of
// sessions, sorted.
func MountedSecrets(property *v1alpha1.Property, role Role) []string {
	var names []string
	traits := role.traits()
	for _, platform := range property.Spec.Platforms {
		if secret := platform.SecretName(); traits.delivers && secret != "" {
			names = append(names, secret)
		}
	}
	for _, source := range property.Spec.Sources {
		if secret, _ := traits.sourceSecret(&source); secret != "" {
			names = append(names, secret)
		}
	}
	if traits.signsIn {
		names = append(names, SessionsSecretName(property))
	}
	slices.Sort(names)
	return slices.Compact(names)
}
