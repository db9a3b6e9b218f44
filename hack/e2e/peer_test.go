package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/hack/e2e/load"
)

// peer is a customer's pod inside the cluster: see ./peer.
type peer struct{ url string }

// startPeer runs one in a namespace, with a Service before it.
func (s *suite) startPeer(t *testing.T, namespace string) {
	t.Helper()
	labels := map[string]string{"app.kubernetes.io/name": "peer"}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "peer", Labels: labels},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: new(false),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: new(true), RunAsUser: new(int64(65532)),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: "peer", Image: settings.peerImage, ImagePullPolicy: corev1.PullNever,
				ReadinessProbe: &corev1.Probe{
					PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(8080)}},
				},
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
					Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		},
	}
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "peer"},
		Spec:       corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{{Port: 8080}}},
	}
	for _, object := range []client.Object{pod, service} {
		if err := s.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	s.peerIn(t, namespace)
}

// ensurePeer starts one where there is none: a step that is run alone has none of the steps before.
func (s *suite) ensurePeer(t *testing.T, namespace string) {
	t.Helper()
	err := s.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "peer"}, &corev1.Pod{})
	switch {
	case apierrors.IsNotFound(err):
		s.startPeer(t, namespace)
	case err != nil:
		t.Fatal(err)
	}
}

// peerIn finds the peer of a namespace, and waits for it.
func (s *suite) peerIn(t *testing.T, namespace string) *peer {
	t.Helper()
	var pod corev1.Pod
	within(t, time.Minute, "the peer in "+namespace+" is ready", func() error {
		if err := s.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "peer"}, &pod); err != nil {
			return err
		}
		if !ready(&pod) {
			return fmt.Errorf("it is %s", pod.Status.Phase)
		}
		return nil
	})
	return &peer{url: "http://" + pod.Status.PodIP + ":8080"}
}

// call asks the peer to do something and reads its answer, unless into is nil.
func (p *peer) call(t *testing.T, method, path string, asked, into any) {
	t.Helper()
	body, err := json.Marshal(asked)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), method, p.url+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	status, answer, err := do(request)
	if err != nil || status >= http.StatusBadRequest {
		t.Fatalf("the peer's %s %s: %d %s %v", method, path, status, answer, err)
	}
	if into != nil {
		if err := json.Unmarshal([]byte(answer), into); err != nil {
			t.Fatalf("the peer's %s %s: %v", method, path, err)
		}
	}
}

// dial says why the peer cannot reach an address, or "".
func (p *peer) dial(t *testing.T, address string) string {
	t.Helper()
	var answer struct{ Error string }
	p.call(t, http.MethodPost, "/dial", map[string]string{"address": address}, &answer)
	return answer.Error
}

// request has the peer request something.
func (p *peer) request(t *testing.T, method, url string, header map[string]string, body string) (int, string, string) {
	t.Helper()
	var answer struct {
		Status      int
		Body, Error string
	}
	p.call(t, http.MethodPost, "/request", map[string]any{"method": method, "url": url, "header": header, "body": body}, &answer)
	return answer.Status, answer.Body, answer.Error
}

// received is what the peer's webhook has got so far.
type received struct {
	Header http.Header
	Body   string
}

func (p *peer) received(t *testing.T) []received {
	t.Helper()
	var list []received
	p.call(t, http.MethodGet, "/hook", nil, &list)
	return list
}

func (p *peer) startLoad(t *testing.T, plan load.Plan) {
	t.Helper()
	p.call(t, http.MethodPost, "/load", plan, nil)
}

func (p *peer) stopLoad(t *testing.T) load.Result {
	t.Helper()
	var result load.Result
	p.call(t, http.MethodDelete, "/load", nil, &result)
	return result
}
