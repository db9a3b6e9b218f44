package controllers

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"maps"
	"net"
	"net/url"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	// authorityLife and serverLife are how long an authority and a server's certificate last. Both are renewed when two thirds are over.
	authorityLife, serverLife = 10 * 365 * 24 * time.Hour, 90 * 24 * time.Hour
	// overlap is how long clients are told of a new authority before it signs anything that they have to trust.
	overlap = 24 * time.Hour
	// skew is how far a client's clock may be behind.
	skew = time.Hour
)

// The keys of a Secret with certificates. That of the authority is for whoever renews them, and mounted nowhere.
const (
	certificateKey, privateKey = corev1.TLSCertKey, corev1.TLSPrivateKeyKey
	bundleKey, authorityKey    = "ca.crt", "ca.key"
)

// mostAuthorities and mostBundle bound a bundle that is taken up. It has two where nobody else writes to it; each is below 1 KiB.
const mostAuthorities, mostBundle = 8, 64 << 10

// authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// renewCertificates returns what a Secret with an authority and a server's certificate for hosts shall hold now: what it has, but for
// what is missing, damaged or due. A new authority stands in the bundle beside those before it, which stay until they expire; it
// signs once clients have had time to hear of it, or at once where there is no certificate that they would accept.
func renewCertificates(have map[string][]byte, hosts []string, now time.Time) (map[string][]byte, error) {
	want := maps.Clone(have)
	if want == nil {
		want = map[string][]byte{}
	}
	bundle := unexpired(have[bundleKey], now) // which somebody else may have written
	signer := signerOf(bundle, have[authorityKey])
	if signer == nil || due(signer.certificate, now) {
		var err error
		if signer, err = newAuthority(now); err != nil {
			return nil, err
		}
		bundle = append([]*x509.Certificate{signer.certificate}, bundle...)
		if want[authorityKey], err = encodeKey(signer.key); err != nil {
			return nil, err
		}
	}
	want[bundleKey] = encodeCertificates(bundle)
	server, err := serverCertificate(have, bundle, hosts, now)
	known := !now.Before(signer.certificate.NotBefore.Add(skew + overlap))
	if err != nil || known && (due(server, now) || server.CheckSignatureFrom(signer.certificate) != nil) {
		if want[certificateKey], want[privateKey], err = signer.sign(hosts, now); err != nil {
			return nil, err
		}
	}
	return want, nil
}

// due says whether a certificate is to be renewed: two thirds of its life are over, or it was made by a clock that is ahead of now.
func due(certificate *x509.Certificate, now time.Time) bool {
	life := certificate.NotAfter.Sub(certificate.NotBefore)
	return now.Before(certificate.NotBefore) || !now.Before(certificate.NotBefore.Add(life/3*2))
}

// unexpired returns the certificates of a bundle, but for those that have expired or are damaged; none of a bundle that is too large.
func unexpired(bundle []byte, now time.Time) []*x509.Certificate {
	if len(bundle) > mostBundle {
		return nil
	}
	var list []*x509.Certificate
	for blocks := 0; ; blocks++ {
		var block *pem.Block
		if block, bundle = pem.Decode(bundle); block == nil {
			return list
		}
		if blocks == mostAuthorities {
			return nil
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err == nil && now.Before(certificate.NotAfter) {
			list = append(list, certificate)
		}
	}
}

// signerOf returns the authority of a bundle that a key belongs to, nil for none.
func signerOf(bundle []*x509.Certificate, key []byte) *authority {
	block, _ := pem.Decode(key)
	if block == nil {
		return nil
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	private, ok := parsed.(*ecdsa.PrivateKey)
	if err != nil || !ok {
		return nil
	}
	for _, certificate := range bundle {
		if certificate.IsCA && private.PublicKey.Equal(certificate.PublicKey) {
			return &authority{certificate, private}
		}
	}
	return nil
}

// serverCertificate returns the server's certificate; an error where clients that trust the bundle would not accept it now.
func serverCertificate(have map[string][]byte, bundle []*x509.Certificate, hosts []string, now time.Time) (*x509.Certificate, error) {
	pair, err := tls.X509KeyPair(have[certificateKey], have[privateKey])
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	for _, certificate := range bundle {
		roots.AddCert(certificate)
	}
	_, err = pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now})
	for _, host := range hosts {
		err = errors.Join(err, pair.Leaf.VerifyHostname(host))
	}
	return pair.Leaf, err
}

func newAuthority(now time.Time) (*authority, error) {
	// No two have the same name, so that a client which looks for an issuer by its name finds the right one.
	name := pkix.Name{CommonName: "Redis of Weir, " + now.UTC().Format(time.RFC3339)}
	key, certificate, err := issue(&x509.Certificate{
		Subject: name, NotAfter: now.Add(authorityLife), IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
	}, nil, now)
	return &authority{certificate, key}, err
}

// sign makes a server's certificate and its key, both in PEM.
func (a *authority) sign(hosts []string, now time.Time) (certificate, key []byte, err error) {
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "Redis of Weir"}, NotAfter: now.Add(serverLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	private, made, err := issue(template, a, now)
	if err != nil {
		return nil, nil, err
	}
	key, err = encodeKey(private)
	return encodeCertificates([]*x509.Certificate{made}), key, err
}

// issue makes a key and a certificate for it, by an authority, or by itself where that is nil.
func issue(template *x509.Certificate, by *authority, now time.Time) (*ecdsa.PrivateKey, *x509.Certificate, error) {
	template.NotBefore = now.Add(-skew)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if by == nil {
		by = &authority{template, key}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by.certificate, key.Public(), by.key)
	if err != nil {
		return nil, nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	return key, certificate, err
}

func encodeCertificates(list []*x509.Certificate) []byte {
	var text bytes.Buffer
	for _, certificate := range list {
		text.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw}))
	}
	return text.Bytes()
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), err
}

// certificateHosts are what a Redis is called by those who know its URL: all names of a Service, and what its own pod says.
func certificateHosts(address string) ([]string, error) {
	parsed, err := url.Parse(address)
	if err != nil || parsed.Hostname() == "" {
		return nil, errors.New("the URL of the operator's Redis has no host") // and its words may repeat the password
	}
	host := parsed.Hostname()
	hosts := []string{"localhost", "127.0.0.1"}
	if service, found := strings.CutSuffix(host, ".svc"); found {
		name, _, _ := strings.Cut(service, ".")
		hosts = append(hosts, name, service, host+".cluster.local")
	}
	if host != "localhost" && host != "127.0.0.1" {
		hosts = append(hosts, host)
	}
	return hosts, nil
}
