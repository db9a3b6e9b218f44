// Package connect has what clients share, those of Redis and of ClickHouse above all: what they trust and show in TLS, what is said
// of connections that do not come about, and which port a URL leads to.
package connect

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
)

// TLS is what a client trusts and shows beside what its URL says: contents in PEM. The zero value trusts the system's
// authorities and shows nothing. Two that differ are not equal.
type TLS struct {
	// CA are the certificates of authorities. The server's own has to come from one of these, and the system's do not count.
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

// Problem is one of the errors of this package with a word more, in words that may be shown to anybody.
type Problem struct {
	Kind   error
	Detail string
}

// Error implements error.
func (p *Problem) Error() string { return p.Kind.Error() + ": " + p.Detail }

// Unwrap returns the error that it is.
func (p *Problem) Unwrap() error { return p.Kind }

// Config makes settings of this for a server of the name that its certificate has to be for. The error is [ErrCA] or
// [ErrClientCertificate].
func (t TLS) Config(serverName string, skipVerify bool) (*tls.Config, error) {
	settings := &tls.Config{ServerName: serverName, MinVersion: tls.VersionTLS12}
	settings.InsecureSkipVerify = skipVerify // whoever writes the URL has said so
	if t.CA != "" {
		if skipVerify {
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

// Unused says what was given for a URL that asks for no TLS, nil for nothing. Scheme is the beginning of one that does.
func (t TLS) Unused(scheme string) error {
	detail := "the URL must begin with " + scheme + ", for it asks for no TLS"
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
