package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	addonNamespace = "kube-system"
	manifestLabel  = "app.kubernetes.io/managed-by"
	manifestValue  = "weir-node"
	ingressService = "ingress"
)

// applyManifests applies what every cluster has beside its control plane: DNS, an ingress, a storage class and the
// rights of the agents.
func (n *Node) applyManifests(ctx context.Context) error {
	api, err := n.client()
	if err != nil {
		return err
	}
	objects, err := manifests()
	if err != nil {
		return err
	}
	for _, object := range objects {
		if err := api.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(manifestValue), client.ForceOwnership); err != nil {
			return fmt.Errorf("apply %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return giveAddress(ctx, api)
}

// giveAddress does what a load balancer's controller would: the ingress gets the node's own address.
func giveAddress(ctx context.Context, api client.Client) error {
	var service corev1.Service
	if err := api.Get(ctx, client.ObjectKey{Namespace: addonNamespace, Name: ingressService}, &service); err != nil {
		return err
	}
	before := service.DeepCopy()
	service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: Address}}
	return api.Status().Patch(ctx, &service, client.MergeFrom(before))
}

// IngressManifest is what runs the node's ingress, for a cluster of another kind.
func IngressManifest() (string, error) { return render("config/manifests/ingress.yaml") }

// manifests returns the embedded objects in the order of the files' names, each with the label that they are found by.
func manifests() ([]*unstructured.Unstructured, error) {
	files, err := fs.Glob(configFiles, "config/manifests/*.yaml")
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for _, file := range files {
		content, err := render(file)
		if err != nil {
			return nil, err
		}
		decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(content), 4096)
		for {
			object := &unstructured.Unstructured{}
			if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			if len(object.Object) == 0 {
				continue
			}
			labels := object.GetLabels()
			if labels == nil {
				labels = map[string]string{}
			}
			labels[manifestLabel] = manifestValue
			object.SetLabels(labels)
			objects = append(objects, object)
		}
	}
	return objects, nil
}
