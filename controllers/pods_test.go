package controllers_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/collector/role"
	"github.com/weir-dev/weir/controllers"
)

// mount does for one Deployment what a kubelet does for its pods: it writes the volumes' files where the container
// mounts them, below directory in place of /etc/weir.
func mount(t testing.TB, namespace, deployment, directory string) {
	t.Helper()
	pod := get(t, &appsv1.Deployment{}, namespace, deployment).Spec.Template.Spec
	for _, mount := range pod.Containers[0].VolumeMounts {
		if mount.SubPath != "" {
			t.Errorf("%s is mounted by subPath: it would never be updated", mount.MountPath)
		}
		i := slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })
		files := volumeFiles(t, namespace, pod.Volumes[i])
		target := filepath.Join(directory, strings.TrimPrefix(mount.MountPath, "/etc/weir"))
		if err := os.MkdirAll(target, 0o700); err != nil {
			t.Fatal(err)
		}
		for name, content := range files {
			temporary := filepath.Join(target, "..new")
			if err := errors.Join(os.WriteFile(temporary, content, 0o600), os.Rename(temporary, filepath.Join(target, name))); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func volumeFiles(t testing.TB, namespace string, volume corev1.Volume) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	if volume.ConfigMap != nil {
		for name, text := range get(t, &corev1.ConfigMap{}, namespace, volume.ConfigMap.Name).Data {
			files[name] = []byte(text)
		}
		return files
	}
	data := get(t, &corev1.Secret{}, namespace, volume.Secret.SecretName).Data
	for _, item := range volume.Secret.Items {
		files[item.Path] = data[item.Key]
	}
	return files
}

// pod serves a role from what a reconcile has rendered, until the test ends. It returns its address.
func pod(t testing.TB, namespace, property, suffix string, name role.Name) (address, directory string) {
	t.Helper()
	directory = t.TempDir()
	mount(t, namespace, property+"-"+suffix, directory)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- role.Run(ctx, role.Options{
			Roles: []role.Name{name}, Directories: []string{directory}, Listener: listener, Consumer: "test",
			Logger: slog.New(slog.DiscardHandler), Ready: func() error { close(ready); return nil },
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("%s ended with %v", name, err)
		}
	})
	select {
	case <-ready:
	case err := <-done:
		done <- nil
		t.Fatalf("%s does not start with what was rendered: %v", name, err)
	}
	return "http://" + listener.Addr().String(), directory
}

// send sends an event and returns the status.
func send(t testing.TB, address, key string) int {
	t.Helper()
	response, err := http.Post(address+"/collect/"+key, "application/json", strings.NewReader(`{"event":"pageview","client_id":"1"}`))
	if err != nil {
		t.Error(err)
		return 0
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode
}

func apiKey(t testing.TB, namespace, property, name string) string {
	t.Helper()
	return string(get(t, &corev1.Secret{}, namespace, property+"-credentials").Data["api-key."+name])
}

// reloaded hands the pods what has changed and waits until a key is answered as wanted.
func reloaded(t testing.TB, namespace, directory, address string, key func() string, want int) {
	t.Helper()
	eventually(t, func() error {
		mount(t, namespace, "shop-collector", directory)
		if got := send(t, address, key()); got != want {
			return fmt.Errorf("the key is answered %d, want %d", got, want)
		}
		return nil
	})
}

func TestThePodsServeWhatAReconcileRendersAndFollowItsCredentials(t *testing.T) {
	namespace := newNamespace(t)
	startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: redistest.URL(t)}})
	create(t, property(namespace, "shop", func(p *v1alpha1.Property) {
		p.Spec.Platforms = []v1alpha1.Platform{{Name: "console", Type: v1alpha1.PlatformLog}}
	}))
	settled(t, namespace, "shop")
	quiet(t, get(t, &v1alpha1.Property{}, namespace, "shop"))

	collect, directory := pod(t, namespace, "shop", "collector", role.Collect)
	read, _ := pod(t, namespace, "shop", "query", role.Query)
	first := apiKey(t, namespace, "shop", "default")
	if got := send(t, collect, first); got != http.StatusAccepted {
		t.Fatalf("the key is answered %d, want 202", got)
	}
	eventually(t, func() error { return visible(t, namespace, read) })

	// The first key is used all the while: no request may fail until it is revoked.
	var using sync.WaitGroup
	var failed atomic.Int64
	stop := make(chan struct{})
	using.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if send(t, collect, first) != http.StatusAccepted {
				failed.Add(1)
			}
		}
	})
	keys := func(keys ...v1alpha1.APIKey) {
		change(t, &v1alpha1.Property{}, namespace, "shop", func(p *v1alpha1.Property) { p.Spec.APIKeys = keys })
	}
	t.Run("a second key beside the first", func(t *testing.T) {
		keys(v1alpha1.APIKey{Name: "default"}, v1alpha1.APIKey{Name: "next"})
		reloaded(t, namespace, directory, collect, func() string { return apiKey(t, namespace, "shop", "next") }, http.StatusAccepted)
	})
	t.Run("a key that the owner brings", func(t *testing.T) {
		create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "brought"}, StringData: map[string]string{"key": "an-old-key-of-the-owner\n"}})
		keys(v1alpha1.APIKey{Name: "default"}, v1alpha1.APIKey{Name: "next"},
			v1alpha1.APIKey{Name: "legacy", SecretKeyRef: &v1alpha1.SecretKeyReference{Name: "brought", Key: "key"}})
		reloaded(t, namespace, directory, collect, func() string { return "an-old-key-of-the-owner" }, http.StatusAccepted)
	})
	t.Run("a brought key whose Secret is deleted is revoked", func(t *testing.T) {
		if err := server.client.Delete(context.Background(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "brought"}}); err != nil {
			t.Fatal(err)
		}
		reloaded(t, namespace, directory, collect, func() string { return "an-old-key-of-the-owner" }, http.StatusUnauthorized)
	})
	close(stop)
	using.Wait()
	if n := failed.Load(); n > 0 {
		t.Errorf("%d requests with the first key failed while others came and went", n)
	}
	t.Run("the first key is revoked", func(t *testing.T) {
		keys(v1alpha1.APIKey{Name: "next"})
		reloaded(t, namespace, directory, collect, func() string { return first }, http.StatusUnauthorized)
		if got := send(t, collect, apiKey(t, namespace, "shop", "next")); got != http.StatusAccepted {
			t.Errorf("the key that stays is answered %d, want 202", got)
		}
	})
}

// visible says whether the read API shows an event.
func visible(t testing.TB, namespace, read string) error {
	request, err := http.NewRequest(http.MethodGet, read+"/api/v1/properties/shop/events", nil)
	if err != nil {
		return err
	}
	token := get(t, &corev1.Secret{}, namespace, "shop-credentials").Data["access-token.default"]
	request.Header.Set("Authorization", "Bearer "+string(token))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK || !bytes.Contains(body, []byte("pageview")) {
		return fmt.Errorf("the read API answers %d without the event", response.StatusCode)
	}
	return nil
}

func TestRunningPodsAreToldOfAChangedConfiguration(t *testing.T) {
	namespace := newNamespace(t)
	startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: redistest.URL(t)}})
	create(t, property(namespace, "shop"))
	settled(t, namespace, "shop")
	quiet(t, get(t, &v1alpha1.Property{}, namespace, "shop"))
	deployment := get(t, &appsv1.Deployment{}, namespace, "shop-collector")
	create(t, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shop-collector-1", Labels: deployment.Spec.Template.Labels},
		Spec:       deployment.Spec.Template.Spec,
	})
	var told string
	hash := func() string {
		return get(t, &corev1.Pod{}, namespace, "shop-collector-1").Annotations["weir.dev/config"]
	}
	eventually(t, func() error {
		if told = hash(); told == "" {
			return errors.New("the pod has not been told")
		}
		return nil
	})
	generation := deployment.Generation
	change(t, &v1alpha1.Property{}, namespace, "shop", func(p *v1alpha1.Property) { p.Spec.APIKeys = append(p.Spec.APIKeys, v1alpha1.APIKey{Name: "next"}) })
	eventually(t, func() error {
		if hash() == told {
			return errors.New("the pod has not been told of the new key")
		}
		return nil
	})
	if now := get(t, &appsv1.Deployment{}, namespace, "shop-collector").Generation; now != generation {
		t.Error("a new key has replaced the pods")
	}
}

func TestARedisPasswordIsRotatedWithOverlap(t *testing.T) {
	namespace := newNamespace(t)
	startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: redistest.URL(t)}})
	create(t, property(namespace, "shop"))
	settled(t, namespace, "shop")
	old, ctx := string(get(t, &corev1.Secret{}, namespace, "shop-redis-query").Data["url"]), context.Background()
	rollOut(t, namespace, "shop")
	waitFor(t, namespace, "shop", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)

	works := func(address string) error { return dial(t, address).Ping(ctx).Err() }
	if err := server.client.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shop-redis-query"}}); err != nil {
		t.Fatal(err)
	}
	var next string
	eventually(t, func() error {
		secret := &corev1.Secret{}
		if err := server.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "shop-redis-query"}, secret); err != nil {
			return err
		}
		if next = string(secret.Data["url"]); next == old {
			return errors.New("the password is still the old one")
		}
		return works(next)
	})
	if err := works(old); err != nil {
		t.Errorf("the old password holds no longer while pods have it: %v", err)
	}
	eventually(t, func() error {
		rollOut(t, namespace, "shop")
		if works(old) == nil {
			return errors.New("the old password still holds after the rollout")
		}
		return works(next)
	})
}

// rollOut plays the deployment controller: it reports that all pods run as the spec has them.
func rollOut(t testing.TB, namespace, property string) {
	t.Helper()
	for _, suffix := range []string{"collector", "deliverer", "query"} {
		eventually(t, func() error {
			d := get(t, &appsv1.Deployment{}, namespace, property+"-"+suffix)
			n := *d.Spec.Replicas
			d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n}
			return server.client.Status().Update(context.Background(), d)
		})
	}
}

func TestNothingSecretIsShown(t *testing.T) {
	namespace := newNamespace(t)
	logged := &lockedBuffer{}
	address := redistest.URL(t)
	startOperator(t, operatorOptions{
		namespaces: []string{namespace}, Options: controllers.Options{RedisURL: address},
		log: slog.New(slog.NewTextHandler(logged, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	create(t, property(namespace, "shop", func(p *v1alpha1.Property) {
		p.Spec.Exposure = v1alpha1.Exposure{Type: v1alpha1.ExposureIngress, CollectHost: "secret.example.com", APIHost: "api.secret.example.com"}
	}))
	create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "wrong"}, StringData: map[string]string{"url": withUser(t, "redis://127.0.0.1:1", "someone", "a-wrong-password")}})
	create(t, property(namespace, "wrong", ownRedis("wrong")))
	p := settled(t, namespace, "shop")
	waitFor(t, namespace, "wrong", v1alpha1.ConditionRedisReady, metav1.ConditionFalse, v1alpha1.ReasonRedisUnreachable)
	quiet(t, p)

	secrets := []string{"a-wrong-password"}
	for name := range owned(t, p) {
		if name, found := strings.CutPrefix(name, "Secret "); found {
			for key, value := range get(t, &corev1.Secret{}, namespace, name).Data {
				if key != "username" && !strings.HasSuffix(key, ".json") {
					secrets = append(secrets, string(value))
				}
			}
		}
	}
	var shown bytes.Buffer
	for _, list := range []client.ObjectList{&v1alpha1.PropertyList{}, &eventsv1.EventList{}, &appsv1.DeploymentList{}, &corev1.ConfigMapList{}} {
		if err := server.client.List(context.Background(), list, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
		text, err := yaml.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		shown.Write(text)
	}
	for _, secret := range secrets {
		if strings.Contains(shown.String(), secret) {
			t.Errorf("an object or event shows a secret of %d characters", len(secret))
		}
		if strings.Contains(logged.String(), secret) {
			t.Errorf("the log shows a secret of %d characters", len(secret))
		}
	}
	if len(secrets) < 9 {
		t.Errorf("only %d secrets were looked for", len(secrets))
	}
}

// lockedBuffer is a log that is written and read at once.
type lockedBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *lockedBuffer) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(text)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}
