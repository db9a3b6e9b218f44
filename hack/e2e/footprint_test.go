package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	megabyte = 1_000_000
	// maxIdle is what an idle pod of a tenant may take of memory, maxImage what the image may weigh as it is stored and pulled.
	maxIdle, maxImage = 25 * megabyte, 25 * megabyte
)

// isSmall looks at a tenant that has nothing to do.
func isSmall(t *testing.T, s *suite) {
	books := s.tenantOf(t, "books")
	var nodes corev1.NodeList
	if err := s.List(t.Context(), &nodes); err != nil {
		t.Fatal(err)
	}
	node := nodes.Items[0]
	largest := uint64(0)
	within(t, time.Minute, "the kubelet has measured every pod of an idle Property", func() error {
		summary, err := command(t.Context(), "kubectl", "get", "--raw", "/api/v1/nodes/"+node.Name+"/proxy/stats/summary")
		if err != nil {
			return err
		}
		used, err := workingSets(summary, books.namespace)
		if err != nil {
			return err
		}
		for _, role := range []string{"collector", "deliverer", "query"} {
			for _, pod := range s.pods(t, books.namespace, roleOf("books", role)) {
				if used[pod.Name] == 0 {
					return errors.New(pod.Name + " has not been")
				}
			}
		}
		for pod, bytes := range used {
			if strings.HasPrefix(pod, "books-") {
				largest = max(largest, bytes)
			}
		}
		return nil
	})
	s.figure(t, "memory of the largest pod of an idle Property", "%.1f MB", float64(largest)/megabyte)
	if largest > maxIdle {
		t.Errorf("an idle pod takes %d bytes, want at most %d", largest, maxIdle)
	}
	for _, image := range node.Status.Images {
		if slices.Contains(image.Names, settings.image) {
			s.figure(t, "image", "%.1f MB", float64(image.SizeBytes)/megabyte)
			if image.SizeBytes > maxImage {
				t.Errorf("the image has %d bytes, want at most %d", image.SizeBytes, maxImage)
			}
			return
		}
	}
	t.Errorf("the node does not list the image %s", settings.image)
}

// workingSets are the bytes of memory that the containers of a namespace's pods use, by pod, out of what the kubelet says.
func workingSets(summary, namespace string) (map[string]uint64, error) {
	var read struct {
		Pods []struct {
			PodRef     struct{ Name, Namespace string }
			Containers []struct {
				Memory struct{ WorkingSetBytes uint64 }
			}
		}
	}
	if err := json.Unmarshal([]byte(summary), &read); err != nil {
		return nil, fmt.Errorf("the kubelet's summary: %w", err)
	}
	used := map[string]uint64{}
	for _, pod := range read.Pods {
		for _, container := range pod.Containers {
			if pod.PodRef.Namespace == namespace {
				used[pod.PodRef.Name] += container.Memory.WorkingSetBytes
			}
		}
	}
	return used, nil
}
