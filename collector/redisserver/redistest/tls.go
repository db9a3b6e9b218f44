package redistest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-dev/weir/collector/redisserver"
)

// Authority signs certificates.
type Authority struct {
	// PEM is its own certificate.
	PEM         string
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// NewAuthority makes an authority that nobody knows.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{key: newKey(t), certificate: &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: rand.Text()}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}}
	der, err := x509.CreateCertificate(rand.Reader, a.certificate, a.certificate, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	a.PEM = encode("CERTIFICATE", der)
	return a
}

// Sign makes a certificate for loopback addresses, which change may change, and its key, both in PEM.
func (a *Authority) Sign(t testing.TB, change func(*x509.Certificate)) (certificate, key string) {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if change != nil {
		change(template)
	}
	private := newKey(t)
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, private.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return encode("CERTIFICATE", der), encode("PRIVATE KEY", encoded)
}

// TLSServer is a Redis that speaks TLS at a port of its own, beside the socket of its [redisserver.Server].
type TLSServer struct {
	*redisserver.Server
	// Address is rediss://127.0.0.1:PORT; its default user needs no password.
	Address string
	dir     string
}

// StartTLS starts a server with a certificate. It asks clients for certificates of authorities in clientCA, in PEM; "" for none.
func StartTLS(t testing.TB, certificate, key, clientCA string, extra ...string) *TLSServer {
	t.Helper()
	return startTLS(t, redisserver.Options{Extra: extra}, certificate, key, clientCA)
}

func startTLS(t testing.TB, options redisserver.Options, certificate, key, clientCA string) *TLSServer {
	t.Helper()
	s := &TLSServer{dir: t.TempDir()}
	port := freePort(t)
	s.Address = "rediss://127.0.0.1:" + port
	s.Give(t, certificate, key, clientCA)
	lines := append(s.lines(port, clientCA != ""), "bind 127.0.0.1", "protected-mode no")
	options.Extra = append(lines, options.Extra...)
	s.Server = Start(t, options)
	return s
}

// lines are those of the server's configuration for TLS.
func (s *TLSServer) lines(port string, asks bool) []string {
	return []string{
		"tls-port " + port, "tls-auth-clients " + yesOrNo(asks),
		"tls-cert-file " + s.file("tls.crt"), "tls-key-file " + s.file("tls.key"), "tls-ca-cert-file " + s.file("ca.crt"),
	}
}

// Give puts other certificates into the server's files; it goes on with those that it has read until it reads them again.
func (s *TLSServer) Give(t testing.TB, certificate, key, clientCA string) {
	t.Helper()
	if clientCA == "" {
		clientCA = certificate // Redis wants the file whether it asks clients or not
	}
	for name, content := range map[string]string{"tls.crt": certificate, "tls.key": key, "ca.crt": clientCA} {
		if err := os.WriteFile(s.file(name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func (s *TLSServer) file(name string) string { return filepath.Join(s.dir, name) }

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func encode(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}
