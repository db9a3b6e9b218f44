package property

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/cli/cluster"
	"github.com/weir-dev/weir/cli/flags"
	"github.com/weir-dev/weir/controllers/resources"
)

const (
	// pastDir is where the claim's volume is mounted in the Job's pod.
	pastDir = "/past"
	// importTries is how often a pod that was evicted or killed is made anew: the import goes on where it was.
	importTries = 10
)

// importing is what a Job is to import.
type importing struct {
	claim, path string
	// options are the flags of the image's import, as they are given.
	options []string
}

func importJob(ctx context.Context, c *call) error {
	c.addOutput()
	var asked importing
	c.set.StringVar(&asked.claim, "claim", "", "`NAME` of the PersistentVolumeClaim in the Property's namespace that has the files")
	c.set.StringVar(&asked.path, "path", "", "`PATH` of a file or folder on it; default: all that is there")
	for name, usage := range map[string]string{
		"format":   "`FORMAT` of all files: weir, segment or rudderstack; default: told by each file's first line",
		"times":    "`WORD` for the time that events count by: received, or happened; default: received",
		"before":   "import events before this `TIME` alone, as in 2026-01-31T00:00:00Z",
		"skip-bad": "leave out up to `N` lines that are bad; default: with one nothing is imported",
	} {
		c.set.Func(name, usage, func(value string) error {
			asked.options = append(asked.options, "--"+name+"="+value)
			return nil
		})
	}
	c.set.BoolFunc("dry-run", "have the Job read and judge everything, and import nothing", func(string) error {
		asked.options = append(asked.options, "--dry-run")
		return nil
	})
	if err := c.parse("Makes a Job beside the Property's archive that imports the files of a volume into its history in ClickHouse, as weir import does.", true); err != nil {
		return err
	}
	if err := asked.check(); err != nil {
		return err
	}
	reached, err := c.connect()
	if err != nil {
		return err
	}
	property, err := reached.Property(ctx, c.name)
	if err != nil {
		return err
	}
	job, err := asked.create(ctx, reached, property)
	if err != nil {
		return err
	}
	if c.output == outputJSON {
		return c.printJSON(map[string]map[string]string{"data": {"namespace": job.Namespace, "job": job.Name}})
	}
	c.say("Job %s in namespace %s is made. Its report: kubectl logs --follow job/%[1]s -n %[2]s", job.Name, job.Namespace)
	return nil
}

func (i *importing) check() error {
	var errs flags.Errors
	if i.claim == "" {
		errs.Add("--claim: must name the PersistentVolumeClaim with the files; weir import takes those of this machine")
	}
	if slices.Contains(strings.Split(i.path, "/"), "..") {
		errs.Add("--path: must stay below the volume, without ..")
	}
	return errs.Err()
}

// create makes the Job of the archive's pods: these have the configuration, the user, and the way to ClickHouse and Redis already.
func (i *importing) create(ctx context.Context, reached *cluster.Cluster, property *v1alpha1.Property) (*batchv1.Job, error) {
	archive := &appsv1.Deployment{}
	name := resources.ObjectName(property, resources.Archive)
	err := reached.Get(ctx, client.ObjectKey{Namespace: property.Namespace, Name: name}, archive)
	switch {
	case apierrors.IsNotFound(err) && !property.Spec.HasHistory():
		return nil, fmt.Errorf("the Property %s has no history to import into: set spec.history.type to ClickHouse", property.Name)
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("there is no Deployment %s yet; the Property's conditions say why", name)
	case err != nil:
		return nil, cluster.Explain("read the Deployment "+name, err)
	}
	claim := &corev1.PersistentVolumeClaim{}
	if err := reached.Get(ctx, client.ObjectKey{Namespace: property.Namespace, Name: i.claim}, claim); apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("there is no PersistentVolumeClaim %s in namespace %s", i.claim, property.Namespace)
	}
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: property.Namespace, GenerateName: property.Name + "-import-", Labels: map[string]string{resources.LabelInstance: property.Name}},
		Spec:       batchv1.JobSpec{BackoffLimit: new(int32(importTries)), Template: i.template(&archive.Spec.Template)},
	}
	if err := reached.Create(ctx, job); err != nil {
		return nil, cluster.Explain("make the Job in namespace "+property.Namespace, err)
	}
	return job, nil
}

// template is the archive's pod with another command and two volumes more. It keeps the labels, by which NetworkPolicies let it out.
func (i *importing) template(archive *corev1.PodTemplateSpec) corev1.PodTemplateSpec {
	template := *archive.DeepCopy()
	spec := &template.Spec
	spec.RestartPolicy = corev1.RestartPolicyOnFailure
	spec.Volumes = append(spec.Volumes,
		corev1.Volume{Name: "past", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: i.claim, ReadOnly: true}}},
		corev1.Volume{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	container := &spec.Containers[0]
	container.LivenessProbe, container.ReadinessProbe, container.StartupProbe, container.Lifecycle, container.Ports = nil, nil, nil, nil, nil
	container.Command = []string{"/collector"}
	container.Args = slices.Concat([]string{"import", "--config", resources.ConfigDir}, i.options, []string{path.Join(pastDir, i.path)})
	memory := resource.MustParse("1Gi")
	container.Resources = corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: memory},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: memory},
	}
	container.VolumeMounts = append(container.VolumeMounts,
		corev1.VolumeMount{Name: "past", MountPath: pastDir, ReadOnly: true}, corev1.VolumeMount{Name: "tmp", MountPath: "/tmp"})
	return template
}
