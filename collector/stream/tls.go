package stream

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"syscall"
)

// TLS is what a client trusts and shows beside what its URL says: contents in PEM. The zero value trusts the system's
// authorities and shows nothing. Two that differ are not equal.
type TLS struct {
	// CA are the certificates of authorities. Redis's own has to come from one of these, and the system's do not count.
	CA string
	// Certificate, with those between it and its authority, and Key are what the client shows; "" for nothing.
	Certificate, Key string
}

// Errors of [TLS] that callers tell apart; [Problem] says more. They repeat nothing of what they are about.
var (
	// ErrCA says that the authorities cannot be used.
	ErrCA = errors.New("the CA certificates cannot be used")
	// ErrClientCertificate says that what the client would show cannot be used.
	ErrClientCertificate = errors.New("the client certificate cannot be used")
)

// Check says whether this can be used with a URL: [ErrCA], [ErrClientCertificate]. What else is wrong with the URL [Dial] says.
func (t TLS) Check(address string) error {
	parsed, err := url.Parse(address)
	if err != nil {
		return ErrURL
	}
	_, err = t.Over(parsed)
	return err
}

// Over makes settings of this and of what a URL says, which is rediss:// or https://; nil for connections in the clear.
func (t TLS) Over(address *url.URL) (*tls.Config, error) {
	switch address.Scheme {
	case "rediss", "https":
	case "http":
		return nil, t.unused("https")
	default:
		return nil, t.unused("rediss")
	}
	settings := &tls.Config{ServerName: cmp.Or(address.Hostname(), "localhost"), MinVersion: tls.VersionTLS12}
	if asked := address.Query().Get("skip_verify"); asked == "true" || asked == "1" {
		settings.InsecureSkipVerify = true // whoever writes the URL has said so
	}
	if t.CA != "" {
		if settings.InsecureSkipVerify {
			return nil, &Problem{ErrCA, "the URL says skip_verify; take that out, or give no CA"}
		}
		var err error
		if settings.RootCAs, err = authorities([]byte(t.CA)); err != nil {
			return nil, err
		}
	}
	if t.Certificate != "" || t.Key != "" {
		pair, err := tls.X509KeyPair([]byte(t.Certificate), []byte(t.Key))
		if err != nil { // whose words may repeat what stands there
			return nil, &Problem{ErrClientCertificate, "it must be a certificate and the private key that belongs to it, both in PEM"}
		}
		settings.Certificates = []tls.Certificate{pair}
	}
	return settings, nil
}

// unused says what was given for a URL that asks for no TLS, nil for nothing.
func (t TLS) unused(encrypted string) error {
	detail := "the URL must begin with " + encrypted + "://, for it asks for no TLS"
	switch {
	case t.CA != "":
		return &Problem{ErrCA, detail}
	case t != (TLS{}):
		return &Problem{ErrClientCertificate, detail}
	default:
		return nil
	}
}

// authorities reads certificates in PEM, each of them or none: one that is left out would be missed at the next rotation.
func authorities(text []byte) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	for found := false; ; found = true {
		var block *pem.Block
		block, text = pem.Decode(text)
		if block == nil && found {
			return pool, nil
		}
		if block == nil || block.Type != "CERTIFICATE" {
			return nil, &Problem{ErrCA, "they must be certificates in PEM, and nothing else"}
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, &Problem{ErrCA, "one of them is damaged"}
		}
		pool.AddCert(certificate)
	}
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

// TLSFiles are files with what a client trusts and shows; "" for none. They change when certificates are rotated.
type TLSFiles struct{ CA, Certificate, Key string }

// Read reads the files as they are now: [ErrCA], [ErrClientCertificate].
func (f TLSFiles) Read() (TLS, error) {
	var read TLS
	for _, file := range []struct {
		path  string
		into  *string
		blame error
	}{{f.CA, &read.CA, ErrCA}, {f.Certificate, &read.Certificate, ErrClientCertificate}, {f.Key, &read.Key, ErrClientCertificate}} {
		if file.path == "" {
			continue
		}
		content, err := os.ReadFile(file.path)
		if err != nil {
			return TLS{}, fmt.Errorf("%w: %w", file.blame, err)
		}
		if len(content) == 0 {
			return TLS{}, fmt.Errorf("%w: %s is empty", file.blame, file.path)
		}
		*file.into = string(content)
	}
	return read, nil
}
