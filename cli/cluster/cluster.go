// Package cluster is how the commands for people reach a Kubernetes cluster: with the flags, the kubeconfig and the rights that they have
// with kubectl.
package cluster

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	_ "k8s.io/client-go/plugin/pkg/client/auth/oidc" // as kubectl has it; whatever else signs in is a program of its own
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// answerWithin is how long the API server may take for one answer where the kubeconfig does not say.
const answerWithin = 30 * time.Second

// Flags are what kubectl is told of the cluster, by the names that they have there.
type Flags struct {
	Namespace, Kubeconfig, Context string
}

// Add adds them to a command's.
func (f *Flags) Add(set *flag.FlagSet) {
	set.StringVar(&f.Namespace, "namespace", "", "`NAMESPACE` of the Property; default: that of the kubeconfig's context")
	set.StringVar(&f.Namespace, "n", "", "`NAMESPACE`, as --namespace")
	set.StringVar(&f.Kubeconfig, "kubeconfig", "", "`FILE` that says how the cluster is reached; default: as kubectl has it, the environment's KUBECONFIG or ~/.kube/config")
	set.StringVar(&f.Context, "context", "", "`NAME` of the kubeconfig's context; default: its current one")
}

// loader reads the kubeconfig that the flags name.
func (f *Flags) loader() clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.Kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: f.Context}
	overrides.Context.Namespace = f.Namespace
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
}

// Contexts are the names of the kubeconfig's contexts.
func (f *Flags) Contexts() ([]string, error) {
	config, err := f.loader().RawConfig()
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	names := make([]string, 0, len(config.Contexts))
	for name := range config.Contexts {
		names = append(names, name)
	}
	return names, nil
}

// Cluster is a cluster as the caller may use it.
type Cluster struct {
	client.Client
	Config *rest.Config
	// Namespace is what the flags say, else the kubeconfig's context.
	Namespace string
}

// Connect reaches the cluster as kubectl would. The API server's warnings go to stderr.
func Connect(f Flags, stderr io.Writer) (*Cluster, error) {
	log.SetLogger(logr.Discard())
	loader := f.loader()
	config, err := loader.ClientConfig()
	namespace := ""
	if err == nil {
		namespace, _, err = loader.Namespace()
	}
	if err != nil {
		return nil, fmt.Errorf("find the cluster: %w", err)
	}
	config.WarningHandler = rest.NewWarningWriter(stderr, rest.WarningWriterOptions{})
	if config.Timeout == 0 {
		config.Timeout = answerWithin
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		v1alpha1.AddToScheme, appsv1.AddToScheme, authenticationv1.AddToScheme, authorizationv1.AddToScheme, batchv1.AddToScheme,
		corev1.AddToScheme, discoveryv1.AddToScheme, networkingv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("reach the cluster: %w", err)
	}
	return &Cluster{Client: c, Config: config, Namespace: namespace}, nil
}

// Property reads a Property of the namespace.
func (c *Cluster) Property(ctx context.Context, name string) (*v1alpha1.Property, error) {
	property := &v1alpha1.Property{}
	err := c.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: name}, property)
	switch {
	case err == nil:
		return property, nil
	case apierrors.IsNotFound(err) && !DefinitionMissing(err):
		return nil, fmt.Errorf("there is no Property %s in namespace %s; kubectl get properties -A lists those that there are", name, c.Namespace)
	}
	return nil, Explain(fmt.Sprintf("read the Property %s in namespace %s", name, c.Namespace), err)
}

// WhoAmI is the name that the API server knows the caller by, "" where it does not say.
func (c *Cluster) WhoAmI(ctx context.Context) string {
	review := &authenticationv1.SelfSubjectReview{}
	if err := c.Create(ctx, review); err != nil {
		return ""
	}
	return review.Status.UserInfo.Username
}

// Right is one of RBAC's.
type Right struct {
	Verb, Group, Resource, Subresource string
	// Namespace and Name bound it; "" for all.
	Namespace, Name string
}

// String words it as a rule of a Role does: "create pods/portforward".
func (r Right) String() string {
	words := r.Verb + " " + r.Resource
	if r.Subresource != "" {
		words += "/" + r.Subresource
	}
	if r.Group != "" {
		words += " of " + r.Group
	}
	return words
}

// May says whether the caller has a right.
func (c *Cluster) May(ctx context.Context, right Right) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
		Verb: right.Verb, Group: right.Group, Resource: right.Resource, Subresource: right.Subresource, Namespace: right.Namespace, Name: right.Name,
	}}}
	if err := c.Create(ctx, review); err != nil {
		return false, Explain("ask for your rights", err)
	}
	return review.Status.Allowed, nil
}

// DefinitionMissing says whether the cluster does not know a kind.
func DefinitionMissing(err error) bool {
	status := apierrors.APIStatus(nil)
	if errors.As(err, &status) && apierrors.IsNotFound(err) { // an answer without an object's name is about the path
		return status.Status().Details == nil || status.Status().Details.Name == ""
	}
	return meta.IsNoMatchError(err) || runtime.IsNotRegisteredError(err)
}

// Words are the API server's of an error, the error's own where it does not come from there.
func Words(err error) string {
	status := apierrors.APIStatus(nil)
	if errors.As(err, &status) {
		return status.Status().Message
	}
	return err.Error()
}

// Explain words why the API server did not do something, such as "list pods", and what would be right. A right that is missing the API
// server names by itself.
func Explain(doing string, err error) error {
	switch {
	case DefinitionMissing(err):
		return fmt.Errorf("%s: the cluster does not know the kind; is Weir installed there, and as new as this command?", doing)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%s: %s; ask for that right, or for a role that has it", doing, Words(err))
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%s: the cluster does not know you: %s; sign in as for kubectl", doing, Words(err))
	}
	return fmt.Errorf("%s: %s", doing, Words(err))
}
