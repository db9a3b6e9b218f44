package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/clickhouse/clickhousetest"
	"github.com/weir-dev/weir/collector/clickhouseserver"
)

// machine is where the node's pods reach this machine.
const machine = "10.250.0.1"

func keepsAHistory(t *testing.T, s *suite) {
	clickhouse := clickhousetest.StartWith(t, clickhouseserver.Options{Host: machine})
	server := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "clickhouse"}, StringData: map[string]string{"url": clickhouse.URL("")},
	}
	if err := s.Create(t.Context(), server); err != nil {
		t.Fatal(err)
	}
	s.figure(t, "helm upgrade with a ClickHouse", "%.1f s", s.helm(t, settings.chart, settings.image, map[string]any{
		"clickhouse": map[string]any{"existingSecret": server.Name},
	}).Seconds())

	add := func(policy v1alpha1.DeletionPolicy) *tenant {
		property := s.expose(s.property("past"))
		property.Spec.History.Type, property.Spec.DeletionPolicy = v1alpha1.HistoryClickHouse, policy
		begin := time.Now()
		past := s.apply(t, property)
		past.settled(t, past.namespace, past.name, v1alpha1.ConditionHistoryReady, metav1.ConditionTrue, "")
		s.figure(t, "a Property with a history and "+string(policy)+", from applied to Ready", "%.1f s", time.Since(begin).Seconds())
		return past
	}
	past := add(v1alpha1.DeletionPolicyRetain)
	s.startPeer(t, past.namespace)
	s.served(t, past)
	before := past.stock(t)
	past.outlivesClickHouse(t, clickhouse)
	job := past.imports(t)

	remove := func(policy v1alpha1.DeletionPolicy, left string) {
		begin := time.Now()
		must(t, "kubectl", "-n", past.namespace, "delete", "property", past.name, "--timeout=100s") // the pod of a Job that is done holds it no two minutes
		s.figure(t, "it is deleted, until it and its users are gone ("+string(policy)+")", "%.1f s", time.Since(begin).Seconds())
		database := past.database()
		got := clickhousetest.Exec(t, clickhouse.URL(""), "SELECT (SELECT count() FROM system.databases WHERE name = '"+database+"'), "+
			"(SELECT count() FROM system.users WHERE startsWith(name, '"+database+"'))")
		if got != left {
			t.Errorf("ClickHouse has %q of databases and users of a deleted Property, want %q", got, left)
		}
	}
	remove(v1alpha1.DeletionPolicyRetain, "1\t0")
	must(t, "kubectl", "-n", past.namespace, "delete", "job", job)
	past.isGone(t)
	past = add(v1alpha1.DeletionPolicyDelete)
	if after := past.stocked(t, len(before)); !slices.EqualFunc(before, after, func(a, b record) bool { return a.EventID == b.EventID }) {
		t.Errorf("a Property of the same name finds %v, want %v", after, before)
	}
	past.imported(t)
	remove(v1alpha1.DeletionPolicyDelete, "0\t0")
	past.isGone(t)

	s.helm(t, settings.chart, settings.image, nil)
	if err := s.Delete(t.Context(), server); err != nil {
		t.Fatal(err)
	}
}

// outlivesClickHouse has it away under load: meanwhile nothing is answered from it, and afterwards it has every event, once.
func (it *tenant) outlivesClickHouse(t *testing.T, clickhouse *clickhousetest.Server) {
	t.Helper()
	archives := it.pods(t, it.namespace, roleOf(it.name, "archive"))
	if len(archives) != 1 || !ready(&archives[0]) {
		t.Fatalf("the archive has %d pods, want one that is ready", len(archives))
	}
	before := it.uids(t, it.namespace)
	key := it.key(t, "default")
	under := it.startLoad(t, "remember", key, key)
	begin := time.Now()
	clickhouse.Kill()
	within(t, 10*time.Second, "nothing is answered from a history that is away", func() error {
		status, body, err := it.request(t, it.token(t), "analytics/summary")
		if want := "The history cannot be read at the moment."; err != nil || status != http.StatusServiceUnavailable || !contains(body, want) {
			return fmt.Errorf("a query is answered %d %.200s %w, want 503 %s", status, body, err, want)
		}
		return nil
	})
	it.settled(t, it.namespace, it.name, v1alpha1.ConditionHistoryReady, metav1.ConditionFalse, v1alpha1.ReasonHistoryUnreachable)
	it.figure(t, "ClickHouse is killed, until the condition says so", "%.1f s", time.Since(begin).Seconds())
	under.goOn(t, 2*time.Second)
	begin = time.Now()
	clickhouse.Restart()
	it.ready(t)
	it.figure(t, "it is started again, until Ready", "%.1f s", time.Since(begin).Seconds())
	results := under.stop(t)
	under.noneFailed(t, results)
	sent := 0
	for _, result := range results {
		sent += len(result.Accepted)
	}
	within(t, 30*time.Second, "the history has every event and delivery, once", func() error {
		got := clickhousetest.Exec(t, clickhouse.URL(it.database()), "SELECT (SELECT count() FROM events WHERE name = 'remember'), "+
			"(SELECT uniqExact(event_id) FROM events WHERE name = 'remember'), (SELECT count() FROM records WHERE name = 'remember')")
		if want := fmt.Sprintf("%d\t%d\t%d", sent, sent, sent); got != want {
			return fmt.Errorf("events, their ids and deliveries are %s, want %s", got, want)
		}
		return nil
	})
	for _, pod := range it.pods(t, it.namespace, map[string]string{"app.kubernetes.io/instance": it.name}) {
		if before[pod.UID] == "" || pod.Status.ContainerStatuses[0].RestartCount > 0 {
			t.Errorf("pod %s was replaced or restarted, and ClickHouse alone was away", pod.Name)
		}
	}
}

// database is the name of the Property's in ClickHouse.
func (it *tenant) database() string { return "weir_" + it.namespace + "_" + it.name }

// long is how many days ago what is imported was: longer than Redis keeps anything.
const long = 100

// imports brings in what another system has kept, by a Job of the archive's template, as the guide has it, and returns the Job's name.
func (it *tenant) imports(t *testing.T) string {
	t.Helper()
	var lines strings.Builder
	for i := range 50 {
		line, err := json.Marshal(map[string]any{
			"type": "track", "event": "Order Completed", "messageId": fmt.Sprintf("old-%d", i), "anonymousId": "ann",
			"receivedAt": time.Now().AddDate(0, 0, -long).Add(time.Duration(i) * time.Second), "properties": map[string]any{"revenue": 2, "currency": "EUR", "order_id": fmt.Sprintf("old-%d", i)},
		})
		if err != nil {
			t.Fatal(err)
		}
		lines.Write(append(line, '\n'))
	}
	files := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: it.namespace, Name: "past"}, Data: map[string]string{"segment.ndjson": lines.String()}}
	var archive appsv1.Deployment
	if err := it.Get(t.Context(), client.ObjectKey{Namespace: it.namespace, Name: it.name + "-archive"}, &archive); err != nil {
		t.Fatal(err)
	}
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: it.namespace, Name: it.name + "-import"},
		Spec:       batchv1.JobSpec{BackoffLimit: new(int32(10)), Template: archive.Spec.Template},
	}
	pod := &job.Spec.Template.Spec
	pod.RestartPolicy = corev1.RestartPolicyOnFailure
	pod.Volumes = append(pod.Volumes,
		corev1.Volume{Name: "past", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: files.Name}}}},
		corev1.Volume{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	container := &pod.Containers[0]
	container.LivenessProbe, container.ReadinessProbe, container.StartupProbe, container.Ports, container.Lifecycle = nil, nil, nil, nil, nil
	container.Command, container.Args = []string{"/collector"}, []string{"import", "--config", "/etc/weir", "/past"}
	container.Resources = corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}}
	container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: "past", MountPath: "/past"}, corev1.VolumeMount{Name: "tmp", MountPath: "/tmp"})
	begin := time.Now()
	for _, object := range []client.Object{files, job} {
		if err := it.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	must(t, "kubectl", "-n", job.Namespace, "wait", "job/"+job.Name, "--for=condition=Complete", "--timeout=2m")
	it.figure(t, "a Job imports 50 events", "%.1f s", time.Since(begin).Seconds())
	report := must(t, "kubectl", "-n", job.Namespace, "logs", "job/"+job.Name)
	if fields := strings.Join(strings.Fields(report), " "); !contains(fields, "lines: 50, of 1 files imported: 50 ") {
		t.Errorf("the import reports:\n%s", report)
	}
	it.imported(t)
	return job.Name
}

// imported waits until the answers have what was imported.
func (it *tenant) imported(t *testing.T) {
	t.Helper()
	day := func(ago int) string { return time.Now().AddDate(0, 0, -ago).Format(time.DateOnly) }
	within(t, 30*time.Second, "what was imported is answered with", func() error {
		var answer map[string]any
		if err := it.ask(t, fmt.Sprintf("analytics/summary?from=%s&to=%s", day(long+1), day(long-1)), &answer); err != nil {
			return err
		}
		figures := member(answer, "data", "kpis")
		if purchases, revenue := member(figures, "purchases"), member(figures, "revenue"); purchases != 50.0 || revenue != 100.0 {
			return fmt.Errorf("there are %v purchases of %v, want 50 of 100", purchases, revenue)
		}
		return nil
	})
}
