package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/controllers/kubetest"
)

// completed are the candidates for the last word, without what they are, and what else the shell may offer.
func completedTo(t *testing.T, args ...string) (candidates []string, directive string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), append([]string{"__complete"}, args...), &stdout, &stderr); code != 0 || stderr.Len() > 0 {
		t.Fatalf("exit code %d, %s", code, stderr.String())
	}
	lines := strings.Split(strings.TrimSpace(stdout.String()), "\n")
	for _, line := range lines[:len(lines)-1] {
		name, _, _ := strings.Cut(line, "\t")
		candidates = append(candidates, name)
	}
	return candidates, lines[len(lines)-1]
}

const (
	files   = ":0"
	noFiles = ":4"
)

func TestCompletionKnowsCommandsAndFlags(t *testing.T) {
	for sentence, c := range map[string]struct {
		args      []string
		want      []string
		directive string
	}{
		"commands":                            {[]string{"re"}, []string{"rejections", "replay", "restore"}, noFiles},
		"what tokens are for":                 {[]string{"token", ""}, []string{"create"}, noFiles},
		"flags":                               {[]string{"replay", "shop", "--pla"}, []string{"--platform"}, noFiles},
		"of a command that comes from others": {[]string{"backup", "--pro"}, []string{"--property"}, noFiles},
		"values of a flag":                    {[]string{"events", "--status", "f"}, []string{"failed"}, noFiles},
		"scopes":                              {[]string{"token", "create", "a", "--scope", ""}, []string{"read", "write", "admin"}, noFiles},
		"formats":                             {[]string{"export", "shop", "--format", ""}, []string{"ndjson", "csv"}, noFiles},
		"shells":                              {[]string{"completion", "z"}, []string{"zsh"}, noFiles},
		"files where a flag takes one":        {[]string{"events", "--token-file", ""}, nil, files},
		"and where arguments are files":       {[]string{"import", ""}, nil, files},
		"nothing of what there is not":        {[]string{"operator", "-"}, nil, noFiles},
	} {
		t.Run(sentence, func(t *testing.T) {
			got, directive := completedTo(t, c.args...)
			if !slices.Equal(got, c.want) || directive != c.directive {
				t.Errorf("got %q and %s, want %q and %s", got, directive, c.want, c.directive)
			}
		})
	}
}

func TestCompletionAsksTheClusterForNames(t *testing.T) {
	server, err := kubetest.Start("../..")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	shop := &v1alpha1.Property{ObjectMeta: metav1.ObjectMeta{Namespace: "shops", Name: "shop"}}
	shop.Spec.Currency = "EUR"
	shop.Spec.Platforms = []v1alpha1.Platform{{Name: "console", Type: platforms.TypeLog}}
	blog := &v1alpha1.Property{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "blog"}, Spec: v1alpha1.PropertySpec{Currency: "EUR"}}
	server.Create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shops"}}, shop, blog)
	t.Setenv("KUBECONFIG", server.Kubeconfig(t, envtest.User{Name: "ada", Groups: []string{"system:masters"}}))
	for sentence, c := range map[string]struct{ args, want []string }{
		"Properties of the context's namespace": {[]string{"status", ""}, []string{"blog"}},
		"and of another":                        {[]string{"events", "-n", "shops", "s"}, []string{"shop"}},
		"written with an equals sign too":       {[]string{"events", "--namespace=shops", ""}, []string{"shop"}},
		"namespaces":                            {[]string{"status", "-n", "sh"}, []string{"shops"}},
		"a Property that is named by a flag":    {[]string{"token", "create", "bi", "--property", ""}, []string{"blog"}},
		"the platforms of the Property before":  {[]string{"replay", "-n", "shops", "shop", "--platform", ""}, []string{"console"}},
		"nothing where the cluster is away":     {[]string{"status", "--kubeconfig", "/nowhere", ""}, nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got, directive := completedTo(t, c.args...); !slices.Equal(got, c.want) || directive != noFiles {
				t.Errorf("got %q and %s, want %q", got, directive, c.want)
			}
		})
	}
}
