package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-dev/weir/collector/connect"
)

// Proxy is an HTTP proxy that connections go through, by CONNECT. It is the operator's to name, never a tenant's: the guard is not
// asked for its address.
type Proxy struct {
	// URL is http(s)://USER:PASSWORD@HOST:PORT; user and password may be absent.
	URL *url.URL
	// CA are the authorities that the proxy's own certificate may come from, in PEM; "" for the system's.
	CA string
	// ByName asks the proxy for a host by its name, which it resolves once more, and not by the address that the guard has judged.
	ByName bool
}

// ErrProxyURL says that a text is no proxy's URL. It repeats nothing of it, for it may hold a password.
var ErrProxyURL = errors.New("must be a URL such as http://user:password@proxy:3128 or https://proxy:443, without a path")

// ErrProxyCA says that a text holds no authorities.
var ErrProxyCA = errors.New("must hold certificates in PEM, and goes with an https:// proxy")

// ParseProxy reads a proxy's URL, and what its certificate is trusted by.
func ParseProxy(address, ca string) (Proxy, error) {
	parsed, err := url.Parse(strings.TrimSpace(address))
	if err != nil || (parsed.Scheme != "http" && parsed.Scheme != "https") || parsed.Hostname() == "" || connect.Port(parsed) == 0 ||
		(parsed.Path != "" && parsed.Path != "/") || parsed.RawQuery != "" || parsed.Fragment != "" {
		return Proxy{}, ErrProxyURL
	}
	if ca != "" && (parsed.Scheme != "https" || !x509.NewCertPool().AppendCertsFromPEM([]byte(ca))) {
		return Proxy{}, ErrProxyCA
	}
	return Proxy{URL: parsed, CA: ca}, nil
}

// Port is where the proxy listens.
func (p *Proxy) Port() uint16 { return connect.Port(p.URL) }

// address is the same with the host.
func (p *Proxy) address() string {
	return net.JoinHostPort(p.URL.Hostname(), strconv.Itoa(int(p.Port())))
}

// ErrProxyUnreachable says that no proxy answers. Like [RefusedError] it names neither the proxy nor who it was asked as.
var ErrProxyUnreachable = errors.New("the proxy cannot be reached")

// ErrProxyTimeout says that the proxy was asked to connect and has not said in time whether it does: mostly it waits for the host itself.
var ErrProxyTimeout = errors.New("the proxy does not say in time whether it connects")

// RefusedError says that the proxy does not connect.
type RefusedError struct {
	// Status is the HTTP status that it answers.
	Status int
}

// Error names the status alone: what else a proxy says may name hosts and users.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("the proxy answers %d in place of a connection", e.Status)
}

// Dialer connects to hosts that tenants name: directly, or by way of a proxy where there is one.
type Dialer struct {
	// Guard is asked about each address before anything is connected to.
	Guard *Guard
	// Proxy is nil for none. Addresses that the guard permits although they are not public are reached directly all the same: they
	// are inside.
	Proxy *Proxy
	// Timeout bounds a connection, the proxy's part in it included.
	Timeout time.Duration
	// Resolver is nil for the machine's.
	Resolver *net.Resolver
}

// direct connects where the guard permits the address, of whatever name it is.
func (d *Dialer) direct() *net.Dialer {
	return &net.Dialer{Timeout: d.Timeout, Resolver: d.Resolver, Control: d.Guard.Control}
}

// DialContext is [net.Dialer.DialContext]. Through a proxy every address of a name has to be permitted, since the proxy may
// choose another one than the first.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if d.Proxy == nil {
		return d.direct().DialContext(ctx, network, address)
	}
	ctx, cancel := context.WithTimeout(ctx, d.Timeout)
	defer cancel()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	resolver := d.Resolver
	if resolver == nil {
		resolver = net.DefaultResolver
	}
	found, err := resolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	inside := 0
	for _, ip := range found {
		switch {
		case !d.Guard.Permits(ip):
			return nil, ErrDenied
		case !IsPublic(ip):
			inside++
		}
	}
	if inside > 0 {
		if inside < len(found) {
			return nil, ErrDenied // half inside: neither way is right
		}
		// Not by the name: it may have another address by now, and that one would be reached around the proxy.
		return inTurn(ctx, found, func(ctx context.Context, ip netip.Addr) (net.Conn, error) {
			return d.direct().DialContext(ctx, network, net.JoinHostPort(ip.String(), port))
		}, func(error) bool { return true })
	}
	return d.connect(ctx, host, port, found)
}

// connect has the proxy connect to a host with these addresses, IPv4 first: not every proxy has IPv6.
func (d *Dialer) connect(ctx context.Context, host, port string, addresses []netip.Addr) (net.Conn, error) {
	if d.Proxy.ByName {
		return d.ask(ctx, net.JoinHostPort(host, port))
	}
	slices.SortStableFunc(addresses, func(a, b netip.Addr) int { return a.Unmap().BitLen() - b.Unmap().BitLen() })
	return inTurn(ctx, addresses, func(ctx context.Context, address netip.Addr) (net.Conn, error) {
		return d.ask(ctx, net.JoinHostPort(address.Unmap().String(), port))
	}, mayBeTheAddress)
}

// mayBeTheAddress says whether the proxy may well connect to another address of the same host.
func mayBeTheAddress(err error) bool {
	refused, byProxy := errors.AsType[*RefusedError](err)
	return byProxy && refused.Status >= http.StatusInternalServerError || errors.Is(err, ErrProxyTimeout)
}

// leastTurn is how long an address is tried at least, where there is so much time.
const leastTurn = 2 * time.Second

// inTurn tries one address after the other, as long as another one may help. Each has an equal part of the time that is left until ctx
// ends, so that one which does not answer leaves some to those behind it.
func inTurn(ctx context.Context, addresses []netip.Addr, try func(context.Context, netip.Addr) (net.Conn, error), mayHelp func(error) bool) (connection net.Conn, err error) {
	deadline, bounded := ctx.Deadline()
	for i, address := range addresses {
		turn, end := ctx, context.CancelFunc(func() {})
		if bounded {
			turn, end = context.WithTimeout(ctx, max(time.Until(deadline)/time.Duration(len(addresses)-i), leastTurn))
		}
		connection, err = try(turn, address)
		end()
		if err == nil || ctx.Err() != nil || !mayHelp(err) {
			break
		}
	}
	return connection, err
}

// ask has the proxy connect to HOST:PORT.
func (d *Dialer) ask(ctx context.Context, target string) (_ net.Conn, err error) {
	plain, err := (&net.Dialer{Timeout: d.Timeout}).DialContext(ctx, "tcp", d.Proxy.address())
	if err != nil {
		return nil, ErrProxyUnreachable
	}
	// Nothing of what follows reads a context.
	stop := context.AfterFunc(ctx, func() { _ = plain.SetDeadline(time.Unix(1, 0)) })
	defer func() {
		if !stop() && err == nil {
			err = ctx.Err()
		}
		if err != nil {
			_ = plain.Close()
		}
	}()
	connection := plain
	if d.Proxy.URL.Scheme == "https" {
		if connection, err = d.secured(ctx, connection); err != nil {
			return nil, err
		}
	}
	request := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: target}, Host: target, Header: http.Header{}}
	if user := d.Proxy.URL.User; user != nil {
		password, _ := user.Password()
		request.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(user.Username()+":"+password)))
	}
	if err := request.Write(connection); err != nil {
		return nil, ErrProxyUnreachable
	}
	if err := readAnswer(connection, request); err != nil {
		if errors.Is(err, ErrProxyUnreachable) && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return nil, ErrProxyTimeout
		}
		return nil, err
	}
	return connection, nil
}

// secured speaks TLS with the proxy itself. The connection is the one that was given where that fails.
func (d *Dialer) secured(ctx context.Context, connection net.Conn) (net.Conn, error) {
	trusted := &tls.Config{ServerName: d.Proxy.URL.Hostname()}
	if d.Proxy.CA != "" {
		trusted.RootCAs = x509.NewCertPool()
		trusted.RootCAs.AppendCertsFromPEM([]byte(d.Proxy.CA))
	}
	secure := tls.Client(connection, trusted)
	if err := secure.HandshakeContext(ctx); err != nil {
		return connection, fmt.Errorf("%w: no secure connection with it comes about", ErrProxyUnreachable)
	}
	return secure, nil
}

// maxProxyAnswer is how many bytes of a proxy's answer are read.
const maxProxyAnswer = 16 << 10

// readAnswer fails unless the proxy has connected, and ends the connection where it refuses to. Byte by byte nothing is read of what follows, which is not the proxy's.
func readAnswer(connection net.Conn, request *http.Request) error {
	answer, err := http.ReadResponse(bufio.NewReader(&byteReader{io.LimitReader(connection, maxProxyAnswer)}), request)
	if err != nil {
		return ErrProxyUnreachable
	}
	if answer.StatusCode == http.StatusOK {
		return nil // it has no body: what follows is the host's
	}
	// Nobody reads what else it says, which may be long or never come.
	_ = connection.Close()
	_ = answer.Body.Close()
	return &RefusedError{Status: answer.StatusCode}
}

// byteReader hands out a byte at a time, so that who buffers it has never read ahead.
type byteReader struct{ from io.Reader }

func (r *byteReader) Read(into []byte) (int, error) {
	return r.from.Read(into[:min(1, len(into))])
}
