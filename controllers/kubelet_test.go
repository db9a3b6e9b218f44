package controllers_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/collector/role"
)

// mount does for one Deployment what a kubelet does for its pods: it writes the volumes' files where the container
// mounts them, below directory in place of /etc/weir. All files of a volume change in one step. Where a Secret that
// must be there is not, the files of before stay, as they do on a node.
func mount(namespace, deployment, directory string) error {
	ctx := context.Background()
	found := &appsv1.Deployment{}
	if err := server.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: deployment}, found); err != nil {
		return err
	}
	pod := found.Spec.Template.Spec
	for _, mount := range pod.Containers[0].VolumeMounts {
		if mount.SubPath != "" {
			return fmt.Errorf("%s is mounted by subPath: it would never be updated", mount.MountPath)
		}
		i := slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })
		files, err := volumeFiles(ctx, namespace, pod.Volumes[i])
		if err != nil {
			return err
		}
		if err := project(filepath.Join(directory, strings.TrimPrefix(mount.MountPath, "/etc/weir")), files); err != nil {
			return err
		}
	}
	return nil
}

func volumeFiles(ctx context.Context, namespace string, volume corev1.Volume) (map[string][]byte, error) {
	files := map[string][]byte{}
	if volume.ConfigMap != nil {
		found := &corev1.ConfigMap{}
		err := server.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: volume.ConfigMap.Name}, found)
		for name, text := range found.Data {
			files[name] = []byte(text)
		}
		return files, err
	}
	if volume.Projected != nil {
		for _, source := range volume.Projected.Sources {
			if err := secretFiles(ctx, namespace, source.Secret.Name, source.Secret.Optional, source.Secret.Items, files); err != nil {
				return nil, err
			}
		}
		return files, nil
	}
	return files, secretFiles(ctx, namespace, volume.Secret.SecretName, volume.Secret.Optional, volume.Secret.Items, files)
}

// secretFiles adds the files of a Secret's keys.
func secretFiles(ctx context.Context, namespace, name string, mayMiss *bool, items []corev1.KeyToPath, files map[string][]byte) error {
	found := &corev1.Secret{}
	err := server.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, found)
	optional := mayMiss != nil && *mayMiss
	if optional && apierrors.IsNotFound(err) {
		return nil
	}
	for _, item := range items {
		value, there := found.Data[item.Key]
		if there {
			files[item.Path] = value
		} else if err == nil && !optional {
			err = fmt.Errorf("secret %s has no key %s", name, item.Key)
		}
	}
	return err
}

// project writes a volume's files as the kubelet does: into a new directory, to which the link ..data is then turned.
func project(target string, files map[string][]byte) error {
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(sum, "%s %x ", name, sha256.Sum256(files[name]))
	}
	version := fmt.Sprintf("..%x", sum.Sum(nil)[:8])
	link := filepath.Join(target, "..data")
	before, _ := os.Readlink(link)
	if before == version {
		return nil
	}
	if err := os.MkdirAll(filepath.Join(target, version), 0o700); err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(target, version, name), content, 0o600); err != nil {
			return err
		}
	}
	if err := os.Symlink(version, link+"_tmp"); err != nil {
		return err
	}
	if err := os.Rename(link+"_tmp", link); err != nil {
		return err
	}
	for name := range files {
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(target, name)); err != nil && !os.IsExist(err) {
			return err
		}
	}
	entries, err := os.ReadDir(target)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if _, wanted := files[entry.Name()]; !wanted && !strings.HasPrefix(entry.Name(), "..") {
			if err := os.Remove(filepath.Join(target, entry.Name())); err != nil {
				return err
			}
		}
	}
	if before == "" {
		return nil
	}
	return os.RemoveAll(filepath.Join(target, before))
}

// pod serves a role from what a reconcile has rendered until the test ends, with a kubelet that keeps its files as the
// API server has them. It returns its address and its log.
func pod(t testing.TB, namespace, property, suffix string, name role.Name) (address string, logged *lockedBuffer) {
	t.Helper()
	directory, deployment := t.TempDir(), property+"-"+suffix
	eventually(t, func() error { return mount(namespace, deployment, directory) })
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	logged = &lockedBuffer{}
	ctx, cancel := context.WithCancel(context.Background())
	var kubelet sync.WaitGroup
	kubelet.Go(func() {
		ticker := time.NewTicker(50 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				_ = mount(namespace, deployment, directory) // it is tried again, as on a node
			}
		}
	})
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- role.Run(ctx, role.Options{
			Roles: []role.Name{name}, Directories: []string{directory}, Listener: listener, Consumer: "test",
			Logger: slog.New(slog.NewTextHandler(logged, &slog.HandlerOptions{Level: slog.LevelDebug})),
			Ready:  func() error { close(ready); return nil },
		})
	}()
	t.Cleanup(func() {
		cancel()
		kubelet.Wait()
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
	return "http://" + listener.Addr().String(), logged
}

// send sends an event and returns the status; 0 where there is no answer.
func send(t testing.TB, address, key string) int {
	t.Helper()
	response, err := http.Post(address+"/collect/"+key, "application/json",
		strings.NewReader(`{"event":"pageview","client_id":"1.2","context":{"page_url":"https://shop.example/","user_agent":"Mozilla/5.0 (X11; Linux x86_64) Firefox/145.0"}}`))
	if err != nil {
		t.Error(err)
		return 0
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode
}

// list asks the read API for events and returns the status and the answer; 0 where there is none.
func list(t testing.TB, address, property, token string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, address+"/api/v1/properties/"+property+"/events", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	return response.StatusCode, string(body)
}

// traffic makes requests, one after the other, until it is stopped.
type traffic struct {
	stop func()
	made int
	// statuses counts the answers that were not wanted.
	statuses map[int]int
}

func startTraffic(t testing.TB, want int, request func() int) *traffic {
	r := &traffic{statuses: map[int]int{}}
	stop := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			r.made++
			if status := request(); status != want {
				r.statuses[status]++
			}
		}
	})
	r.stop = sync.OnceFunc(func() {
		close(stop)
		done.Wait()
	})
	t.Cleanup(r.stop)
	return r
}

// end stops it and checks that no request has failed.
func (r *traffic) end(t testing.TB, what string) {
	t.Helper()
	r.stop()
	if len(r.statuses) > 0 || r.made == 0 {
		t.Errorf("%s: of %d requests some were answered otherwise, by status: %v", what, r.made, r.statuses)
	}
}

// credential returns a key or token of the Property's, "" where it has none of that name.
func credential(t testing.TB, namespace, property, name string) string {
	t.Helper()
	return string(get(t, &corev1.Secret{}, namespace, property+"-credentials").Data[name])
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
