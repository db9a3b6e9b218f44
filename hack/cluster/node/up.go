package node

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// stepTimeout is how long each step may take on a machine that is busy with other things.
const stepTimeout = 3 * time.Minute

// Up brings the node up and returns when it is Ready and cluster DNS and the ingress answer. Where it is up already,
// or was left half-way, it goes through the same steps, each of which leaves alone what is as it should be. A node that could not be brought up is left as it is, so that one
// can look at it; the logs that explain the failure are printed.
func (n *Node) Up(ctx context.Context) error {
	begin := time.Now()
	if err := n.check(ctx); err != nil {
		return err
	}
	process, err := n.running()
	switch {
	case errors.Is(err, errNoNode):
		err = n.create(ctx, begin)
	case err == nil:
		fmt.Fprintln(n.Out, "the node is up already")
		err = n.follow(ctx, begin, n.bringUp(process))
	}
	if failed, ok := errors.AsType[*failedStep](err); ok {
		for _, name := range failed.logs {
			if err := n.printTail(name, explanation); err != nil {
				return errors.Join(failed, err)
			}
		}
		fmt.Fprintf(n.Out, "all logs: %s\n", n.path(logFolder))
	}
	return err
}

// check names what is missing before anything is done.
func (n *Node) check(ctx context.Context) error {
	if os.Geteuid() != 0 {
		return errors.New("a node needs root: namespaces, mounts and a network link are made")
	}
	for _, name := range []string{"ip", "nsenter", "bash", "tar"} {
		if _, err := exec.LookPath(name); err != nil {
			return fmt.Errorf("the machine has no %s; on Debian or Ubuntu: apt-get install iproute2 util-linux bash tar", name)
		}
	}
	for _, name := range KubernetesPrograms() {
		if _, err := os.Stat(filepath.Join(n.Programs, name)); err != nil {
			return fmt.Errorf("%s is missing: hack/kube.sh builds it", name)
		}
	}
	if strings.ContainsAny(n.Cache, ":,\\") {
		return fmt.Errorf("the cache directory %q must have no colon, comma or backslash in its path: it becomes part of a mount's options", n.Cache)
	}
	for _, archive := range n.archives() {
		if _, err := os.Stat(archive); err != nil {
			return fmt.Errorf("image archive: %w", err)
		}
	}
	return checkAddresses(ctx)
}

// create makes a node from nothing; what a node that ended on its own has left is removed first.
func (n *Node) create(ctx context.Context, begin time.Time) error {
	var packages string
	var process firstProcess
	err := n.follow(ctx, begin, []step{
		{"distribution's packages unpacked", nil, func(ctx context.Context) (err error) {
			packages, err = n.packages(ctx)
			return err
		}},
		{"namespaces, root file system, network", []string{"node"}, func(ctx context.Context) (err error) {
			if err := n.checkOthers(); err != nil {
				return err
			}
			if err := n.remains(ctx); err != nil {
				return err
			}
			process, err = n.begin(ctx, packages)
			return err
		}},
	})
	if err != nil {
		return err
	}
	return n.follow(ctx, begin, n.bringUp(process))
}

// begin starts the node's first process and connects it to the machine.
func (n *Node) begin(ctx context.Context, packages string) (firstProcess, error) {
	if err := errors.Join(n.prepareRoot(), n.writeConfiguration(), n.writeCredentials(time.Now()), makeCgroups()); err != nil {
		return firstProcess{}, err
	}
	process, gate, err := n.launch(packages)
	if err != nil {
		return firstProcess{}, err
	}
	defer gate.Close()
	if err := connect(ctx, process); err != nil {
		return firstProcess{}, err
	}
	if _, err := gate.Write([]byte{'\n'}); err != nil {
		return firstProcess{}, err
	}
	return process, n.await(ctx, process, 10*time.Second, "the control socket", nil, func(context.Context) (bool, error) {
		_, err := os.Stat(process.inside(controlSocket))
		return err == nil, nil
	})
}

// bringUp are the steps from a first process to a node that serves.
func (n *Node) bringUp(process firstProcess) []step {
	return []step{
		{"etcd, kube-apiserver and containerd started, images imported", []string{containerd, apiServer, etcd}, func(ctx context.Context) error {
			if err := process.start(ctx, etcd, containerd, apiServer); err != nil {
				return err
			}
			if err := n.containerdReady(ctx, process); err != nil {
				return err
			}
			return n.importImages(ctx, process, n.archives())
		}},
		{"kube-apiserver ready", []string{apiServer, etcd}, func(ctx context.Context) error {
			return n.await(ctx, process, stepTimeout, "kube-apiserver", []string{apiServer, etcd}, n.apiReady)
		}},
		{"manifests applied, all programs started", []string{apiServer}, func(ctx context.Context) error {
			if err := process.start(ctx, controllerManager, scheduler, kubelet, kubeProxy); err != nil {
				return err
			}
			if err := n.applyManifests(ctx); err != nil {
				return err
			}
			return process.start(ctx, netpol, volumesAgent)
		}},
		{"node Ready", []string{kubelet, containerd}, func(ctx context.Context) error {
			return n.await(ctx, process, stepTimeout, "a node that is Ready", []string{kubelet, containerd}, n.nodeReady)
		}},
		{"cluster DNS and ingress answer", []string{kubelet, kubeProxy, controllerManager, scheduler}, func(ctx context.Context) error {
			err := n.await(ctx, process, stepTimeout, "Deployments that are available", []string{kubelet, kubeProxy, controllerManager, scheduler}, n.addonsReady)
			if err != nil {
				return errors.Join(err, n.describePods(context.WithoutCancel(ctx)))
			}
			return nil
		}},
	}
}

// client makes a client of the node's API server.
func (n *Node) client() (client.Client, error) {
	config, err := clientcmd.BuildConfigFromFlags("", n.Kubeconfig())
	if err != nil {
		return nil, err
	}
	config.Timeout = 20 * time.Second
	config.QPS, config.Burst = 100, 100
	return client.New(config, client.Options{})
}

// apiReady says whether the API server has done what it does at its start, and has made the system's roles: programs that
// come earlier are refused, and take their time before they ask again.
func (n *Node) apiReady(ctx context.Context) (bool, error) {
	config, err := clientcmd.BuildConfigFromFlags("", n.Kubeconfig())
	if err != nil {
		return false, err
	}
	api, err := rest.HTTPClientFor(config)
	if err != nil {
		return false, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+"/readyz", http.NoBody)
	if err != nil {
		return false, err
	}
	response, err := api.Do(request)
	if err != nil {
		return false, nil //nolint:nilerr // it does not listen yet
	}
	defer response.Body.Close()
	return response.StatusCode == http.StatusOK, nil
}

func (n *Node) nodeReady(ctx context.Context) (bool, error) {
	api, err := n.client()
	if err != nil {
		return false, nil
	}
	var node corev1.Node
	if err := api.Get(ctx, client.ObjectKey{Name: Name}, &node); err != nil {
		return false, nil
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue, nil
		}
	}
	return false, nil
}

// addonsReady says whether every Deployment of the manifests is available.
func (n *Node) addonsReady(ctx context.Context) (bool, error) {
	api, err := n.client()
	if err != nil {
		return false, nil
	}
	var list appsv1.DeploymentList
	if err := api.List(ctx, &list, client.MatchingLabels{manifestLabel: manifestValue}); err != nil || len(list.Items) == 0 {
		return false, nil
	}
	for i := range list.Items {
		one := &list.Items[i]
		if one.Status.ObservedGeneration < one.Generation || one.Status.AvailableReplicas == 0 {
			return false, nil
		}
	}
	return true, nil
}

// describePods prints why pods of the manifests do not run.
func (n *Node) describePods(ctx context.Context) error {
	api, err := n.client()
	if err != nil {
		return err
	}
	var pods corev1.PodList
	if err := api.List(ctx, &pods, client.InNamespace(addonNamespace)); err != nil {
		return err
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		fmt.Fprintf(n.Out, "pod %s: %s %s\n", pod.Name, pod.Status.Phase, pod.Status.Message)
		for _, container := range pod.Status.ContainerStatuses {
			if waiting := container.State.Waiting; waiting != nil {
				fmt.Fprintf(n.Out, "  %s: %s %s\n", container.Name, waiting.Reason, waiting.Message)
			}
			if ended := container.LastTerminationState.Terminated; ended != nil {
				fmt.Fprintf(n.Out, "  %s ended before: %s %s\n", container.Name, ended.Reason, ended.Message)
			}
		}
	}
	var events corev1.EventList
	if err := api.List(ctx, &events, client.InNamespace(addonNamespace)); err != nil {
		return err
	}
	for _, event := range events.Items {
		if event.Type == corev1.EventTypeWarning {
			fmt.Fprintf(n.Out, "event of %s: %s\n", event.InvolvedObject.Name, event.Message)
		}
	}
	return nil
}
