package resources

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// gogc is the variable that says how much garbage there may be before it is collected.
const gogc = "GOGC"

// weirOwn begins the labels and annotations that only Weir gives, ownLabels are the others of these.
const weirOwn = "weir.dev/"

// wrongs are what is wrong with a document, each with its field.
type wrongs []string

func (w *wrongs) add(field, format string, args ...any) {
	*w = append(*w, field+": "+fmt.Sprintf(format, args...))
}

// all adds what the validators of apimachinery say, nothing where there is nothing to say.
func (w *wrongs) all(field string, messages []string) {
	if len(messages) > 0 {
		w.add(field, "%s", strings.Join(messages, "; "))
	}
}

// Check returns what is wrong, with the field first and none of an environment's values: an API server would refuse it with
// each Deployment of each Property.
func (d *PodDefaults) Check() []string {
	var w wrongs
	for i, secret := range d.ImagePullSecrets {
		w.all(fmt.Sprintf("imagePullSecrets[%d].name", i), validation.IsDNS1123Subdomain(secret.Name))
		if slices.Contains(d.ImagePullSecrets[:i], secret) {
			w.add(fmt.Sprintf("imagePullSecrets[%d].name", i), "%s is there already", secret.Name)
		}
	}
	own := selectorKeys()
	for _, key := range slices.Sorted(maps.Keys(d.Labels)) {
		w.key("labels", key, own)
		w.all("labels."+key, validation.IsValidLabelValue(d.Labels[key]))
	}
	for _, key := range slices.Sorted(maps.Keys(d.Annotations)) {
		w.key("annotations", key, nil)
	}
	if d.PriorityClassName != "" {
		w.all("priorityClassName", validation.IsDNS1123Subdomain(d.PriorityClassName))
	}
	for _, key := range slices.Sorted(maps.Keys(d.NodeSelector)) {
		w.all("nodeSelector."+key, validation.IsQualifiedName(key))
		w.all("nodeSelector."+key, validation.IsValidLabelValue(d.NodeSelector[key]))
	}
	w.environment(d.Env)
	for i := range d.Tolerations {
		w.toleration(fmt.Sprintf("tolerations[%d]", i), &d.Tolerations[i])
	}
	w.spread(d.TopologySpreadConstraints)
	return w
}

// selectorKeys are the labels by which Weir knows its pods.
func selectorKeys() []string {
	return []string{LabelName, LabelInstance, LabelComponent, LabelManagedBy}
}

// key judges one of the pods' labels or annotations.
func (w *wrongs) key(member, key string, own []string) {
	if strings.HasPrefix(key, weirOwn) || slices.Contains(own, key) {
		w.add(member+"."+key, "must not be there: Weir gives it itself")
	}
	judged := key
	if member == "annotations" { // whose keys the API server takes in any case
		judged = strings.ToLower(key)
	}
	w.all(member+"."+key, validation.IsQualifiedName(judged))
}

// setByWeir are the variables that Weir sets in some pods.
func setByWeir() []string {
	return []string{gogc, otelEndpoint, otelSampler, otelSamplerArg, otelAttributes}
}

func (w *wrongs) environment(list []corev1.EnvVar) {
	names := map[string]bool{}
	for i, variable := range list {
		field := fmt.Sprintf("env[%d].name", i)
		w.all(field, validation.IsEnvVarName(variable.Name))
		switch {
		case slices.Contains(setByWeir(), variable.Name):
			w.add(field, "must not be %s, which Weir sets itself", variable.Name)
		case names[variable.Name]:
			w.add(field, "%s is there already", variable.Name)
		}
		names[variable.Name] = true
		if variable.ValueFrom != nil {
			w.valueFrom(fmt.Sprintf("env[%d].valueFrom", i), &variable)
		}
	}
}

// valueFrom judges where a variable has its value from.
func (w *wrongs) valueFrom(field string, variable *corev1.EnvVar) {
	from := variable.ValueFrom
	if variable.Value != "" {
		w.add(field, "must be absent beside a value")
	}
	given := 0
	if from.FieldRef != nil {
		given++
		if from.FieldRef.FieldPath == "" {
			w.add(field+".fieldRef.fieldPath", "must name a field of the pod, as in status.hostIP")
		}
	}
	if key := from.SecretKeyRef; key != nil {
		given++
		w.reference(field+".secretKeyRef", key.Name, key.Key)
	}
	if key := from.ConfigMapKeyRef; key != nil {
		given++
		w.reference(field+".configMapKeyRef", key.Name, key.Key)
	}
	if given != 1 || from.ResourceFieldRef != nil || from.FileKeyRef != nil {
		w.add(field, "must be one of fieldRef, secretKeyRef and configMapKeyRef")
	}
}

func (w *wrongs) reference(field, name, key string) {
	w.all(field+".name", validation.IsDNS1123Subdomain(name))
	w.all(field+".key", validation.IsConfigMapKey(key))
}

func (w *wrongs) toleration(field string, t *corev1.Toleration) {
	switch t.Operator {
	case "", corev1.TolerationOpEqual:
		if t.Key == "" {
			w.add(field+".operator", "must be Exists where key is empty, which means every taint")
		}
		w.all(field+".value", validation.IsValidLabelValue(t.Value))
	case corev1.TolerationOpExists:
		if t.Value != "" {
			w.add(field+".value", "must be empty where operator is Exists")
		}
	default:
		w.add(field+".operator", "must be Equal or Exists")
	}
	if t.Key != "" {
		w.all(field+".key", validation.IsQualifiedName(t.Key))
	}
	if effects := []corev1.TaintEffect{"", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}; !slices.Contains(effects, t.Effect) {
		w.add(field+".effect", "must be NoSchedule, PreferNoSchedule or NoExecute, or absent for all")
	}
	if t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute {
		w.add(field+".tolerationSeconds", "must be absent where effect is not NoExecute")
	}
}

func (w *wrongs) spread(list []corev1.TopologySpreadConstraint) {
	for i, constraint := range list {
		field := fmt.Sprintf("topologySpreadConstraints[%d]", i)
		if constraint.MaxSkew < 1 {
			w.add(field+".maxSkew", "must be at least 1")
		}
		w.all(field+".topologyKey", validation.IsQualifiedName(constraint.TopologyKey))
		if when := constraint.WhenUnsatisfiable; when != corev1.DoNotSchedule && when != corev1.ScheduleAnyway {
			w.add(field+".whenUnsatisfiable", "must be DoNotSchedule or ScheduleAnyway")
		}
		if slices.ContainsFunc(list[:i], func(other corev1.TopologySpreadConstraint) bool { return sameSpread(other, constraint) }) {
			w.add(field, "must not have the topologyKey and whenUnsatisfiable of another")
		}
	}
}
