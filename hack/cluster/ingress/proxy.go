package ingress

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// errNoEndpoint says that a path has no pod that could answer.
var errNoEndpoint = errors.New("no endpoint is ready")

// Proxy serves requests by the table that it was given last.
type Proxy struct {
	table  atomic.Pointer[Table]
	turn   atomic.Uint64
	logger *slog.Logger
	dialer net.Dialer

	mu    sync.Mutex
	pools map[string]*http.Transport // the connections to each endpoint
}

// NewProxy makes a proxy that has no routes yet.
func NewProxy(logger *slog.Logger) *Proxy {
	p := &Proxy{logger: logger, dialer: net.Dialer{Timeout: 2 * time.Second}, pools: map[string]*http.Transport{}}
	p.table.Store(&Table{})
	return p
}

// Use takes a new table. Connections to endpoints that are in it no longer are closed once they are idle; requests on
// them finish.
func (p *Proxy) Use(table *Table) {
	p.table.Store(table)
	current := map[string]bool{}
	for _, route := range table.routes {
		for _, endpoint := range route.endpoints {
			current[endpoint] = true
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for endpoint, pool := range p.pools {
		if !current[endpoint] {
			pool.CloseIdleConnections()
			delete(p.pools, endpoint)
		}
	}
}

// Certificate is for [tls.Config.GetCertificate].
func (p *Proxy) Certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if found := p.table.Load().certificate(hello.ServerName); found != nil {
		return found, nil
	}
	return nil, fmt.Errorf("no certificate for %q", hello.ServerName)
}

// ServeHTTP answers 404 where no Ingress has the host and path, 503 where no pod is ready and 502 where none answers.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	found := p.table.Load().find(r.Host, r.URL.Path)
	if found == nil {
		http.Error(w, "no Ingress has this host and path", http.StatusNotFound)
		return
	}
	forward := httputil.ReverseProxy{
		Rewrite: func(request *httputil.ProxyRequest) {
			request.Out.URL.Scheme, request.Out.URL.Host = "http", "endpoint" // which one, the transport chooses
			request.Out.Host = request.In.Host
			request.SetXForwarded()
		},
		Transport:     &turns{proxy: p, host: r.Host, path: r.URL.Path},
		FlushInterval: -1, // answers may be streams
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			status := http.StatusBadGateway
			if errors.Is(err, errNoEndpoint) {
				status = http.StatusServiceUnavailable
			}
			if r.Context().Err() == nil { // nobody waits for the answer otherwise
				p.logger.WarnContext(r.Context(), "no answer from a pod", "host", r.Host, "status", status, "error", err)
			}
			http.Error(w, http.StatusText(status), status)
		},
	}
	forward.ServeHTTP(w, r)
}

// pool returns the connections to an endpoint.
func (p *Proxy) pool(endpoint string) *http.Transport {
	p.mu.Lock()
	defer p.mu.Unlock()
	pool, ok := p.pools[endpoint]
	if !ok {
		pool = &http.Transport{DialContext: p.dialer.DialContext, MaxIdleConnsPerHost: 64, IdleConnTimeout: 30 * time.Second, DisableCompression: true}
		p.pools[endpoint] = pool
	}
	return pool
}

// turns sends one request to the endpoints in turn, until one has got it.
type turns struct {
	proxy      *Proxy
	host, path string
}

// RoundTrip tries another endpoint only where nothing of the request was sent: then no pod can have acted on it. Each time it
// looks the route up anew, since the table may have changed because of the very failure.
func (t *turns) RoundTrip(request *http.Request) (*http.Response, error) {
	body := &unread{ReadCloser: request.Body}
	tried := map[string]bool{}
	var last error
	for {
		endpoint, err := t.next(tried)
		if err != nil {
			return nil, errors.Join(err, last)
		}
		tried[endpoint] = true
		response, sent, err := t.proxy.send(request, endpoint, body)
		if err == nil || sent || body.touched.Load() || request.Context().Err() != nil {
			return response, err
		}
		last = err
	}
}

// next chooses an endpoint that has not been tried.
func (t *turns) next(tried map[string]bool) (string, error) {
	found := t.proxy.table.Load().find(t.host, t.path)
	if found == nil {
		return "", errNoEndpoint
	}
	first := t.proxy.turn.Add(1)
	for i := range uint64(len(found.endpoints)) {
		if endpoint := found.endpoints[(first+i)%uint64(len(found.endpoints))]; !tried[endpoint] {
			return endpoint, nil
		}
	}
	return "", errNoEndpoint
}

// send sends the request to an endpoint; sent says whether the writing of it had begun.
func (p *Proxy) send(request *http.Request, endpoint string, body *unread) (response *http.Response, sent bool, err error) {
	var begun atomic.Bool
	trace := &httptrace.ClientTrace{WroteHeaderField: func(string, []string) { begun.Store(true) }}
	attempt := request.Clone(httptrace.WithClientTrace(request.Context(), trace))
	attempt.URL.Host = endpoint
	if request.Body != nil && request.Body != http.NoBody {
		attempt.Body = body
	}
	response, err = p.pool(endpoint).RoundTrip(attempt)
	return response, begun.Load(), err
}

// unread is a request's body that remembers whether any of it was taken. It stays open after an attempt: the server closes it when the
// request has been answered.
type unread struct {
	io.ReadCloser
	touched atomic.Bool
}

// Read takes from the body.
func (u *unread) Read(p []byte) (int, error) {
	u.touched.Store(true)
	return u.ReadCloser.Read(p)
}

// Close leaves the body open for another attempt.
func (u *unread) Close() error { return nil }

func decimal(n int32) string { return strconv.Itoa(int(n)) }
