package operator

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// everyPodDefault is a file of --pod-defaults-file with each member that there is.
const everyPodDefault = `
imagePullSecrets: [{name: registry}]
labels: {cost-centre: "4711"}
annotations: {sidecar.istio.io/inject: "true"}
priorityClassName: tenants
env:
- {name: NODE, valueFrom: {fieldRef: {fieldPath: status.hostIP}}}
- {name: OTEL_EXPORTER_OTLP_HEADERS, valueFrom: {secretKeyRef: {name: otlp, key: headers, optional: true}}}
- {name: GOMEMLIMIT, value: 100MiB}
tolerations: [{key: tenants, operator: Exists, effect: NoExecute, tolerationSeconds: 60}, {operator: Exists}, {key: a, value: b}]
nodeSelector: {pool: tenants}
topologySpreadConstraints: [{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway}]
`

func TestPodDefaultsAreJudgedAtTheStart(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		// want stands in the message; "" is a file that is taken.
		want string
	}{
		"everything":                              {everyPodDefault, ""},
		"nothing":                                 {"{}", ""},
		"a member that there is not":              {"imagePullSecret: [{name: a}]", `unknown field "imagePullSecret"`},
		"a member of a member that there is not":  {"tolerations: [{keys: a}]", `unknown field "keys"`},
		"no YAML":                                 {"a: b: c", "--pod-defaults-file: "},
		"a label that is no string":               {"labels: {cost-centre: [a]}", "labels of type string"},
		"a label that is none":                    {"labels: {\"a b\": c}", "labels.a b: name part must consist of"},
		"a label with a prefix in capitals":       {"labels: {Example.com/team: x}", "labels.Example.com/team: prefix part"},
		"a label's value that is none":            {"labels: {a: b c}", "labels.a: a valid label must"},
		"a label that Weir knows its pods by":     {"labels: {app.kubernetes.io/component: query}", "labels.app.kubernetes.io/component: must not be there"},
		"a label of Weir's":                       {"labels: {weir.dev/a: b}", "labels.weir.dev/a: must not be there"},
		"an annotation of Weir's":                 {"annotations: {weir.dev/redis: b}", "annotations.weir.dev/redis: must not be there"},
		"a pull Secret without a name":            {"imagePullSecrets: [{}]", "imagePullSecrets[0].name: "},
		"a pull Secret that is there twice":       {"imagePullSecrets: [{name: a}, {name: a}]", "imagePullSecrets[1].name: a is there already"},
		"a PriorityClass that is none":            {"priorityClassName: A", "priorityClassName: "},
		"a variable that is none":                 {"env: [{name: a=b, value: hunter2}]", "env[0].name: "},
		"a variable that Weir sets":               {"env: [{name: GOGC, value: hunter2}]", "env[0].name: must not be GOGC, which Weir sets itself"},
		"a variable that is there twice":          {"env: [{name: A, value: hunter2}, {name: A}]", "env[1].name: A is there already"},
		"a variable with two values":              {"env: [{name: A, value: hunter2, valueFrom: {fieldRef: {fieldPath: status.hostIP}}}]", "env[0].valueFrom: must be absent beside a value"},
		"a value from nowhere":                    {"env: [{name: A, valueFrom: {}}]", "env[0].valueFrom: must be one of"},
		"a value from two places":                 {"env: [{name: A, valueFrom: {fieldRef: {fieldPath: a}, secretKeyRef: {name: a, key: b}}}]", "env[0].valueFrom: must be one of"},
		"a value from a Secret without its key":   {"env: [{name: A, valueFrom: {secretKeyRef: {name: a}}}]", "env[0].valueFrom.secretKeyRef.key: "},
		"a toleration of an operator that is not": {"tolerations: [{key: a, operator: Maybe}]", "tolerations[0].operator: must be Equal or Exists"},
		"a toleration of every taint's value":     {"tolerations: [{value: a}]", "tolerations[0].operator: must be Exists where key is empty"},
		"a toleration of all values and of one":   {"tolerations: [{key: a, operator: Exists, value: b}]", "tolerations[0].value: must be empty"},
		"a toleration of an effect that is not":   {"tolerations: [{key: a, effect: NoRun}]", "tolerations[0].effect: "},
		"a toleration that ends, of no eviction":  {"tolerations: [{key: a, tolerationSeconds: 3}]", "tolerations[0].tolerationSeconds: "},
		"a node's label that is none":             {"nodeSelector: {\"a b\": c}", "nodeSelector.a b: "},
		"a spread without skew":                   {"topologySpreadConstraints: [{topologyKey: a, whenUnsatisfiable: DoNotSchedule}]", "topologySpreadConstraints[0].maxSkew: "},
		"a spread in a way that there is not":     {"topologySpreadConstraints: [{maxSkew: 1, topologyKey: a}]", "topologySpreadConstraints[0].whenUnsatisfiable: "},
		"a spread that is there twice": {"topologySpreadConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule}, {maxSkew: 2, topologyKey: a, whenUnsatisfiable: DoNotSchedule}]",
			"topologySpreadConstraints[1]: must not have"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "defaults.yaml")
			if err := os.WriteFile(file, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := parseFlags([]string{"--image=x", "--pod-defaults-file=" + file}, &bytes.Buffer{})
			switch {
			case tt.want == "" && err != nil, tt.want != "" && err == nil:
				t.Errorf("got %v, want %q", err, tt.want)
			case err != nil && (!strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "--pod-defaults-file: ")):
				t.Errorf("got %v, want the flag and %q", err, tt.want)
			case err != nil && (strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "\n")):
				t.Errorf("the message shows a value, or is more than a line: %v", err)
			}
		})
	}
}
