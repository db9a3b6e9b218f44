// Package readapi is how the commands for people ask a Property's read API: by a way to its query pods through the API server, or by a URL,
// with a token that the caller has or may make.
package readapi

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/cli/cluster"
	"github.com/weir-dev/weir/cli/flags"
	"github.com/weir-dev/weir/controllers/resources"
)

// Forward leads an address of this machine to a port of a pod until stop is called.
type Forward func(ctx context.Context, reached *cluster.Cluster, pod string, port int) (address string, stop func(), err error)

// Surroundings are what a command has around it.
type Surroundings struct {
	Getenv func(string) string
	Stderr io.Writer
	// Forward is the way to a pod, [PortForward] but for tests without a kubelet.
	Forward Forward
}

// Flags say how the read API is reached, and with what.
type Flags struct {
	URL, TokenFile string
}

// Add adds them to a command's.
func (f *Flags) Add(set *flag.FlagSet) {
	set.StringVar(&f.URL, "api", "", "`URL` of the read API, as in https://api.example.com; default: a query pod, by a port forwarded through the API server")
	set.StringVar(&f.TokenFile, "token-file", "", "`FILE` with the access token; default: the environment's WEIR_TOKEN, else one of the Property's Secret or one made for this command, as your rights allow")
}

// Check notes what is wrong with them.
func (f *Flags) Check(errs *flags.Errors) {
	if f.URL == "" {
		return
	}
	if u, err := url.Parse(f.URL); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || u.RawQuery != "" {
		errs.Add("--api: must be an http or https URL without user and query, as in https://api.example.com")
	} else if address, _ := netip.ParseAddr(u.Hostname()); u.Scheme == "http" && u.Hostname() != "localhost" && !address.IsLoopback() {
		errs.Add("--api: must be https: by http everybody on the way could read the token; http is for this machine itself")
	}
}

// needsCluster says whether the read API can be asked only with the help of a cluster.
func (f *Flags) needsCluster(getenv func(string) string) bool {
	return f.URL == "" || f.TokenFile == "" && getenv(tokenVariable) == ""
}

// base finds where the read API answers: the part before /api.
func (f *Flags) base(ctx context.Context, reached *cluster.Cluster, property string, forward Forward) (base string, stop func(), err error) {
	if f.URL != "" {
		return strings.TrimSuffix(strings.TrimRight(f.URL, "/"), "/api/v1"), func() {}, nil
	}
	pod, err := readyPod(ctx, reached, property)
	if err != nil {
		return "", nil, err
	}
	address, stop, err := forward(ctx, reached, pod, resources.HTTPPort)
	if err != nil {
		return "", nil, fmt.Errorf("%w; or name the read API by --api", err)
	}
	return "http://" + address, stop, nil
}

// readyPod names a query pod that answers.
func readyPod(ctx context.Context, reached *cluster.Cluster, property string) (string, error) {
	var pods corev1.PodList
	err := reached.List(ctx, &pods, client.InNamespace(reached.Namespace), client.MatchingLabels{
		resources.LabelName: resources.ManagedBy, resources.LabelInstance: property, resources.LabelComponent: string(resources.Query),
	})
	if err != nil {
		return "", fmt.Errorf("%w; or name the read API by --api", cluster.Explain("look for the query pods", err))
	}
	pods.Items = slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool { return !IsOf(&pod, property, resources.Query) })
	for i := range pods.Items {
		if Ready(&pods.Items[i]) {
			return pods.Items[i].Name, nil
		}
	}
	if len(pods.Items) == 0 {
		return "", errors.New("the Property has no query pods; its conditions say why")
	}
	return "", fmt.Errorf("none of the Property's %d query pods is ready: it still reads the streams after a start, or it does not come up; weir doctor says more", len(pods.Items))
}

// IsOf says whether a pod is of a role's Deployment. Its labels anybody may give to another, which would be sent tokens; who only claims to be
// of the Deployment is taken away by the cluster.
func IsOf(pod *corev1.Pod, property string, role resources.Role) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && owner.Kind == "ReplicaSet" && strings.HasPrefix(owner.Name, property+"-"+string(role)+"-")
}

// Ready says whether a pod takes requests and is to go on doing so.
func Ready(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
