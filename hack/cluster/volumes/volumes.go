// Package volumes gives claims of a storage class folders of the node it runs on, as a cloud's driver would give
// them disks: a local PersistentVolume, which the kubelet mounts and hands to the pod's fsGroup.
package volumes

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// provisionedBy marks a volume as made by a provisioner, as the field's provisioners do.
const provisionedBy = "pv.kubernetes.io/provisioned-by"

// Options say whose claims are served, and where the volumes lie.
type Options struct {
	// Class is the storage class; Provisioner is its provisioner's name.
	Class, Provisioner string
	// Folder is where a folder is made for each volume.
	Folder string
	// Node is the name of the node that the folder is on.
	Node string
}

// Run serves claims until ctx is done.
func Run(ctx context.Context, config *rest.Config, options Options) error {
	if err := os.MkdirAll(options.Folder, 0o755); err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(config, manager.Options{Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	if err := ctrl.NewControllerManagedBy(mgr).Named("claims").For(&corev1.PersistentVolumeClaim{}).
		Complete(&claims{mgr.GetClient(), options}); err != nil {
		return err
	}
	if err := ctrl.NewControllerManagedBy(mgr).Named("volumes").For(&corev1.PersistentVolume{}).
		Complete(&released{mgr.GetClient(), options}); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// claims makes a volume for each claim that waits for one.
type claims struct {
	client.Client
	options Options
}

// Reconcile makes the volume of one claim; Kubernetes' own controller then binds the two.
func (r *claims) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var claim corev1.PersistentVolumeClaim
	if err := r.Get(ctx, request.NamespacedName, &claim); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if claim.Spec.StorageClassName == nil || *claim.Spec.StorageClassName != r.options.Class || claim.Spec.VolumeName != "" ||
		claim.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	volume := Volume(&claim, r.options)
	// As a fresh disk's file system: root's, until the kubelet gives it to the pod's group.
	if err := os.MkdirAll(volume.Spec.Local.Path, 0o755); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.Create(ctx, volume); err != nil && !apierrors.IsAlreadyExists(err) {
		return ctrl.Result{}, fmt.Errorf("volume for %s: %w", request, err)
	}
	log.FromContext(ctx).Info("volume made", "volume", volume.Name, "path", volume.Spec.Local.Path)
	return ctrl.Result{}, nil
}

// Volume is the PersistentVolume of a claim. It is named for the claim's UID: a claim of the same name that comes
// later gets an empty one of its own.
func Volume(claim *corev1.PersistentVolumeClaim, options Options) *corev1.PersistentVolume {
	name := "pvc-" + string(claim.UID)
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{provisionedBy: options.Provisioner}},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName:              options.Class,
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage]},
			AccessModes:                   claim.Spec.AccessModes,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
			},
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				Local: &corev1.LocalVolumeSource{Path: filepath.Join(options.Folder, name)},
			},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{
					Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{options.Node},
				}},
			}}}},
		},
	}
}

// released removes volumes, with what is in them, that their claims have let go.
type released struct {
	client.Client
	options Options
}

// Reconcile removes one volume where its claim is gone and its policy says so.
func (r *released) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var volume corev1.PersistentVolume
	if err := r.Get(ctx, request.NamespacedName, &volume); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if volume.Annotations[provisionedBy] != r.options.Provisioner || volume.Status.Phase != corev1.VolumeReleased ||
		volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete || volume.Spec.Local == nil {
		return ctrl.Result{}, nil
	}
	// Only a folder that this program could have made, whatever the object says.
	folder := filepath.Join(r.options.Folder, filepath.Base(volume.Name))
	if volume.Spec.Local.Path != folder {
		return ctrl.Result{}, nil
	}
	if err := os.RemoveAll(folder); err != nil {
		return ctrl.Result{}, err
	}
	log.FromContext(ctx).Info("volume removed", "volume", volume.Name, "path", folder)
	return ctrl.Result{}, client.IgnoreNotFound(r.Delete(ctx, &volume))
}
