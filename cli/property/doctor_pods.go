package property

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/sources"
	"github.com/weir-dev/weir/controllers/resources"
)

// farBehind is when deliveries are so late that somebody should look.
const farBehind = 5 * time.Minute

// insidePods asks each role's pods how they see Redis and ClickHouse. They are asked by their own readiness and metrics: their image has
// no shell, and nothing is run in them.
func (e *examination) insidePods(ctx context.Context) {
	for _, w := range e.standing.Workloads {
		for _, p := range w.Pods {
			if err := e.insidePod(ctx, p.Name); err != nil {
				e.cannot("from "+p.Name, err)
			}
		}
	}
}

func (e *examination) insidePod(ctx context.Context, name string) error {
	address, stop, err := e.Forward(ctx, e.reached, name, resources.MetricsPort)
	if err != nil {
		return err
	}
	defer stop()
	var report struct {
		Status string            `json:"status"`
		Checks map[string]string `json:"checks"`
	}
	if err := fetch(ctx, address, "/readyz", func(body io.Reader) error { return json.NewDecoder(body).Decode(&report) }); err != nil {
		return err
	}
	if report.Status == "draining" {
		e.add("from "+name, warning, "", "the pod is ending")
		return nil
	}
	for _, what := range slices.Sorted(maps.Keys(report.Checks)) {
		subject, _, _ := strings.Cut(what, " ")
		said := report.Checks[what]
		e.judge(subject+" from "+name, said == "ok", failed, e.podAdvice(subject), "%s", said)
	}
	return fetch(ctx, address, "/metrics", func(body io.Reader) error {
		parser := expfmt.NewTextParser(model.UTF8Validation)
		families, err := parser.TextToMetricFamilies(body)
		if err == nil {
			e.metrics(name, families)
		}
		return err
	})
}

// podAdvice says what to do where a pod does not see something. What the operator sees and the pod does not is between them.
func (e *examination) podAdvice(subject string) string {
	kinds := map[string]string{"redis": v1alpha1.ConditionRedisReady, "view": v1alpha1.ConditionRedisReady, "clickhouse": v1alpha1.ConditionHistoryReady}
	if kind := kinds[subject]; kind != "" && meta.IsStatusConditionTrue(e.property.Status.Conditions, kind) {
		return "The operator reaches it and the pod does not: look for a NetworkPolicy on the server's side that does not let pods of this namespace in, for the pod's DNS, and for a firewall between nodes."
	}
	switch subject {
	case "redis":
		return "Neither the operator nor the pod reaches Redis: look at the condition RedisReady above."
	case "clickhouse":
		return "Look at the condition HistoryReady above."
	case "view":
		return "It reads the streams after a start. If it stays, Redis is away or there are more events than the pod has memory for: docs/operate/runbooks/WeirViewNotReady.md."
	case "ledger":
		return "The pod does not know who was erased: look at the condition ErasuresReady, and whether an operator runs."
	}
	return "docs/operate/troubleshoot.md"
}

// fetch asks a pod for one of its pages, whatever the status.
func fetch(ctx context.Context, address, path string, read func(io.Reader) error) error {
	ctx, cancel := context.WithTimeout(ctx, dialWithin)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return errors.New("the pod does not answer " + path)
	}
	defer response.Body.Close()
	if err := read(io.LimitReader(response.Body, 16<<20)); err != nil {
		return fmt.Errorf("the pod's answer to %s cannot be read: %w", path, err)
	}
	return nil
}

// metrics reads those that say what is wrong now.
func (e *examination) metrics(pod string, families map[string]*dto.MetricFamily) {
	for _, metric := range families["weir_history_connected"].GetMetric() {
		e.judge("clickhouse from "+pod, metric.GetGauge().GetValue() == 1, failed, e.podAdvice("clickhouse"), "%s", connected(metric))
	}
	for _, metric := range families["weir_view_connected"].GetMetric() {
		e.judge("redis from "+pod, metric.GetGauge().GetValue() == 1, failed, e.podAdvice("redis"), "%s", connected(metric))
	}
	for _, metric := range families["weir_platform_error"].GetMetric() {
		if reason := label(metric, "reason"); metric.GetGauge().GetValue() == 1 {
			e.add("platform "+label(metric, "platform")+" from "+pod, failed, e.platformAdvice(label(metric, "platform")), "paused: %s", reason)
		}
	}
	for _, metric := range families["weir_delivery_lag_seconds"].GetMetric() {
		lag := time.Duration(metric.GetGauge().GetValue()) * time.Second
		e.judge("lag of platform "+label(metric, "platform"), lag < farBehind, warning, "docs/operate/runbooks/WeirDeliveryLag.md", "the oldest event has waited for %s", lag)
	}
}

// platformAdvice goes by what the operator says of a pause: only what a person has to mend it tells.
func (e *examination) platformAdvice(name string) string {
	for _, paused := range e.property.Status.Platforms {
		if paused.Name == name {
			return wordsFor(paused.Reason)
		}
	}
	return "The platform throttles or is down: it is tried again by itself."
}

func connected(metric *dto.Metric) string {
	if metric.GetGauge().GetValue() == 1 {
		return "connected"
	}
	return "not connected"
}

func label(metric *dto.Metric, name string) string {
	for _, pair := range metric.GetLabel() {
		if pair.GetName() == name {
			return pair.GetValue()
		}
	}
	return ""
}

// secrets looks whether platforms' and sources' Secrets have the keys that are read, where the caller may get them one by one. Values are
// not looked at. Where the caller may not, the operator's conditions say what is missing.
func (e *examination) secrets(ctx context.Context) {
	wanted := map[string][]string{}
	for i := range e.property.Spec.Platforms {
		platform := &e.property.Spec.Platforms[i]
		if name := platform.SecretName(); name != "" {
			wanted[name] = append(wanted[name], platform.Type.SecretKeys(platform.ForwardErasure)...)
		}
	}
	for i := range e.property.Spec.Sources {
		name := e.property.Spec.Sources[i].SecretRef.Name
		wanted[name] = append(wanted[name], sources.SigningSecret)
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		e.secret(ctx, name, wanted[name])
	}
}

func (e *examination) secret(ctx context.Context, name string, keys []string) {
	what := "Secret " + name
	secret := &corev1.Secret{}
	if err := e.reached.Get(ctx, client.ObjectKey{Namespace: e.property.Namespace, Name: name}, secret); err != nil {
		if apierrors.IsForbidden(err) {
			said := conditionOf(e.property, v1alpha1.ConditionPlatformsReady)
			e.judge(what, said.Status == string(metav1.ConditionTrue), unseen, "", "you may not get it; the operator says PlatformsReady is %s (%s)", said.Status, said.Reason)
			return
		}
		e.missing(what, err, "Make it, with the keys "+strings.Join(keys, ", ")+".")
		return
	}
	var missing []string
	for _, key := range keys {
		if len(secret.Data[key]) == 0 {
			missing = append(missing, key)
		}
	}
	seen := "has " + strings.Join(keys, ", ")
	if len(missing) > 0 {
		seen = "lacks " + strings.Join(missing, ", ")
	}
	e.judge(what, len(missing) == 0, failed, "Add the keys that are missing.", "%s", seen)
}

// numbers asks the read API, as status does.
func (e *examination) numbers(ctx context.Context) {
	client, err := e.open(ctx, auth.ScopeRead, shortly)
	if err != nil {
		e.cannot("read API", err)
		return
	}
	found, err := ask(ctx, client, e.Now())
	if err != nil {
		e.add("read API", failed, "docs/operate/troubleshoot.md#the-read-api has what its answers mean.", "%v", err)
	} else {
		e.add("read API", fine, "", "answers; newest event: %s", cmp.Or(found.AsOf, "none yet"))
		e.judge("refused events", found.Rejected.LastHour == 0, warning, fmt.Sprintf("%s rejections %s lists them with why.", e.Program, e.name), "%d within the last hour", found.Rejected.LastHour)
		e.platforms(found.Platforms)
	}
	if err := client.Close(); err != nil {
		e.cannot("token", err)
	}
}

func (e *examination) platforms(list []platform) {
	for i := range list {
		p := &list[i]
		v := fine
		switch {
		case p.Suspended:
			v = warning
		case p.Paused != nil || p.ReportedAt == nil:
			v = failed
		case p.Day.Failed+p.Day.Expired > 0:
			v = warning
		}
		seen := fmt.Sprintf("%s; of the last 24 hours %d delivered, %d failed, %d expired", p.state(), p.Day.Delivered, p.Day.Failed, p.Day.Expired)
		advice := strings.Join(p.advice(), " ")
		if v == fine {
			advice = ""
		}
		e.add("platform "+p.Platform, v, advice, "%s", seen)
	}
}
