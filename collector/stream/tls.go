package stream

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"syscall"

	"github.com/weir-dev/weir/collector/connect"
)

// TLS is what a client trusts and shows beside what its URL says.
type TLS = connect.TLS

// TLSFiles are files with what a client trusts and shows.
type TLSFiles = connect.TLSFiles

// Errors of [TLS] that callers tell apart; [Problem] says more. They repeat nothing of what they are about.
var (
	// ErrCA says that the authorities cannot be used.
	ErrCA = connect.ErrCA
	// ErrClientCertificate says that what the client would show cannot be used.
	ErrClientCertificate = connect.ErrClientCertificate
)

// CheckTLS says whether what a client would trust and show can be used with a URL: [ErrCA], [ErrClientCertificate]. What else
// is wrong with the URL [Dial] says.
func CheckTLS(address string, identity TLS) error {
	parsed, err := url.Parse(address)
	if err != nil {
		return ErrURL
	}
	_, err = tlsFor(parsed, identity)
	return err
}

// tlsFor makes settings of what a client trusts and shows and of what its URL says; nil for connections in the clear.
func tlsFor(address *url.URL, identity TLS) (*tls.Config, error) {
	var settings *tls.Config
	var err error
	if address.Scheme == "rediss" {
		asked := address.Query().Get("skip_verify")
		settings, err = identity.Config(cmp.Or(address.Hostname(), "localhost"), asked == "true" || asked == "1")
	} else {
		err = identity.Unused("rediss://")
	}
	if known, ok := errors.AsType[*connect.Problem](err); ok {
		return nil, &Problem{known.Kind, known.Detail}
	}
	return settings, err
}

// secure makes a connection a TLS connection.
func secure(ctx context.Context, plain net.Conn, settings *tls.Config) (net.Conn, error) {
	limited, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	conn := tls.Client(plain, settings)
	if err := conn.HandshakeContext(limited); err != nil {
		plain.Close()
		if ctx.Err() == nil && limited.Err() != nil {
			err = &Problem{ErrTLS, "there is no handshake in time, as with one that does not speak it"}
		}
		return nil, err
	}
	return &secureConn{Conn: conn, plain: plain}, nil
}

// secureConn is a TLS connection of which the Redis library can tell whether the other end has closed it: it looks at the
// socket before it uses an idle connection again.
type secureConn struct {
	*tls.Conn
	plain net.Conn
}

// SyscallConn implements [syscall.Conn]. What has arrived unasked for is the other end's farewell.
func (c *secureConn) SyscallConn() (syscall.RawConn, error) {
	socket, ok := c.plain.(syscall.Conn)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	return socket.SyscallConn()
}

// ReloadCertificates has a Redis that stands alone read its certificate, key and authorities again, from the files that it
// has them from. Its user needs the CONFIG command.
func (c *Client) ReloadCertificates(ctx context.Context) error {
	files, err := c.redis.ConfigGet(ctx, "tls-*-file").Result()
	if err != nil {
		return fmt.Errorf("reload redis's certificates: %w", err)
	}
	again := []any{"config", "set"}
	for _, name := range []string{"tls-cert-file", "tls-key-file", "tls-ca-cert-file"} {
		if files[name] != "" {
			again = append(again, name, files[name])
		}
	}
	if len(again) == 2 {
		return nil // it speaks no TLS
	}
	// All at once, for a key fits one certificate alone.
	if err := c.redis.Do(ctx, again...).Err(); err != nil {
		return fmt.Errorf("reload redis's certificates: %w", err)
	}
	return nil
}
