package deliver

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/deliver/adapter"
	"github.com/weir-dev/weir/collector/egress"
)

const (
	dialTimeout = 10 * time.Second
	// maxAnswer is how much of an answer is read, after decompression: the verdicts on the events of a batch fit.
	maxAnswer = 256 << 10
	// bodyTimeout is how long the rest of an answer is waited for that nobody reads: only a connection whose answer has
	// ended can carry another request.
	bodyTimeout = time.Second
	// idleConnections per host are as many as requests run at a time, so that none is opened anew under load.
	idleConnections = parallelRequests
)

// client makes the platforms' requests. A connection carries one at a time, as in HTTP/1.1, so that a platform which breaks
// it off for one event's sake fails no other's. It follows no redirect, uses no proxy but the operator's, behind the guard, and
// keeps the answers bounded. No error of it is ever shown: they hold the URL, and that may hold a credential.
type client struct {
	http *http.Client
	now  func() time.Time
}

func newClient(allowed config.Egress, timeout time.Duration, now func() time.Time) *client {
	return &client{http: NewHTTPClient(allowed, timeout), now: now}
}

// NewHTTPClient makes a client for hosts that tenants name: it asks the guard about each address, follows no redirect and
// uses no proxy of the environment's.
func NewHTTPClient(allowed config.Egress, timeout time.Duration) *http.Client {
	return &http.Client{
		Timeout: timeout,
		Transport: &http.Transport{
			DialContext:            newDialer(allowed).DialContext, // which knows of the proxy: the transport's own would go around the guard
			TLSHandshakeTimeout:    dialTimeout,
			MaxIdleConnsPerHost:    idleConnections,
			IdleConnTimeout:        90 * time.Second,
			MaxResponseHeaderBytes: maxAnswer,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// newDialer makes a dialer that asks the guard about each address before it connects to it, or has the proxy connect.
func newDialer(allowed config.Egress) *egress.Dialer {
	return &egress.Dialer{Guard: &egress.Guard{Allowed: allowed.AllowCIDRs}, Proxy: allowed.Proxy, Timeout: dialTimeout}
}

// close ends the connections that are idle.
func (c *client) close() { c.http.CloseIdleConnections() }

// exchange makes one request. Where there is no answer, it returns the verdict instead: another attempt, with
// the reason why.
func (c *client) exchange(ctx context.Context, request adapter.Request) (adapter.Response, *adapter.Verdict) {
	exchanging, breakOff := context.WithCancel(ctx)
	defer breakOff()
	out, err := http.NewRequestWithContext(exchanging, request.Method, request.URL, bytes.NewReader(request.Body))
	if err != nil {
		return adapter.Response{}, &adapter.Verdict{Class: adapter.Config, Reason: "url_invalid"}
	}
	out.Header = request.Header
	answer, err := c.http.Do(out)
	if err != nil {
		return adapter.Response{}, &adapter.Verdict{Class: adapter.Retry, Reason: failureReason(ctx, err)}
	}
	defer answer.Body.Close()
	if request.StatusOnly {
		defer time.AfterFunc(bodyTimeout, breakOff).Stop()
	}
	// A body that breaks off is judged as far as it came: the status has been answered all the same.
	body, _ := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	return adapter.Response{Status: answer.StatusCode, Header: answer.Header, Body: body, At: c.now()}, nil
}

// reasonEgressDenied is why nothing is sent to a host that has only addresses which deliveries may not go to.
const reasonEgressDenied = "egress_denied"

// failureReason names why there was no answer.
func failureReason(ctx context.Context, err error) string {
	var (
		resolution  *net.DNSError
		certificate *tls.CertificateVerificationError
		alert       tls.AlertError
		record      tls.RecordHeaderError
		network     net.Error
	)
	switch refused, byProxy := errors.AsType[*egress.RefusedError](err); {
	case errors.Is(err, egress.ErrDenied):
		return reasonEgressDenied
	case byProxy:
		return "proxy_" + strconv.Itoa(refused.Status)
	case ctx.Err() != nil:
		return "interrupted"
	case errors.Is(err, egress.ErrProxyUnreachable):
		return "proxy_unreachable"
	case errors.Is(err, egress.ErrProxyTimeout):
		return "proxy_timeout"
	case errors.As(err, &resolution):
		return "name_not_resolved"
	case errors.As(err, &certificate), errors.As(err, &alert), errors.As(err, &record):
		return "tls_failed"
	case errors.As(err, &network) && network.Timeout():
		return "timeout"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection_refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "connection_reset"
	default:
		return "connection_failed"
	}
}
