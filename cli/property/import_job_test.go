package property_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// archive is a Deployment as the operator makes it, as far as it counts here.
func archive(namespace string) *appsv1.Deployment {
	labels := map[string]string{"app.kubernetes.io/name": "weir", "app.kubernetes.io/instance": "shop", "app.kubernetes.io/component": "archive"}
	probe := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/livez", Port: intstr.FromString("metrics")}}}
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shop-archive"}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
			ServiceAccountName: "shop-archive",
			Volumes:            []corev1.Volume{{Name: "history", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "shop-history"}}}},
			Containers: []corev1.Container{{
				Name: "weir", Image: "weir:test", Command: []string{"/collector"}, Args: []string{"--roles=archive"}, LivenessProbe: probe, ReadinessProbe: probe, StartupProbe: probe,
				Ports: []corev1.ContainerPort{{Name: "metrics", ContainerPort: 9090}}, VolumeMounts: []corev1.VolumeMount{{Name: "history", MountPath: "/etc/weir/history"}},
			}},
		}},
	}}
}

func TestAnImportIsAJobBesideTheArchive(t *testing.T) {
	t.Parallel()
	s := &shop{t: t, namespace: "imports"}
	p := &v1alpha1.Property{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "shop"}}
	p.Spec.Currency, p.Spec.History.Type = "EUR", v1alpha1.HistoryClickHouse
	past := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "past"}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}}
	server.Create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}, p, past, archive(s.namespace))
	maker := kubeconfig(t, s.namespace, "imports-maker", append([]string{"create jobs", "get persistentvolumeclaims"}, viewer...)...)

	got := s.weir(t.Context(), maker, "import-job", "shop", "--claim", "past", "--path", "segment-logs", "--dry-run", "--times=happened")
	if got.code != 0 || !strings.Contains(got.stdout, "Its report: kubectl logs --follow job/shop-import-") {
		t.Fatalf("%+v", got)
	}
	var jobs batchv1.JobList
	if err := server.Client.List(t.Context(), &jobs, client.InNamespace(s.namespace)); err != nil || len(jobs.Items) != 1 {
		t.Fatal(len(jobs.Items), err)
	}
	pod := jobs.Items[0].Spec.Template
	container := pod.Spec.Containers[0]
	if diff := cmp.Diff([]string{"import", "--config", "/etc/weir", "--dry-run", "--times=happened", "/past/segment-logs"}, container.Args); diff != "" {
		t.Errorf("its arguments (-want +got):\n%s", diff)
	}
	if container.LivenessProbe != nil || container.ReadinessProbe != nil || container.StartupProbe != nil || pod.Spec.RestartPolicy != corev1.RestartPolicyOnFailure {
		t.Errorf("it would be killed, or made anew: %+v", container)
	}
	if pod.Labels["app.kubernetes.io/component"] != "archive" || pod.Spec.ServiceAccountName != "shop-archive" || !slices.ContainsFunc(container.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == "/etc/weir/history" }) {
		t.Errorf("it is not the archive's pod: %+v", pod)
	}

	for sentence, c := range map[string]struct {
		user   string
		args   []string
		code   int
		stderr string
	}{
		"files have to be somewhere":    {maker, []string{"shop"}, 2, "--claim: must name the PersistentVolumeClaim with the files"},
		"and stay there":                {maker, []string{"shop", "--claim", "past", "--path", "a/../../etc"}, 2, "--path: must stay below the volume"},
		"a claim that there is not":     {maker, []string{"shop", "--claim", "future"}, 1, "there is no PersistentVolumeClaim future in namespace imports"},
		"a Property that there is not":  {maker, []string{"blog", "--claim", "past"}, 1, "there is no Property blog"},
		"who may make no Jobs is told":  {kubeconfig(t, s.namespace, "imports-viewer", viewer...), []string{"shop", "--claim", "past"}, 1, `cannot create resource "jobs" in API group "batch"`},
		"and who may see no Deployment": {kubeconfig(t, s.namespace, "imports-blind", "get properties"), []string{"shop", "--claim", "past"}, 1, `cannot get resource "deployments"`},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := s.weir(t.Context(), c.user, append([]string{"import-job"}, c.args...)...)
			if got.code != c.code || !strings.Contains(got.stderr, c.stderr) {
				t.Errorf("got %+v, want %d and %q", got, c.code, c.stderr)
			}
		})
	}
	t.Run("a Property without a history has none to import into", func(t *testing.T) {
		bare := &v1alpha1.Property{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "bare"}, Spec: v1alpha1.PropertySpec{Currency: "EUR"}}
		server.Create(t, bare)
		if got := s.weir(t.Context(), maker, "import-job", "bare", "--claim", "past"); got.code != 1 || !strings.Contains(got.stderr, "has no history to import into") {
			t.Errorf("%+v", got)
		}
	})
}
