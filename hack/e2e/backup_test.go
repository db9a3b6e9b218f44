package e2e

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// bucketPort is where the server of the bucket listens on this machine.
const bucketPort = ":7070"

// restores runs the chart's CronJob once, deletes a Property with all its events, and has the guide's Job put them back.
func restores(t *testing.T, s *suite) {
	folder := t.TempDir()
	endpoint, keys := serveBucket(t, folder, "backups")
	held := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "backup-keys"}, StringData: keys}
	if err := s.Create(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	s.helm(t, settings.chart, settings.image, map[string]any{"backup": map[string]any{"enabled": true, "s3": map[string]any{
		"bucket": "backups", "prefix": "weir/", "region": "eu-central-1", "endpoint": endpoint, "pathStyle": true, "existingSecret": held.Name,
	}}})
	property := s.expose(s.property("lost"))
	property.Spec.DeletionPolicy = v1alpha1.DeletionPolicyDelete
	lost := s.apply(t, property.DeepCopy())
	listed := lost.stock(t)
	summary := lost.lastWeek(t)

	begin := time.Now()
	must(t, "kubectl", "-n", system, "create", "job", "--from=cronjob/weir-backup", "backup-now")
	s.finishes(t, "backup-now")
	s.figure(t, "the CronJob's Job, from made to done", "%.1f s", time.Since(begin).Seconds())
	found, err := filepath.Glob(filepath.Join(folder, "backups", "weir", lost.namespace, lost.name, "*.weir"))
	if err != nil || len(found) != 1 {
		t.Fatalf("the bucket has the backups %v of %s, %v; want one", found, lost.name, err)
	}
	if err := s.Delete(t.Context(), lost.get(t)); err != nil {
		t.Fatal(err)
	}
	lost.isGone(t)
	if left := lost.redisKeys(t); len(left) > 0 {
		t.Fatalf("Redis still has %v", left)
	}

	begin = time.Now()
	s.pipe(t, restoreJob(t, lost, endpoint, "s3://backups/weir/"+lost.namespace+"/"+lost.name+"/"+filepath.Base(found[0])), "kubectl", "apply", "-f", "-")
	s.finishes(t, "restore")
	s.figure(t, "the guide's Job that restores it, from applied to done", "%.1f s", time.Since(begin).Seconds())
	lost = s.apply(t, property)
	if diff := cmp.Diff(listed, lost.stocked(t, len(listed))); diff != "" {
		t.Errorf("the restored Property lists other events (-before +now):\n%s", diff)
	}
	if now := lost.lastWeek(t); !sameJSON(summary, now) {
		t.Errorf("the restored Property's summary is %s, want %s", now, summary)
	}

	if err := s.Delete(t.Context(), lost.get(t)); err != nil {
		t.Fatal(err)
	}
	lost.isGone(t)
	must(t, "kubectl", "-n", system, "delete", "job", "backup-now", "restore", "--cascade=foreground", "--timeout=1m")
	s.helm(t, settings.chart, settings.image, nil)
	if err := s.Delete(t.Context(), held); err != nil {
		t.Fatal(err)
	}
}

// serveBucket starts a server of S3's API, of others' making, on this machine's side of the node. It returns its URL and the keys.
func serveBucket(t *testing.T, folder, bucket string) (endpoint string, keys map[string]string) {
	t.Helper()
	if err := os.Mkdir(filepath.Join(folder, bucket), 0o755); err != nil {
		t.Fatal(err)
	}
	program := strings.TrimSpace(must(t, "../tool.sh", "hack/s3", "github.com/versity/versitygw/cmd/versitygw"))
	keys = map[string]string{"accessKeyID": "weir-test-access", "secretAccessKey": "weir-test-secret"}
	server := exec.CommandContext(t.Context(), program, "--access", keys["accessKeyID"], "--secret", keys["secretAccessKey"],
		"--region", "eu-central-1", "--port", machine+bucketPort, "--quiet", "posix", folder)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	endpoint = "http://" + machine + bucketPort
	within(t, 30*time.Second, "the bucket's server answers", func() error {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, endpoint, http.NoBody)
		if err != nil {
			return err
		}
		_, _, err = do(request)
		return err
	})
	return endpoint, keys
}

// finishes waits until a Job of the release's namespace has succeeded. What its pods say is in the failure.
func (s *suite) finishes(t *testing.T, name string) {
	t.Helper()
	defer func() {
		if t.Failed() {
			log, err := command(t.Context(), "kubectl", "-n", system, "logs", "--selector=job-name="+name, "--tail=20", "--prefix")
			t.Logf("its pods say, error %v:\n%s", err, log)
		}
	}()
	var job batchv1.Job
	within(t, 2*time.Minute, "the Job "+name+" has ended", func() error {
		if err := s.Get(t.Context(), client.ObjectKey{Namespace: system, Name: name}, &job); err != nil {
			return err
		}
		if !ended(&job) {
			return fmt.Errorf("%d of its pods run, %d have failed", job.Status.Active, job.Status.Failed)
		}
		return nil
	})
	if job.Status.Succeeded == 0 {
		t.Fatalf("the Job %s has failed: %+v", name, job.Status.Conditions)
	}
}

func ended(job *batchv1.Job) bool {
	return slices.ContainsFunc(job.Status.Conditions, func(condition batchv1.JobCondition) bool {
		return condition.Status == corev1.ConditionTrue && (condition.Type == batchv1.JobComplete || condition.Type == batchv1.JobFailed)
	})
}

// lastWeek is the read API's summary of days that a restore does not move.
func (it *tenant) lastWeek(t *testing.T) string {
	t.Helper()
	status, body, err := it.request(t, it.token(t), "analytics/summary?period=7d")
	if err != nil || status != http.StatusOK {
		t.Fatalf("the summary is answered %d %s, %v", status, body, err)
	}
	return body
}

// restoreJob is that of docs/operate/back-up.md, for this cluster.
func restoreJob(t *testing.T, it *tenant, endpoint, place string) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/operate/back-up.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```yaml\n(   apiVersion: batch/v1.*?)```").FindSubmatch(page)
	if block == nil {
		t.Fatal("docs/operate/back-up.md has no Job that restores")
	}
	text := string(block[1])
	for _, edit := range [][2]string{
		{"weir-system", system}, {"ghcr.io/weir-dev/weir:0.1.0", settings.image}, {"shops/shop\n", it.namespace + "/" + it.name + "\n"},
		{"- s3://backups/weir/shops/shop/2026-01-31T03-17-00Z.weir", fmt.Sprintf("- --s3-endpoint=%s\n           - --s3-path-style\n           - %s", endpoint, place)},
	} {
		if !strings.Contains(text, edit[0]) {
			t.Fatalf("the guide's Job has no %q any more", edit[0])
		}
		text = strings.ReplaceAll(text, edit[0], edit[1])
	}
	return text
}
