// Package charts_test renders the Helm chart with the pinned helm, installs it into a real kube-apiserver, and looks at what
// belongs to it: values, schema, alerts, runbooks, dashboards.
package charts_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

var update = flag.Bool("update", false, "write the golden files anew")

const (
	release          = "weir"
	releaseNamespace = "weir-system"
	chart            = "weir"
)

// everywhere is the choice of all namespaces.
var everywhere = []string{"--set", "clusterWide=true"}

// helm is the pinned helm's path.
var helm string

// cluster is a real etcd and kube-apiserver without the controllers of a cluster.
var cluster struct {
	config *rest.Config
	client client.Client
	// kubeconfig is a file for helm.
	kubeconfig string
}

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) (code int) {
	flag.Parse()
	log.SetLogger(logr.Discard())
	fail := func(what string, err error) int {
		fmt.Fprintf(os.Stderr, "%s: %v\n", what, err)
		return 1
	}
	folder, err := kubePrograms("helm")
	if err != nil {
		return fail("hack/kube.sh helm", err)
	}
	helm = filepath.Join(folder, "helm")
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		if folder, err = kubePrograms(); err == nil {
			err = os.Setenv("KUBEBUILDER_ASSETS", folder)
		}
		if err != nil {
			return fail("hack/kube.sh", err)
		}
	}
	environment := &envtest.Environment{CRDDirectoryPaths: []string{"testdata/crds"}, ErrorIfCRDPathMissing: true}
	if cluster.config, err = environment.Start(); err != nil {
		return fail("start etcd and kube-apiserver", err)
	}
	defer func() {
		if err := environment.Stop(); err != nil {
			code = fail("stop etcd and kube-apiserver", err)
		}
	}()
	cluster.config.QPS = -1
	if cluster.client, err = client.New(cluster.config, client.Options{}); err != nil {
		return fail("make a client", err)
	}
	scratch, err := os.MkdirTemp("", "weir-chart-")
	if err != nil {
		return fail("make a folder", err)
	}
	defer os.RemoveAll(scratch)
	cluster.kubeconfig = filepath.Join(scratch, "kubeconfig")
	if err := os.WriteFile(cluster.kubeconfig, environment.KubeConfig, 0o600); err != nil {
		return fail("write kubeconfig", err)
	}
	return m.Run()
}

func kubePrograms(names ...string) (string, error) {
	command := exec.CommandContext(context.Background(), "../hack/kube.sh", names...)
	command.Stderr = os.Stderr
	output, err := command.Output()
	return strings.TrimSpace(string(output)), err
}

// runHelm runs helm and returns what it printed. It fails where helm does.
func runHelm(t *testing.T, args ...string) string {
	t.Helper()
	output, err := tryHelm(t, args...)
	if err != nil {
		t.Fatalf("helm %s: %v", strings.Join(args, " "), err)
	}
	return output
}

func tryHelm(t *testing.T, args ...string) (string, error) {
	t.Helper()
	readChart(t)
	var stdout, stderr bytes.Buffer
	command := exec.CommandContext(t.Context(), helm, args...)
	command.Stdout, command.Stderr = &stdout, &stderr
	home := t.TempDir() // no configuration or plugins of the machine's
	command.Env = append(os.Environ(), "KUBECONFIG="+cluster.kubeconfig, "HELM_CONFIG_HOME="+home, "HELM_CACHE_HOME="+home, "HELM_DATA_HOME="+home)
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("%w: %s", err, stderr.String())
	}
	return stdout.String(), nil
}

// readChart opens every file of the chart in this process, so that the test cache notices when one changes.
func readChart(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(chart, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		_, err = os.ReadFile(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// render renders the chart without a cluster.
func render(t *testing.T, args ...string) string {
	t.Helper()
	return runHelm(t, append([]string{"template", release, chart, "--namespace", releaseNamespace}, args...)...)
}

// valueSets are the files testdata/NAME.values.yaml by name.
func valueSets(t *testing.T) map[string]string {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.values.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("found %d value sets, error %v", len(paths), err)
	}
	sets := map[string]string{}
	for _, path := range paths {
		sets[strings.TrimSuffix(filepath.Base(path), ".values.yaml")] = path
	}
	return sets
}

// renderSet renders the chart with a value set. What a set's first line says after "helm template" are further arguments.
func renderSet(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"--values", path}
	first, _, _ := strings.Cut(string(content), "\n")
	if _, further, found := strings.Cut(first, "helm template "); found {
		args = append(args, strings.Fields(further)...)
	}
	return render(t, args...)
}

// objects parses rendered manifests.
func objects(t *testing.T, manifests string) []*unstructured.Unstructured {
	t.Helper()
	var list []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(manifests), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(object.Object) > 0 {
			list = append(list, object)
		}
	}
}

// find returns the one object of a kind and name.
func find(t *testing.T, list []*unstructured.Unstructured, kind, name string) *unstructured.Unstructured {
	t.Helper()
	i := slices.IndexFunc(list, func(o *unstructured.Unstructured) bool { return o.GetKind() == kind && o.GetName() == name })
	if i < 0 {
		t.Fatalf("no %s %s is rendered", kind, name)
	}
	return list[i]
}

// nested returns what stands at a path; it fails where nothing does.
func nested[T any](t *testing.T, object *unstructured.Unstructured, path ...string) T {
	t.Helper()
	value, found, err := unstructured.NestedFieldNoCopy(object.Object, path...)
	typed, ok := value.(T)
	if err != nil || !found || !ok {
		t.Fatalf("%s %s: %s is %v (%v)", object.GetKind(), object.GetName(), strings.Join(path, "."), value, err)
	}
	return typed
}

// document begins one of those that are rendered.
var document = regexp.MustCompile(`(?m)^---\n`)

// withoutDefinitions leaves out the CustomResourceDefinitions, which are compared with their sources instead of a golden file.
func withoutDefinitions(rendered string) string {
	kept := slices.DeleteFunc(document.Split(rendered, -1), func(text string) bool { return strings.HasPrefix(text, "# Source: weir/templates/crd.yaml\n") })
	return strings.Join(kept, "---\n")
}

// dashboard is one in a ConfigMap; those are compared with their files.
var dashboard = regexp.MustCompile(`(?m)^  weir-([a-z]+\.json): \|\n((?:    .*\n)+)`)

// made are what is made up anew by each rendering without a cluster.
var made = regexp.MustCompile(`((?:url|password): [A-Za-z0-9+/=]{40,}|checksum/(?:redis|password): [0-9a-f]{64})`)

// TestGoldens compares what each testdata/NAME.values.yaml renders to with NAME.golden.yaml.
func TestGoldens(t *testing.T) {
	for name, path := range valueSets(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rendered := withoutDefinitions(renderSet(t, path))
			rendered = dashboard.ReplaceAllString(rendered, "  weir-$1: as in files/dashboards/$1\n")
			rendered = made.ReplaceAllStringFunc(rendered, func(text string) string {
				key, _, _ := strings.Cut(text, ": ")
				return key + ": MADE-UP"
			})
			got := withoutEmptyLines(rendered)
			golden := strings.TrimSuffix(path, ".values.yaml") + ".golden.yaml"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("manifests (-want +got):\n%s", diff)
			}
		})
	}
}

func withoutEmptyLines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, " \n"); line != "" {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

func TestLintFindsNothing(t *testing.T) {
	for name, path := range valueSets(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			output := runHelm(t, "lint", "--strict", "--values", path, chart)
			if strings.Contains(output, "[WARNING]") || strings.Contains(output, "[ERROR]") {
				t.Error(output)
			}
		})
	}
}
