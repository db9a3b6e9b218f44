package stream

import (
	"context"
	"crypto/tls"
	"net"
	"syscall"
	"time"
)

// connectTimeout is how long a connection may take to be made, TLS included.
const connectTimeout = 5 * time.Second

// keepAlive is when the kernel looks whether the other end of an idle connection is still there: one that is not is
// found within 45 seconds.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 30 * time.Second, Interval: 5 * time.Second, Count: 3}

// DialOptions say how a client reaches Redis. The zero value is for one that whoever runs the process has chosen.
type DialOptions struct {
	// Control may refuse an address before it is connected to: it is a [net.Dialer]'s Control, called with the
	// address that a name has been resolved to. It holds for the URL's own addresses and for all that a cluster or
	// Sentinels name. Nil refuses none.
	Control func(network, address string, connection syscall.RawConn) error
}

// dialer makes a client's connections.
type dialer struct {
	DialOptions
	// tls is nil for a connection in the clear.
	tls *tls.Config
}

// dial is what the Redis library connects with.
func (d *dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	plain := &net.Dialer{Timeout: connectTimeout, Control: d.Control, KeepAliveConfig: keepAlive}
	if d.tls == nil {
		return plain.DialContext(ctx, network, address)
	}
	return (&tls.Dialer{NetDialer: plain, Config: d.tls}).DialContext(ctx, network, address)
}
