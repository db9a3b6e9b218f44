package console

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/controllers/resources"
)

const (
	// dialTimeout is how long a connection to a query pod may take, headerTimeout how long an answer's beginning: less than the
	// console's own time for an answer, so that whoever waits is told.
	dialTimeout   = 3 * time.Second
	headerTimeout = 55 * time.Second
	stallTimeout  = 30 * time.Second
	// maxPodHeader bounds the header of an answer.
	maxPodHeader = 32 << 10
	// maxPodConnections is how many connections one Property's pods get.
	maxPodConnections = 64
)

// jsonType is the media type of bodies.
const jsonType = "application/json"

// pods are the Properties' query pods, whom nothing is believed: what stands behind a Service is its namespace's owner's choice.
type pods struct {
	transport *http.Transport
	signer    *signer
	// stall is how long either side may take for the next part of an answer. It bounds what a slow one holds, while an export as a
	// whole may take as long as it needs.
	stall time.Duration
}

func newPods(dial func(context.Context, string, string) (net.Conn, error), signer *signer) *pods {
	if dial == nil {
		dial = (&net.Dialer{Timeout: dialTimeout, ControlContext: neverLocal}).DialContext
	}
	return &pods{signer: signer, stall: stallTimeout, transport: &http.Transport{
		DialContext: dial, Proxy: nil, DisableCompression: true, MaxResponseHeaderBytes: maxPodHeader, ResponseHeaderTimeout: headerTimeout,
		// A connection of its own for each request: none leads to a pod of a Property that had the name before, none has an answer on it
		// that nobody has asked for, and a Property's pods share the load.
		DisableKeepAlives: true, MaxConnsPerHost: maxPodConnections,
	}}
}

// neverLocal refuses addresses at which no pod is: those of the console's own pod, and those by which a cloud tells a machine who it is.
func neverLocal(_ context.Context, _, address string, _ syscall.RawConn) error {
	peer, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	ip := peer.Addr().Unmap()
	if ip.IsLoopback() || ip.IsUnspecified() || ip.IsMulticast() || ip.IsLinkLocalUnicast() {
		return fmt.Errorf("%s is no address of a pod", ip)
	}
	return nil
}

// request makes a request to a Property's query pods. The path, below the read API's of the Property, is escaped.
func (p *pods) request(ctx context.Context, method string, of *v1alpha1.Property, escaped, query string, body []byte, u *user, scope auth.Scope) (*http.Request, error) {
	token, err := p.signer.sign(u, string(of.UID), scope)
	if err != nil {
		return nil, err
	}
	whole := apiPath(of.Name) + escaped
	path, err := url.PathUnescape(whole)
	if err != nil {
		return nil, err
	}
	to := url.URL{Scheme: "http", Host: resources.ObjectName(of, resources.Query) + "." + of.Namespace + ".svc", Path: path, RawPath: whole, RawQuery: query}
	request, err := http.NewRequestWithContext(ctx, method, to.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	if body != nil {
		request, err = http.NewRequestWithContext(ctx, method, to.String(), bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		request.Header.Set("Content-Type", jsonType)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("User-Agent", "weir-console")
	return request, nil
}

// apiPath is below which a Property's read API lies.
func apiPath(name string) string { return "/api/v1/properties/" + name }

// segment escapes what is one segment of a path. It is false for what would be none, or another one.
func segment(text string) (string, bool) {
	if text == "" || text == "." || text == ".." || strings.ContainsFunc(text, unprintable) {
		return "", false
	}
	return url.PathEscape(text), true
}
