package charts_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// rules are files/alerts.yaml.
type rules struct {
	Groups []struct {
		Name  string `json:"name"`
		Rules []rule `json:"rules"`
	} `json:"groups"`
}

type rule struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

func alerts(t *testing.T) []rule {
	t.Helper()
	var file rules
	readYAML(t, filepath.Join(chart, "files", "alerts.yaml"), &file)
	var list []rule
	for _, group := range file.Groups {
		list = append(list, group.Rules...)
	}
	if len(list) == 0 {
		t.Fatal("there are no alerts")
	}
	return list
}

// TestEveryAlertHasARunbook pairs alerts and pages, both ways, and looks for what a page has to say.
func TestEveryAlertHasARunbook(t *testing.T) {
	index, err := os.ReadFile("../docs/operate/runbooks/README.md")
	if err != nil {
		t.Fatal(err)
	}
	var names, pages []string
	for _, alert := range alerts(t) {
		names = append(names, alert.Alert)
		if alert.Annotations["runbook_url"] != alert.Alert+".md" {
			t.Errorf("%s: runbook_url is %q", alert.Alert, alert.Annotations["runbook_url"])
		}
		if !slices.Contains([]string{"critical", "warning"}, alert.Labels["severity"]) {
			t.Errorf("%s: severity is %q", alert.Alert, alert.Labels["severity"])
		}
		for _, annotation := range []string{"summary", "description"} {
			if alert.Annotations[annotation] == "" {
				t.Errorf("%s has no %s", alert.Alert, annotation)
			}
		}
		if row := "| [" + alert.Alert + "](" + alert.Alert + ".md) | " + alert.Labels["severity"] + " |"; !strings.Contains(string(index), row) {
			t.Errorf("docs/operate/runbooks/README.md has no row %q", row)
		}
	}
	paths, err := filepath.Glob("../docs/operate/runbooks/Weir*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(path), ".md")
		pages = append(pages, name)
		for _, part := range []string{"# " + name + "\n", "**What is lost.**", "**Look at**", "**Fix"} {
			if !strings.Contains(string(content), part) {
				t.Errorf("%s has no %q", path, part)
			}
		}
	}
	slices.Sort(names)
	if diff := cmp.Diff(names, pages); diff != "" {
		t.Errorf("alerts and runbooks (-alerts +pages):\n%s", diff)
	}
}

func TestDashboardsAreRenderedAsTheyAre(t *testing.T) {
	list := objects(t, render(t, "--set", "clusterWide=true,metrics.dashboards.enabled=true"))
	paths, err := filepath.Glob(filepath.Join(chart, "files", "dashboards", "*.json"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d dashboards, error %v", len(paths), err)
	}
	for _, path := range paths {
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(path)
		object := find(t, list, "ConfigMap", "weir-dashboard-"+strings.TrimSuffix(name, ".json"))
		if diff := cmp.Diff(string(want), nested[string](t, object, "data", "weir-"+name)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if object.GetLabels()["grafana_dashboard"] != "1" {
			t.Errorf("%s lacks the label that Grafana's sidecar looks for", name)
		}
	}
}

func TestRunbooksAreWhereTheValuesSay(t *testing.T) {
	list := objects(t, render(t, "--set", "clusterWide=true,metrics.prometheusRule.enabled=true,metrics.prometheusRule.runbookURL=https://runbooks.example.com/"))
	text := jsonOf(t, find(t, list, "PrometheusRule", "weir").Object)
	for _, alert := range alerts(t) {
		if want := `"runbook_url": "https://runbooks.example.com/` + alert.Alert + `.md"`; !strings.Contains(text, want) {
			t.Errorf("no %s", want)
		}
	}
}

// TestQueriesAskForMetricsThatThereAre compares the queries of alerts, dashboards and pages with docs/reference/metrics.md,
// which other tests compare with what the programs serve.
func TestQueriesAskForMetricsThatThereAre(t *testing.T) {
	known := documentedMetrics(t)
	queries := map[string][]string{}
	for _, alert := range alerts(t) {
		queries[alert.Alert] = []string{alert.Expr}
	}
	paths, err := filepath.Glob(filepath.Join(chart, "files", "dashboards", "*.json"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d dashboards, error %v", len(paths), err)
	}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var dashboard any
		if err := json.Unmarshal(content, &dashboard); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if queries[path] = collectQueries(dashboard); len(queries[path]) == 0 {
			t.Errorf("%s has no queries", path)
		}
	}
	for _, page := range []string{"scale.md", "observability.md"} {
		content, err := os.ReadFile(filepath.Join("../docs/operate", page))
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range blockPattern.FindAllStringSubmatch(string(content), -1) {
			queries[page] = append(queries[page], block[1])
		}
		if len(queries[page]) == 0 {
			t.Errorf("%s has no queries", page)
		}
	}
	for where, list := range queries {
		for _, query := range list {
			for _, metric := range metricsOf(query) {
				labels, found := known[strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(metric.name, "_bucket"), "_count"), "_sum")]
				if !found {
					t.Errorf("%s asks for %s, which docs/reference/metrics.md does not have: %s", where, metric.name, query)
				}
				for _, label := range metric.labels {
					if !slices.Contains(labels, label) && !slices.Contains(targetLabels, label) {
						t.Errorf("%s asks for %s by %s, which it does not have: %s", where, metric.name, label, query)
					}
				}
			}
			if strings.Count(query, "(") != strings.Count(query, ")") || strings.Count(query, "{") != strings.Count(query, "}") {
				t.Errorf("%s: brackets do not match: %s", where, query)
			}
		}
	}
}

// TestPropertiesOfOneNameAreToldApart looks at what alerts and dashboards group by: a Property's name is its own only in
// its namespace.
func TestPropertiesOfOneNameAreToldApart(t *testing.T) {
	var texts []string
	for _, alert := range alerts(t) {
		texts = append(texts, alert.Expr, alert.Annotations["summary"], alert.Annotations["description"])
	}
	paths, err := filepath.Glob(filepath.Join(chart, "files", "dashboards", "*.json"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d dashboards, error %v", len(paths), err)
	}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(content)) {
			texts = append(texts, strings.TrimSpace(line))
		}
	}
	groups := 0
	for _, text := range texts {
		for _, match := range groupPattern.FindAllStringSubmatch(text, -1) {
			labels := strings.Split(strings.ReplaceAll(match[1], " ", ""), ",")
			if slices.Contains(labels, "property") {
				groups++
				if !slices.Contains(labels, "namespace") {
					t.Errorf("by property without namespace: %s", text)
				}
			}
		}
		if rest := namespacedPattern.ReplaceAllString(text, ""); shownPattern.MatchString(rest) {
			t.Errorf("a Property is shown without its namespace: %s", text)
		}
	}
	if groups < 10 {
		t.Errorf("%d groups by property were found", groups)
	}
}

var (
	groupPattern      = regexp.MustCompile(`\bby \(([^)]*)\)`)
	shownPattern      = regexp.MustCompile(`\{\{ ?(\$labels\.)?property ?\}\}`)
	namespacedPattern = regexp.MustCompile(`\{\{ ?(\$labels\.)?namespace ?\}\}/\{\{ ?(\$labels\.)?property ?\}\}`)
)

func TestMetricsOfAQuery(t *testing.T) {
	got := metricsOf(`sum by (le) (rate(weir_append_duration_seconds_bucket{kind!~"a|b", pod="{x=}"}[5m])) / process_cpu_seconds_total`)
	want := []metric{{"weir_append_duration_seconds_bucket", []string{"kind", "pod"}}, {"process_cpu_seconds_total", nil}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(metric{})); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
}

// targetLabels are what Prometheus and the Prometheus operator add.
var targetLabels = []string{"namespace", "pod"}

type metric struct {
	name   string
	labels []string
}

var (
	metricPattern = regexp.MustCompile(`\b((?:weir|controller_runtime|workqueue|leader_election|rest_client|process|go)_[a-z0-9_]+)(?:\{((?:[^}"]|"[^"]*")*)\})?`)
	labelPattern  = regexp.MustCompile(`([a-z_]+)\s*(?:=~|!~|!=|=)\s*"[^"]*"`)
	codePattern   = regexp.MustCompile("`([a-z_]+)`")
	blockPattern  = regexp.MustCompile("(?s)```(?:yaml|promql)\n(.*?)```")
)

func metricsOf(query string) []metric {
	var list []metric
	for _, match := range metricPattern.FindAllStringSubmatch(query, -1) {
		found := metric{name: match[1]}
		for _, label := range labelPattern.FindAllStringSubmatch(match[2], -1) {
			found.labels = append(found.labels, label[1])
		}
		list = append(list, found)
	}
	return list
}

// documentedMetrics are the metrics of docs/reference/metrics.md with their labels. A Property's carry its name, but for that of
// requests, which are the process's.
func documentedMetrics(t *testing.T) map[string][]string {
	t.Helper()
	content, err := os.ReadFile("../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string][]string{}
	var heading string
	for line := range strings.Lines(string(content)) {
		if strings.HasPrefix(line, "## ") {
			heading = strings.TrimSpace(line)
		}
		cells := strings.Split(line, "|")
		if len(cells) < 6 {
			continue
		}
		labels := []string{}
		for _, code := range codePattern.FindAllStringSubmatch(cells[3], -1) {
			labels = append(labels, code[1])
		}
		if heading == "## A Property's pods" && !strings.Contains(cells[1], "weir_http_request_duration_seconds") {
			labels = append(labels, "property")
		}
		for _, code := range codePattern.FindAllStringSubmatch(cells[1], -1) {
			known[code[1]] = labels
		}
	}
	return known
}

// collectQueries finds the expressions of a dashboard, and the queries of its variables.
func collectQueries(node any) []string {
	var list []string
	switch node := node.(type) {
	case map[string]any:
		for key, value := range node {
			if text, ok := value.(string); ok && (key == "expr" || key == "definition") {
				list = append(list, text)
				continue
			}
			list = append(list, collectQueries(value)...)
		}
	case []any:
		for _, value := range node {
			list = append(list, collectQueries(value)...)
		}
	}
	return list
}
