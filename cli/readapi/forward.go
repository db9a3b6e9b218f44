package readapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/weir-dev/weir/cli/cluster"
)

// PortForward is [Forward] through the API server, as kubectl port-forward: over a WebSocket, or by SPDY where the server is older.
// NetworkPolicies do not stand in its way. It takes the right to create pods/portforward.
func PortForward(ctx context.Context, reached *cluster.Cluster, pod string, port int) (address string, stop func(), err error) {
	config := rest.CopyConfig(reached.Config)
	config.Timeout = 0 // it lasts as long as the command
	fail := func(err error) (string, func(), error) {
		return "", nil, explain(pod, err)
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fail(err)
	}
	target := clients.CoreV1().RESTClient().Post().Resource("pods").Namespace(reached.Namespace).Name(pod).SubResource("portforward").URL()
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return fail(err)
	}
	webSocket, err := portforward.NewSPDYOverWebsocketDialerForStreaming(target, config)
	if err != nil {
		return fail(err)
	}
	dialer := portforward.NewFallbackDialerForStreaming(webSocket, spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, target),
		func(err error) bool { return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err) })
	ready := make(chan struct{})
	ctx, cancel := context.WithCancel(ctx)
	forwarder, err := portforward.NewOnAddressesForStreamingWithContext(ctx, dialer, []string{"127.0.0.1"}, []string{fmt.Sprintf("0:%d", port)}, ready, io.Discard, io.Discard)
	if err != nil {
		cancel()
		return fail(err)
	}
	ended, over := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(over)
		ended <- forwarder.ForwardPorts()
	}()
	select {
	case <-ready:
	case err := <-ended:
		cancel()
		if err == nil {
			err = errors.New("it ended at once")
		}
		return fail(err)
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		cancel()
		return fail(err)
	}
	address = fmt.Sprintf("127.0.0.1:%d", ports[0].Local)
	go hold(ctx, over, address)
	return address, cancel, nil
}

// hold keeps the port once the forwarding has ended, as where the pod is gone, until the command does: what is still sent there has a
// token in it, and somebody else on this machine could listen.
func hold(ctx context.Context, ended <-chan struct{}, address string) {
	select {
	case <-ctx.Done():
		return
	case <-ended:
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return
	}
	context.AfterFunc(ctx, func() { _ = listener.Close() })
	for {
		connection, err := listener.Accept()
		if err != nil {
			return
		}
		_ = connection.Close()
	}
}

// explain words why there is no way to a pod. A connection that is not upgraded fails with the API server's words as plain text.
func explain(pod string, err error) error {
	doing := "forward a port to the pod " + pod
	_, words, upgrading := strings.Cut(err.Error(), "unable to upgrade connection: ")
	switch {
	case !upgrading:
		return cluster.Explain(doing, err)
	case strings.Contains(words, "is forbidden"):
		return fmt.Errorf("%s: %s; ask for that right, or for a role that has it", doing, words)
	}
	return fmt.Errorf("%s: %s", doing, words)
}
