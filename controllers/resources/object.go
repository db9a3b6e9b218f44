package resources

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	applyapps "k8s.io/client-go/applyconfigurations/apps/v1"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	applymeta "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// Object is one desired object: what the operator owns of it, and nothing else. Applying writes the server's
// answer into what is applied, so that is always a copy.
type Object struct {
	schema.GroupVersionKind
	Namespace, Name string
	// Configuration is a typed apply configuration, or an *unstructured.Unstructured for the optional kinds.
	Configuration any
}

// JSON returns the configuration as JSON, the same bytes for the same configuration.
func (o Object) JSON() ([]byte, error) {
	text, err := json.Marshal(o.Configuration)
	if err != nil {
		return nil, fmt.Errorf("render %s %s: %w", o.Kind, o.Name, err)
	}
	return text, nil
}

// Unstructured returns a copy of the configuration as it is sent.
func (o Object) Unstructured() (*unstructured.Unstructured, error) {
	text, err := o.JSON()
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(text, &object.Object); err != nil {
		return nil, fmt.Errorf("render %s %s: %w", o.Kind, o.Name, err)
	}
	return object, nil
}

// Values are what a Secret holds, nil of another object.
func (o Object) Values() map[string][]byte {
	if secret, isOne := o.Configuration.(*applycore.SecretApplyConfiguration); isOne {
		return secret.Data
	}
	return nil
}

// LeavesReplicas says whether it is a Deployment whose number of pods is not applied.
func (o Object) LeavesReplicas() bool {
	deployment, isOne := o.Configuration.(*applyapps.DeploymentApplyConfiguration)
	return isOne && deployment.Spec.Replicas == nil
}

// The kinds that are made for a Property.
var (
	kindServiceAccount = schema.GroupVersionKind{Version: "v1", Kind: "ServiceAccount"}
	kindConfigMap      = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	kindSecret         = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
	kindService        = schema.GroupVersionKind{Version: "v1", Kind: "Service"}
	kindDeployment     = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	kindStatefulSet    = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "StatefulSet"}
	kindDisruption     = schema.GroupVersionKind{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"}
	kindAutoscaler     = schema.GroupVersionKind{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"}
	kindNetworkPolicy  = schema.GroupVersionKind{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"}
	kindIngress        = schema.GroupVersionKind{Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"}
	kindHTTPRoute      = schema.GroupVersionKind{Group: "gateway.networking.k8s.io", Version: "v1", Kind: "HTTPRoute"}
	kindPodMonitor     = schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: "PodMonitor"}
)

// Kinds are the kinds that every cluster has.
func Kinds() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		kindServiceAccount, kindConfigMap, kindSecret, kindService, kindDeployment, kindStatefulSet, kindDisruption, kindAutoscaler,
		kindNetworkPolicy, kindIngress,
	}
}

// OptionalKinds are the kinds whose definitions a cluster may lack: those of the Gateway API and of the
// Prometheus operator.
func OptionalKinds() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{kindHTTPRoute, kindPodMonitor}
}

// IsGatewayRoute says whether the kind is HTTPRoute, without which exposure by Gateway is not to be had.
func IsGatewayRoute(kind schema.GroupVersionKind) bool { return kind == kindHTTPRoute }

// Exposes says whether objects of a kind lead requests from outside to the pods.
func Exposes(kind schema.GroupVersionKind) bool { return kind == kindIngress || kind == kindHTTPRoute }

// Labels of everything that is made for a Property.
const (
	LabelManagedBy = "app.kubernetes.io/managed-by"
	LabelName      = "app.kubernetes.io/name"
	LabelInstance  = "app.kubernetes.io/instance"
	LabelComponent = "app.kubernetes.io/component"
	// ManagedBy is the value of LabelManagedBy, and the name of the operator's field owner.
	ManagedBy = "weir"
)

// ObjectName is the name of a role's objects: shop-collector.
func ObjectName(property *v1alpha1.Property, role Role) string {
	return property.Name + "-" + string(role)
}

// CredentialsSecretName is the Secret that shows the keys and tokens to the Property's owner.
func CredentialsSecretName(property *v1alpha1.Property) string { return property.Name + "-credentials" }

// RedisSecretName is the Secret with a role's Redis user.
func RedisSecretName(property *v1alpha1.Property, role Role) string {
	return property.Name + "-redis-" + string(role)
}

// SessionsSecretName is the Secret with what seals the sessions of people who are signed in to the Property's page.
func SessionsSecretName(property *v1alpha1.Property) string { return property.Name + "-sessions" }

func configMapName(property *v1alpha1.Property) string   { return property.Name + "-config" }
func apiKeysSecretName(p *v1alpha1.Property) string      { return p.Name + "-api-keys" }
func accessTokensSecretName(p *v1alpha1.Property) string { return p.Name + "-access-tokens" }
func selector(p *v1alpha1.Property, role Role) map[string]string {
	return map[string]string{LabelName: ManagedBy, LabelInstance: p.Name, LabelComponent: string(role)}
}

// Labels are those of all of a Property's objects.
func Labels(property *v1alpha1.Property) map[string]string {
	return map[string]string{LabelName: ManagedBy, LabelInstance: property.Name, LabelManagedBy: ManagedBy}
}

func roleLabels(property *v1alpha1.Property, role Role) map[string]string {
	labels := Labels(property)
	labels[LabelComponent] = string(role)
	return labels
}

// ownedBy makes the Property the object's controller, so that the object goes with it.
func ownedBy(property *v1alpha1.Property) *applymeta.OwnerReferenceApplyConfiguration {
	return applymeta.OwnerReference().
		WithAPIVersion(v1alpha1.GroupVersion.String()).WithKind(v1alpha1.Kind).
		WithName(property.Name).WithUID(property.UID).WithController(true).WithBlockOwnerDeletion(true)
}

// OwnerReference is the same for objects that are created rather than applied.
func OwnerReference(property *v1alpha1.Property) metav1.OwnerReference {
	return *metav1.NewControllerRef(property, v1alpha1.GroupVersion.WithKind(v1alpha1.Kind))
}
