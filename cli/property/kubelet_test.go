package property_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// kubelet is as much of one as the API server asks when a port is forwarded: it leads streams to where a pod's role listens in this
// process. The API server itself, and all between it and a command, are real.
type kubelet struct {
	mu sync.Mutex
	// addresses are by namespace, pod and port.
	addresses map[string]string
}

// startKubelet makes a node that the kubelet answers for.
func startKubelet(t *testing.T, node string) *kubelet {
	t.Helper()
	k := &kubelet{addresses: map[string]string{}}
	serving := httptest.NewTLSServer(http.HandlerFunc(k.portForward))
	t.Cleanup(serving.CloseClientConnections)
	t.Cleanup(serving.Close)
	host, port, err := net.SplitHostPort(serving.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.ParseInt(port, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	made := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}
	server.Create(t, made)
	made.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: host}}
	made.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(number)
	if err := server.Client.Status().Update(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	return k
}

func (k *kubelet) listens(namespace, pod string, port int, address string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.addresses[fmt.Sprintf("%s/%s:%d", namespace, pod, port)] = address
}

func (k *kubelet) address(pod, port string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.addresses[pod+":"+port]
}

// portForward serves /portForward/NAMESPACE/POD as a kubelet does: of each connection there is a stream for data, and one for an error.
func (k *kubelet) portForward(w http.ResponseWriter, r *http.Request) {
	path := strings.Split(strings.TrimPrefix(r.URL.Path, "/portForward/"), "/")
	if _, err := httpstream.Handshake(r, w, []string{"portforward.k8s.io"}); err != nil || len(path) < 2 {
		http.Error(w, "no port is forwarded so", http.StatusBadRequest)
		return
	}
	pod := path[0] + "/" + path[1]
	streams := make(chan httpstream.Stream, 16)
	connection := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(stream httpstream.Stream, _ <-chan struct{}) error {
		streams <- stream
		return nil
	})
	if connection == nil {
		return
	}
	defer connection.Close()
	failures := map[string]httpstream.Stream{}
	for {
		select {
		case <-connection.CloseChan():
			return
		case stream := <-streams:
			request := stream.Headers().Get("requestID")
			if stream.Headers().Get("streamType") == "error" {
				failures[request] = stream
				continue
			}
			go k.lead(stream, failures[request], k.address(pod, stream.Headers().Get("port")))
		}
	}
}

// lead copies both ways until both have ended.
func (k *kubelet) lead(data, failure httpstream.Stream, address string) {
	defer failure.Close()
	defer data.Close()
	target, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", address)
	if err != nil {
		_, _ = io.WriteString(failure, "nobody listens there")
		return
	}
	defer target.Close()
	var both sync.WaitGroup
	both.Go(func() {
		_, _ = io.Copy(target, data)
		_ = target.(*net.TCPConn).CloseWrite()
	})
	both.Go(func() {
		_, _ = io.Copy(data, target)
		_ = data.Close()
	})
	both.Wait()
}
