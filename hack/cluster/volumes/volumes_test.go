package volumes

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func claimOf(class string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "1234"},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class,
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
}

func optionsIn(folder string) Options {
	return Options{Class: "local", Provisioner: "weir.test/volumes", Folder: folder, Node: "node"}
}

// volumesOf lists the PersistentVolumes.
func volumesOf(t *testing.T, api client.Client) []corev1.PersistentVolume {
	t.Helper()
	var list corev1.PersistentVolumeList
	if err := api.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func TestAClaimOfTheClassGetsAFolder(t *testing.T) {
	options := optionsIn(t.TempDir())
	api := fake.NewClientBuilder().WithObjects(claimOf("local")).Build()
	request := ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "shop", Name: "data"}}
	for range 2 { // a second look at the same claim makes nothing more
		if _, err := (&claims{api, options}).Reconcile(t.Context(), request); err != nil {
			t.Fatal(err)
		}
	}
	list := volumesOf(t, api)
	if len(list) != 1 {
		t.Fatalf("%d volumes, want one", len(list))
	}
	if ref := list[0].Spec.ClaimRef; ref == nil || ref.UID != "1234" || ref.Name != "data" || ref.Namespace != "shop" {
		t.Errorf("the volume is for %v", ref)
	}
	if info, err := os.Stat(list[0].Spec.Local.Path); err != nil || !info.IsDir() {
		t.Errorf("the volume's folder: %v", err)
	}
}

func TestAClaimOfAnotherClassIsLeftAlone(t *testing.T) {
	api := fake.NewClientBuilder().WithObjects(claimOf("other")).Build()
	request := ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "shop", Name: "data"}}
	if _, err := (&claims{api, optionsIn(t.TempDir())}).Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	if list := volumesOf(t, api); len(list) != 0 {
		t.Errorf("volumes %v, want none", list)
	}
}

func TestAVolumeGoesWithItsClaim(t *testing.T) {
	for does, tt := range map[string]struct {
		change func(*corev1.PersistentVolume)
		gone   bool
	}{
		"released":    {func(*corev1.PersistentVolume) {}, true},
		"still bound": {func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeBound }, false},
		"to be kept": {func(v *corev1.PersistentVolume) {
			v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
		}, false},
		"made by somebody else":         {func(v *corev1.PersistentVolume) { v.Annotations = nil }, false},
		"with a folder it cannot be of": {func(v *corev1.PersistentVolume) { v.Spec.Local.Path += "/.." }, false},
	} {
		t.Run(does, func(t *testing.T) {
			options := optionsIn(t.TempDir())
			volume := Volume(claimOf("local"), options)
			volume.Status.Phase = corev1.VolumeReleased
			folder := volume.Spec.Local.Path
			if err := os.MkdirAll(filepath.Join(folder, "data"), 0o755); err != nil {
				t.Fatal(err)
			}
			tt.change(volume)
			api := fake.NewClientBuilder().WithObjects(volume).Build()
			request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(volume)}
			if _, err := (&released{api, options}).Reconcile(t.Context(), request); err != nil {
				t.Fatal(err)
			}
			_, err := os.Stat(folder)
			if gone := errors.Is(err, os.ErrNotExist); gone != tt.gone {
				t.Errorf("the folder is gone: %v, want %v", gone, tt.gone)
			}
			if gone := len(volumesOf(t, api)) == 0; gone != tt.gone {
				t.Errorf("the volume is gone: %v, want %v", gone, tt.gone)
			}
		})
	}
}
