package resources

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	applyapps "k8s.io/client-go/applyconfigurations/apps/v1"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	applymeta "k8s.io/client-go/applyconfigurations/meta/v1"
	applynetworking "k8s.io/client-go/applyconfigurations/networking/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// redisConf is the configuration of every Redis that Weir runs in a cluster, redisTLSConf what those that speak TLS have beside it.
// The chart has copies for the bundled one.
var (
	//go:embed redis.conf
	redisConf string
	//go:embed redis-tls.conf
	redisTLSConf string
)

const (
	// RedisPort is where the Redis of a Property listens.
	RedisPort = 6379
	// redisComponent is the component label of its objects.
	redisComponent = "redis"
	// annotationRedisConf is a hash of the configuration, which Redis reads when it starts.
	annotationRedisConf = "weir.dev/redis-config"

	redisGracePeriod = 60
	redisDataDir     = "/data"
	redisConfDir     = "/etc/redis"
	redisTLSDir      = "/etc/weir/redis-tls"
)

// The keys of the Secret with the administrator of a Property's Redis that is made for it.
const (
	RedisAdminURL      = "url"
	RedisAdminName     = "username"
	RedisAdminPassword = "password"
)

// DedicatedRedisName is the name of the objects of the Redis that is made for a Property.
func DedicatedRedisName(property *v1alpha1.Property) string { return property.Name + "-redis" }

// RedisAdminSecretName is the Secret with that Redis's administrator.
func RedisAdminSecretName(property *v1alpha1.Property) string { return property.Name + "-redis-admin" }

// RedisTLSSecretName is the Secret with the certificates of that Redis.
func RedisTLSSecretName(property *v1alpha1.Property) string { return property.Name + "-redis-tls" }

// RedisPodName is that Redis's one pod.
func RedisPodName(property *v1alpha1.Property) string { return DedicatedRedisName(property) + "-0" }

// DedicatedRedisConf is the redis.conf of a Redis that is made for a Property.
func DedicatedRedisConf(redis *v1alpha1.DedicatedRedis) string {
	return fmt.Sprintf("%s%sappendfsync always\nmaxmemory %d\n", redisConf, redisTLSConf, redis.Memory.Value())
}

// redisMemoryLimit is what the container may use: the data, half as much again for what is written while the append-only file is
// rewritten by a process of its own, and what Redis takes itself.
func redisMemoryLimit(redis *v1alpha1.DedicatedRedis) resource.Quantity {
	limit := redis.Memory.DeepCopy()
	limit.Add(*resource.NewQuantity(redis.Memory.Value()/2, resource.BinarySI))
	limit.Add(resource.MustParse("64Mi"))
	return limit
}

// redisSelector are labels of the pod alone. It has not that of what is managed, by which the Property's own pods are told: nothing
// waits for Redis to end, and the operator's Redis lets nobody in without it.
func redisSelector(property *v1alpha1.Property) map[string]string {
	return map[string]string{LabelName: ManagedBy, LabelInstance: property.Name, LabelComponent: redisComponent}
}

func redisLabels(property *v1alpha1.Property) map[string]string {
	labels := Labels(property)
	labels[LabelComponent] = redisComponent
	return labels
}

// dedicatedRedis is what the Redis of a Property is made of, but for its Secrets; nothing where the spec asks for none.
func dedicatedRedis(property *v1alpha1.Property, options *Options) []Object {
	redis := property.Spec.DedicatedRedis()
	if redis == nil {
		return nil
	}
	name, namespace := DedicatedRedisName(property), property.Namespace
	objects := []Object{
		{kindServiceAccount, namespace, name, applycore.ServiceAccount(name, namespace).
			WithLabels(redisLabels(property)).
			WithOwnerReferences(ownedBy(property)).
			WithAutomountServiceAccountToken(false)},
		{kindConfigMap, namespace, name, applycore.ConfigMap(name, namespace).
			WithLabels(redisLabels(property)).
			WithOwnerReferences(ownedBy(property)).
			WithData(map[string]string{"redis.conf": DedicatedRedisConf(redis)})},
		{kindService, namespace, name, applycore.Service(name, namespace).
			WithLabels(redisLabels(property)).
			WithOwnerReferences(ownedBy(property)).
			WithSpec(applycore.ServiceSpec().
				WithType(corev1.ServiceTypeClusterIP).
				WithSelector(redisSelector(property)).
				WithPorts(applycore.ServicePort().WithName("redis").WithPort(RedisPort).WithProtocol(corev1.ProtocolTCP).WithTargetPort(intstr.FromString("redis"))))},
	}
	if !options.Network.Disabled {
		objects = append(objects, redisNetworkPolicy(property, options.Network))
	}
	return append(objects, redisStatefulSet(property, redis, options))
}

// redisNetworkPolicy lets the Property's pods and the operator in, and nothing out.
func redisNetworkPolicy(property *v1alpha1.Property, rules NetworkRules) Object {
	name := DedicatedRedisName(property)
	in := applynetworking.NetworkPolicyIngressRule().WithPorts(tcp(RedisPort))
	if len(rules.RedisFrom) > 0 {
		own := applynetworking.NetworkPolicyPeer().WithPodSelector(applymeta.LabelSelector().WithMatchLabels(Labels(property)))
		in.WithFrom(own).WithFrom(peers(rules.RedisFrom)...)
	}
	return Object{kindNetworkPolicy, property.Namespace, name, applynetworking.NetworkPolicy(name, property.Namespace).
		WithLabels(redisLabels(property)).
		WithOwnerReferences(ownedBy(property)).
		WithSpec(applynetworking.NetworkPolicySpec().
			WithPodSelector(applymeta.LabelSelector().WithMatchLabels(redisSelector(property))).
			WithPolicyTypes(networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress).
			WithIngress(in))}
}

// redisStatefulSet runs Redis. A restart refuses events for as long as it takes, so a change waits until somebody deletes the pod. The
// volume stays when the set is deleted, whoever does so: only at the Property's own deletion it is told to let it go along where the data
// shall, so that nobody needs rights to claims. With the policy Parallel that is carried out while the pod is not ready, too.
func redisStatefulSet(property *v1alpha1.Property, redis *v1alpha1.DedicatedRedis, options *Options) Object {
	name := DedicatedRedisName(property)
	claim := applycore.PersistentVolumeClaimSpec().
		WithAccessModes(corev1.ReadWriteOnce).
		WithResources(applycore.VolumeResourceRequirements().WithRequests(corev1.ResourceList{corev1.ResourceStorage: redis.Storage}))
	if redis.StorageClassName != nil {
		claim.WithStorageClassName(*redis.StorageClassName)
	}
	data := applycore.PersistentVolumeClaim("data", "").WithLabels(redisSelector(property)).WithSpec(claim)
	data.Namespace = nil // it is the StatefulSet's
	return Object{kindStatefulSet, property.Namespace, name, applyapps.StatefulSet(name, property.Namespace).
		WithLabels(redisLabels(property)).
		WithOwnerReferences(ownedBy(property)).
		WithSpec(applyapps.StatefulSetSpec().
			WithServiceName(name).
			WithReplicas(1).
			WithRevisionHistoryLimit(3).
			WithPodManagementPolicy(appsv1.ParallelPodManagement).
			WithUpdateStrategy(applyapps.StatefulSetUpdateStrategy().WithType(appsv1.OnDeleteStatefulSetStrategyType)).
			WithPersistentVolumeClaimRetentionPolicy(applyapps.StatefulSetPersistentVolumeClaimRetentionPolicy().
				WithWhenDeleted(appsv1.RetainPersistentVolumeClaimRetentionPolicyType).WithWhenScaled(appsv1.RetainPersistentVolumeClaimRetentionPolicyType)).
			WithSelector(applymeta.LabelSelector().WithMatchLabels(redisSelector(property))).
			WithTemplate(redisPod(property, redis, options)).
			WithVolumeClaimTemplates(data))}
}

func redisPod(property *v1alpha1.Property, redis *v1alpha1.DedicatedRedis, options *Options) *applycore.PodTemplateSpecApplyConfiguration {
	defaults := &options.PodDefaults
	said := defaults.with(&v1alpha1.PodOptions{})
	sum := sha256.Sum256([]byte(DedicatedRedisConf(redis)))
	annotations := map[string]string{}
	maps.Copy(annotations, said.PodAnnotations)
	annotations[annotationRedisConf] = hex.EncodeToString(sum[:16])
	pod := applycore.PodSpec().
		WithServiceAccountName(DedicatedRedisName(property)).
		WithAutomountServiceAccountToken(false).
		WithEnableServiceLinks(false).
		WithTerminationGracePeriodSeconds(redisGracePeriod).
		WithSecurityContext(podSecurity(options.AnyUser).WithFSGroupChangePolicy(corev1.FSGroupChangeOnRootMismatch)).
		WithInitContainers(redisUsers(options)).
		WithContainers(redisContainer(redis, options)).
		WithVolumes(
			secretVolume("url", RedisAdminSecretName(property), RedisAdminURL),
			secretVolume("certificates", RedisTLSSecretName(property), "tls.crt", "tls.key", "ca.crt"), // not the authority's key
			applycore.Volume().WithName("config").WithConfigMap(applycore.ConfigMapVolumeSource().WithName(DedicatedRedisName(property)).WithDefaultMode(0o440)),
		)
	place(pod, said, redisSelector(property))
	if defaults.PriorityClassName != "" {
		pod.WithPriorityClassName(defaults.PriorityClassName)
	}
	return applycore.PodTemplateSpec().WithLabels(under(redisSelector(property), defaults.Labels)).WithAnnotations(annotations).WithSpec(pod)
}

// redisUsers writes the aclfile, without which Redis does not start: it takes the administrator's password from nowhere else then.
func redisUsers(options *Options) *applycore.ContainerApplyConfiguration {
	return applycore.Container().
		WithName("acl-file").
		WithImage(options.Image).
		WithImagePullPolicy(corev1.PullIfNotPresent).
		WithCommand("/weir-operator").
		WithArgs("acl-file", "--redis-url-file=/etc/weir/redis/url", "--acl-file="+redisDataDir+"/users.acl").
		WithResources(applycore.ResourceRequirements().
			WithRequests(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("32Mi")}).
			WithLimits(corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")})).
		WithSecurityContext(containerSecurity()).
		WithVolumeMounts(
			applycore.VolumeMount().WithName("data").WithMountPath(redisDataDir),
			applycore.VolumeMount().WithName("url").WithMountPath("/etc/weir/redis").WithReadOnly(true),
		)
}

func redisContainer(redis *v1alpha1.DedicatedRedis, options *Options) *applycore.ContainerApplyConfiguration {
	return applycore.Container().
		WithName("redis").
		WithImage(options.RedisImage).
		WithImagePullPolicy(corev1.PullIfNotPresent).
		WithCommand("redis-server").
		WithArgs(redisConfDir+"/redis.conf").
		WithPorts(applycore.ContainerPort().WithName("redis").WithContainerPort(RedisPort).WithProtocol(corev1.ProtocolTCP)).
		// A Redis that waits for its disk is slow, not dead: it is restarted only where it takes no connections.
		WithLivenessProbe(applycore.Probe().WithTCPSocket(applycore.TCPSocketAction().WithPort(intstr.FromString("redis"))).
			WithPeriodSeconds(10).WithTimeoutSeconds(5).WithFailureThreshold(6)).
		// The aclfile has a user for this, who may PING with any password; it fails while the file is being loaded.
		WithReadinessProbe(applycore.Probe().WithExec(applycore.ExecAction().WithCommand(
			"redis-cli", "--tls", "--cacert", redisTLSDir+"/ca.crt", "--user", "probe", "--pass", "probe", "--no-auth-warning", "-e", "ping")).
			WithPeriodSeconds(3).WithTimeoutSeconds(3).WithFailureThreshold(3)).
		WithResources(applycore.ResourceRequirements().
			WithRequests(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: redis.Memory}).
			WithLimits(corev1.ResourceList{corev1.ResourceMemory: redisMemoryLimit(redis)})).
		WithSecurityContext(containerSecurity()).
		WithVolumeMounts(
			applycore.VolumeMount().WithName("data").WithMountPath(redisDataDir),
			applycore.VolumeMount().WithName("config").WithMountPath(redisConfDir).WithReadOnly(true),
			applycore.VolumeMount().WithName("certificates").WithMountPath(redisTLSDir).WithReadOnly(true),
		)
}
