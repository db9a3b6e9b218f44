// Package prometheus_test tries the chart's alerts, and what docs/operate/scale.md says of other tools, with Prometheus's own
// engine. It is a module of its own, so that none of them is a dependency of Weir.
package prometheus_test

import (
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/promqltest"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"sigs.k8s.io/yaml"
)

// scaledObject is what of KEDA's the page uses; a field that is not here is a mistake, or has to be looked up.
type scaledObject struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct{ Name, Namespace string }
	Spec       struct {
		ScaleTargetRef  struct{ Name string } `json:"scaleTargetRef"`
		MinReplicaCount *int                  `json:"minReplicaCount"`
		MaxReplicaCount int                   `json:"maxReplicaCount"`
		Fallback        struct {
			FailureThreshold int `json:"failureThreshold"`
			Replicas         int `json:"replicas"`
			Behavior         string
		}
		Triggers []struct {
			Type     string
			Metadata struct{ ServerAddress, Query, Threshold, IgnoreNullValues string }
		}
	}
}

// adapterRules are prometheus-adapter's.
type adapterRules struct {
	Rules struct {
		External []struct {
			SeriesQuery  string         `json:"seriesQuery"`
			Resources    map[string]any `json:"resources"`
			Name         struct{ As string }
			MetricsQuery string `json:"metricsQuery"`
		}
	}
}

// scaler is what decides about a role's pods: their number is a query's answer divided by the threshold, within bounds.
type scaler struct {
	query              string
	threshold          float64
	fewest, most, lost int
}

// scalers reads those of the page, by what they scale, and how.
func scalers(t *testing.T) map[string]scaler {
	t.Helper()
	text, err := os.ReadFile("../../docs/operate/scale.md")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]scaler{}
	var adapter adapterRules
	var autoscaler autoscalingv2.HorizontalPodAutoscaler
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		for document := range strings.SplitSeq(block[1], "\n---\n") {
			var into any
			var object scaledObject
			switch {
			case strings.Contains(document, "kind: ScaledObject"):
				into = &object
			case strings.HasPrefix(document, "rules:"):
				into = &adapter
			case strings.Contains(document, "kind: HorizontalPodAutoscaler"):
				into = &autoscaler
			default:
				continue
			}
			if err := yaml.UnmarshalStrict([]byte(document), into); err != nil {
				t.Fatalf("%v in\n%s", err, document)
			}
			if object.Kind == "" {
				continue
			}
			if len(object.Spec.Triggers) != 1 || object.Spec.MinReplicaCount == nil {
				t.Fatalf("%s: one trigger and a least number are wanted: KEDA's default is 0", object.Metadata.Name)
			}
			if object.Spec.Fallback.Behavior != "currentReplicasIfHigher" {
				t.Fatalf("%s: without numbers pods would be taken away: %+v", object.Metadata.Name, object.Spec.Fallback)
			}
			trigger := object.Spec.Triggers[0]
			threshold, err := strconv.ParseFloat(trigger.Metadata.Threshold, 64)
			if err != nil || trigger.Type != "prometheus" || trigger.Metadata.IgnoreNullValues != "false" {
				t.Fatalf("%s: %+v, error %v", object.Metadata.Name, trigger, err)
			}
			found[object.Spec.ScaleTargetRef.Name+" by KEDA"] = scaler{
				trigger.Metadata.Query, threshold, *object.Spec.MinReplicaCount, object.Spec.MaxReplicaCount, object.Spec.Fallback.Replicas,
			}
		}
	}
	if len(adapter.Rules.External) != 1 || len(autoscaler.Spec.Metrics) != 1 || len(found) != 2 {
		t.Fatalf("the page has %d rules, %d metrics and %d scaled objects", len(adapter.Rules.External), len(autoscaler.Spec.Metrics), len(found))
	}
	rule, metric := adapter.Rules.External[0], autoscaler.Spec.Metrics[0].External
	if rule.Name.As != metric.Metric.Name || metric.Target.Type != autoscalingv2.AverageValueMetricType {
		t.Fatalf("the autoscaler asks for %s, the rule is for %s", metric.Metric.Name, rule.Name.As)
	}
	matchers := `namespace="` + autoscaler.Namespace + `"`
	for label, value := range metric.Metric.Selector.MatchLabels {
		matchers += `,` + label + `="` + value + `"`
	}
	found[autoscaler.Spec.ScaleTargetRef.Name+" by an autoscaler"] = scaler{
		strings.ReplaceAll(rule.MetricsQuery, "<<.LabelMatchers>>", matchers), metric.Target.AverageValue.AsApproximateFloat64(),
		int(*autoscaler.Spec.MinReplicas), int(autoscaler.Spec.MaxReplicas), -1,
	}
	return found
}

// TestTheQueriesAskForAsManyPodsAsTheLoadNeeds asks Prometheus's engine after ten minutes of made-up series.
func TestTheQueriesAskForAsManyPodsAsTheLoadNeeds(t *testing.T) {
	const shop = `namespace="shops",property="shop"`
	lag := func(pod, platform, value string) string {
		return "weir_delivery_lag_events{" + shop + `,pod="` + pod + `",platform="` + platform + `"} ` + value + "x10\n"
	}
	paused := func(pod, platform, value string) string {
		return "weir_platform_paused{" + shop + `,pod="` + pod + `",platform="` + platform + `"} ` + value + "x10\n"
	}
	sent := func(pod, endpoint, perMinute string) string {
		return "weir_collect_events_total{" + shop + `,pod="` + pod + `",endpoint="` + endpoint + `",outcome="accepted"} 0+` + perMinute + "x10\n"
	}
	deliverers := []string{"shop-deliverer by KEDA", "shop-deliverer by an autoscaler"}
	collectors := []string{"shop-collector by KEDA"}
	const noNumbers = -1
	for sentence, test := range map[string]struct {
		scalers []string
		series  string
		want    int
	}{
		"nothing waits, and one stays": {deliverers, lag("a", "meta", "0") + paused("a", "meta", "0"), 1},
		"each replica tells the whole lag, and it counts once": {
			deliverers, lag("a", "meta", "12000") + lag("b", "meta", "12000") + paused("a", "meta", "0") + paused("b", "meta", "0"), 3,
		},
		"platforms are delivered to beside each other: the furthest behind counts": {
			deliverers, lag("a", "meta", "12000") + lag("a", "crm", "7000") + paused("a", "meta", "0") + paused("a", "crm", "0"), 3,
		},
		"a paused platform is helped by nobody": {
			deliverers, lag("a", "meta", "90000") + lag("a", "crm", "7000") + paused("a", "meta", "1") + paused("a", "crm", "0"), 2,
		},
		"where one replica has paused it others soon do": {
			deliverers, lag("a", "meta", "90000") + lag("b", "meta", "90000") + paused("a", "meta", "1") + paused("b", "meta", "0"), 1,
		},
		"there is an end":                        {deliverers, lag("a", "meta", "9000000") + paused("a", "meta", "0"), 8},
		"no numbers are not no load":             {deliverers, "", noNumbers},
		"another Property's do nothing":          {deliverers, strings.ReplaceAll(lag("a", "meta", "90000")+paused("a", "meta", "0"), `"shop"`, `"blog"`), noNumbers},
		"collectors' events are summed":          {collectors, sent("a", "collect", "48000") + sent("b", "collect", "48000"), 4},
		"events count on whichever way":          {collectors, sent("a", "collect", "48000") + sent("a", "batch", "48000"), 4},
		"nobody sends, and two stay":             {collectors, sent("a", "collect", "0"), 2},
		"no collector's numbers are not no load": {collectors, "", noNumbers},
	} {
		t.Run(sentence, func(t *testing.T) {
			storage := promqltest.LoadedStorage(t, "load 1m\n"+indented(test.series))
			engine := promqltest.NewTestEngine(t, false, 0, 10_000)
			all := scalers(t)
			for _, name := range test.scalers {
				s, there := all[name]
				if !there {
					t.Fatalf("the page has nothing for %s", name)
				}
				query, err := engine.NewInstantQuery(t.Context(), storage, nil, s.query, time.Unix(600, 0))
				if err != nil {
					t.Fatal(err)
				}
				got, want := answer(t, s, query), test.want
				if want == noNumbers {
					want = s.lost
				}
				if got != want {
					t.Errorf("%s asks for %d pods, want %d", name, got, want)
				}
			}
		})
	}
}

func indented(series string) string {
	if series == "" {
		return "  something_else 1x10\n"
	}
	return "  " + strings.ReplaceAll(strings.TrimSuffix(series, "\n"), "\n", "\n  ") + "\n"
}

// answer is how many pods there shall be: the fallback's number where there is no answer.
func answer(t *testing.T, s scaler, query promql.Query) int {
	t.Helper()
	defer query.Close()
	vector, err := query.Exec(t.Context()).Vector()
	if err != nil {
		t.Fatal(err)
	}
	switch len(vector) {
	case 0:
		return s.lost
	case 1:
		return min(max(int(math.Ceil(vector[0].F/s.threshold)), s.fewest), s.most)
	}
	t.Fatalf("%d answers, and a scaler takes one", len(vector))
	return 0
}
