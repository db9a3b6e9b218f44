package property

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/cli/cluster"
	"github.com/weir-dev/weir/cli/readapi"
	"github.com/weir-dev/weir/controllers/resources"
)

// workload is one of a Property's deployments.
type workload struct {
	Role string `json:"role"`
	// Desired is -1 where the Deployment could not be read.
	Desired int32  `json:"desired"`
	Ready   int32  `json:"ready"`
	Image   string `json:"image"`
	Pods    []pod  `json:"pods"`
}

type pod struct {
	Name     string `json:"name"`
	Ready    bool   `json:"ready"`
	Restarts int32  `json:"restarts"`
	// Why says what keeps it from being ready, in the cluster's words.
	Why string `json:"why"`
}

// labelled are the labels of what is made for a Property, pods among it.
func labelled(property *v1alpha1.Property) client.MatchingLabels {
	return client.MatchingLabels{resources.LabelName: resources.ManagedBy, resources.LabelInstance: property.Name}
}

// look reads the deployments and pods.
func (s *standing) look(ctx context.Context, reached *cluster.Cluster, property *v1alpha1.Property) {
	pods := &corev1.PodList{}
	if err := reached.List(ctx, pods, client.InNamespace(property.Namespace), labelled(property)); err != nil {
		s.missed(cluster.Explain("list the pods", err))
	}
	deployments := &appsv1.DeploymentList{}
	known := true
	if err := reached.List(ctx, deployments, client.InNamespace(property.Namespace), labelled(property)); err != nil {
		s.missed(cluster.Explain("list the deployments", err))
		known = false
	}
	for _, role := range resources.RolesOf(property) {
		s.Workloads = append(s.Workloads, workloadOf(property, role, pods.Items, deployments.Items, known))
	}
}

func workloadOf(property *v1alpha1.Property, role resources.Role, pods []corev1.Pod, deployments []appsv1.Deployment, known bool) workload {
	found := workload{Role: string(role), Desired: -1, Pods: []pod{}}
	if known {
		found.Desired = 0
	}
	name := resources.ObjectName(property, role)
	if i := slices.IndexFunc(deployments, func(d appsv1.Deployment) bool { return d.Name == name }); i >= 0 {
		found.Desired = ptr.Deref(deployments[i].Spec.Replicas, 1)
		for _, container := range deployments[i].Spec.Template.Spec.Containers {
			found.Image = container.Image
		}
	}
	for i := range pods {
		if !readapi.IsOf(&pods[i], property.Name, role) {
			continue // an import's pod has the labels of the archive's
		}
		told := podOf(&pods[i])
		found.Pods = append(found.Pods, told)
		if told.Ready {
			found.Ready++
		}
	}
	return found
}

// podOf says how a pod is, and what is wrong with it in the words of whoever knows best: its container, else the scheduler.
func podOf(p *corev1.Pod) pod {
	told := pod{Name: p.Name, Ready: readapi.Ready(p)}
	var reasons []string
	for _, c := range p.Status.ContainerStatuses {
		told.Restarts += c.RestartCount
		if waiting := c.State.Waiting; waiting != nil {
			reasons = append(reasons, strings.TrimSuffix(waiting.Reason+": "+waiting.Message, ": "))
		}
		if last := c.LastTerminationState.Terminated; last != nil && !told.Ready {
			reasons = append(reasons, fmt.Sprintf("ended with %d (%s)", last.ExitCode, last.Reason))
		}
	}
	switch {
	case p.DeletionTimestamp != nil:
		reasons = append(reasons, "is ending")
	case !told.Ready && len(reasons) == 0:
		for _, c := range p.Status.Conditions {
			if c.Status == corev1.ConditionFalse && c.Message != "" {
				reasons = append(reasons, c.Message)
				break
			}
		}
	}
	told.Why = strings.Join(reasons, "; ")
	return told
}

func (c *call) showWorkloads(workloads []workload) error {
	if len(workloads) == 0 {
		return nil
	}
	c.say("\nPods")
	table := c.table("  ")
	for _, w := range workloads {
		desired := strconv.Itoa(int(w.Desired))
		if w.Desired < 0 {
			desired = "?"
		}
		table.Row(w.Role, fmt.Sprintf("%d of %s ready", w.Ready, desired), w.trouble())
	}
	return table.Flush()
}

// trouble is what is wrong with the pods, in a few words.
func (w *workload) trouble() string {
	var words []string
	for _, p := range w.Pods {
		switch {
		case !p.Ready:
			words = append(words, strings.TrimSuffix(p.Name+": "+p.Why, ": "))
		case p.Restarts > 0:
			words = append(words, fmt.Sprintf("%s: %d restarts", p.Name, p.Restarts))
		}
	}
	return strings.Join(words, ", ")
}
