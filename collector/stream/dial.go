package stream

import (
	"bufio"
	"context"
	"crypto/tls"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// connectTimeout is how long a connection may take to be made, and as long again an untrusted server may take to say that
	// it is a Redis.
	connectTimeout = 5 * time.Second
	// handshakeTimeout is how long TLS may take. A Redis that does not speak it waits for the end of a line.
	handshakeTimeout = 3 * time.Second
	// mostAddresses is how many addresses an untrusted Redis may have its client go to.
	mostAddresses = 256
)

// keepAlive is when the kernel looks whether the other end of an idle connection is still there: one that is not is
// found within 45 seconds.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 30 * time.Second, Interval: 5 * time.Second, Count: 3}

// DialOptions say how a client reaches Redis. The zero value is for one that whoever runs the process has chosen.
type DialOptions struct {
	// Control may refuse an address before it is connected to: it is a [net.Dialer]'s Control, called with the
	// address that a name has been resolved to. It holds for the URL's own addresses and for all that a cluster or
	// Sentinels name. Nil refuses none.
	Control func(network, address string, connection syscall.RawConn) error
	// Untrusted says that the URL is somebody else's, who may want to harm the process, or to have it harm others. Replies
	// are bounded narrowly, nothing but PING is sent before the server has answered as Redis does, and sockets of
	// the machine are not connected to.
	Untrusted bool
	// TLS is what the client trusts and shows at the beginning; see [Client.Authenticate].
	TLS TLS
}

// dialer makes a client's connections.
type dialer struct {
	DialOptions
	// tls is nil for connections in the clear; it is looked at for each one.
	tls *atomic.Pointer[tls.Config]

	mu sync.Mutex
	// addresses are those that an untrusted Redis was looked for at.
	addresses map[string]bool
}

// dial is what the Redis library connects with.
func (d *dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if d.Untrusted && !d.admits(address) {
		return nil, &Problem{ErrReply, "it names more addresses than are gone to"}
	}
	connection, err := d.connect(ctx, network, address)
	if err != nil {
		return nil, err
	}
	if d.Untrusted {
		if err := greet(connection); err != nil {
			connection.Close()
			return nil, err
		}
	}
	checked := newReplies(connection, d.Untrusted)
	if socket, ok := connection.(syscall.Conn); ok {
		return bareReplies{checked, socket}, nil
	}
	return checked, nil
}

// control asks what was given whether an address may be connected to, and tells a refusal from all that may happen there.
func (d *dialer) control(network, address string, connection syscall.RawConn) error {
	if d.Control != nil && d.Control(network, address, connection) != nil {
		return ErrAddress
	}
	return nil
}

// bareReplies are replies on a socket, of which the library finds out by its descriptor whether the server has closed it.
type bareReplies struct {
	*replies
	syscall.Conn
}

func (d *dialer) connect(ctx context.Context, network, address string) (net.Conn, error) {
	plain := &net.Dialer{Timeout: connectTimeout, Control: d.control, KeepAliveConfig: keepAlive}
	connection, err := plain.DialContext(ctx, network, address)
	settings := d.tls.Load()
	if err != nil || settings == nil {
		return connection, err
	}
	return secure(ctx, connection, settings)
}

// admits counts the addresses.
func (d *dialer) admits(address string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.addresses[address] && len(d.addresses) < mostAddresses {
		if d.addresses == nil {
			d.addresses = map[string]bool{}
		}
		d.addresses[address] = true
	}
	return d.addresses[address]
}

// greetings are how Redis answers PING to somebody who has not authenticated yet: with its answer, or the first word of
// an error.
var greetings = []string{"+PONG", "-NOAUTH", "-NOPERM", "-LOADING", "-BUSY", "-MISCONF"}

// greet finds out whether a server speaks as Redis does, before it is told a user and password, which another kind of server
// might take for its own commands.
func greet(connection net.Conn) error {
	if err := connection.SetDeadline(time.Now().Add(connectTimeout)); err != nil {
		return err
	}
	if _, err := connection.Write([]byte("*1\r\n$4\r\nPING\r\n")); err != nil {
		return err
	}
	// Byte by byte, so that nothing after the line is taken.
	answer := bufio.NewReaderSize(byteReader{connection}, 512)
	line, err := answer.ReadSlice('\n')
	if err != nil && len(line) == 0 {
		return err
	}
	word, _, _ := strings.Cut(strings.TrimRight(string(line), "\r\n"), " ")
	switch {
	case word == "-DENIED":
		return &Problem{ErrUnreachable, "it is in protected mode, and takes connections of its own machine alone"}
	case string(line[:min(len(line), 26)]) == "-ERR max number of clients":
		return &Problem{ErrUnreachable, "it has as many connections as it takes"}
	case !slices.Contains(greetings, word):
		return ErrReply
	}
	return connection.SetDeadline(time.Time{})
}

// byteReader reads one byte at a time.
type byteReader struct{ net.Conn }

// Read implements [io.Reader].
func (r byteReader) Read(b []byte) (int, error) { return r.Conn.Read(b[:1]) }
