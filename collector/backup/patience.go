package backup

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"time"
)

// patience is how long a bucket's server is waited for.
type patience struct {
	// answer is how long an answer to one request may take to begin.
	answer time.Duration
	// call is how long all tries of a request may take together, longCall those of one that sends a part or makes one object of all.
	call, longCall time.Duration
	// stall is how long sending a little, or receiving pace bytes, may take.
	stall time.Duration
}

var usual = patience{answer: time.Minute, call: 4 * time.Minute, longCall: 10 * time.Minute, stall: time.Minute}

const (
	// connectTimeout is how long a connection may take, and how long TLS's handshake on it.
	connectTimeout = 10 * time.Second
	// pace is how many bytes of an object have to come in a stall's time.
	pace = 64 << 10
)

// errSilent says that a server is there and does nothing.
var errSilent = errors.New("the bucket's server answers too slowly, or not at all")

// client makes a client whose requests have their answers begun after a time.
func (p patience) client(answer time.Duration) *http.Client {
	dialer := &net.Dialer{Timeout: connectTimeout}
	return &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment,
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := dialer.DialContext(ctx, network, address)
				if err != nil {
					return nil, err
				}
				return &pacedConn{Conn: conn, stall: p.stall}, nil
			},
			TLSHandshakeTimeout:   connectTimeout,
			ResponseHeaderTimeout: answer,
			IdleConnTimeout:       90 * time.Second,
		},
	}
}

// within returns a context for all tries of a request.
func within(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, limit, errSilent)
}

// pacedConn is a connection on which sending a little may not take long.
type pacedConn struct {
	net.Conn
	stall time.Duration
}

func (c *pacedConn) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(c.stall)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// pacedBody is an object's content that has to come at some pace. Only the time in which somebody waits for it counts.
type pacedBody struct {
	io.ReadCloser
	stall time.Duration
	// giveUp has a read fail, and the request end.
	giveUp func()
	now    func() time.Time
	// waited is for how long it was waited for what has come since there was last enough.
	waited time.Duration
	come   int
}

func (b *pacedBody) Read(p []byte) (int, error) {
	began := b.now()
	timer := time.AfterFunc(b.stall-b.waited, b.giveUp)
	n, err := b.ReadCloser.Read(p)
	if !timer.Stop() && err != nil {
		err = errSilent
	}
	b.waited += b.now().Sub(began)
	if b.come += n; b.come >= pace {
		b.waited, b.come = 0, 0
	}
	return n, err
}

func (b *pacedBody) Close() error {
	err := b.ReadCloser.Close()
	b.giveUp()
	return err
}
