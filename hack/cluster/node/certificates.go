package node

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// validity is how long the certificates hold: longer than any node of this kind lives.
const validity = 365 * 24 * time.Hour

// authority signs the certificates of one cluster.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	encoded     []byte // PEM
}

// identity is a key with a certificate, both PEM.
type identity struct{ certificate, key []byte }

// credential says who shall get a certificate.
type credential struct {
	file    string // kubeconfig to write; for the API server's own certificates the name in the pki folder
	user    string
	group   string
	servers []string // DNS names and addresses, for a server's certificate
}

// kubeconfigs are the clients of the API server: each gets the rights that the name or the group gives it.
func kubeconfigs() []credential {
	return []credential{
		{file: "controller-manager.conf", user: "system:kube-controller-manager"},
		{file: "scheduler.conf", user: "system:kube-scheduler"},
		{file: "kubelet.conf", user: "system:node:" + Name, group: "system:nodes"},
		{file: "kube-proxy.conf", user: "system:kube-proxy"},
		{file: "netpol.conf", user: "weir-node:netpol"},
		{file: "volumes.conf", user: "weir-node:volumes"},
	}
}

// writeCredentials makes a certificate authority, the API server's certificates and a kubeconfig for each client.
func (n *Node) writeCredentials(now time.Time) error {
	ca, err := newAuthority(now)
	if err != nil {
		return err
	}
	serviceAccounts, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(serviceAccounts.Public())
	if err != nil {
		return err
	}
	// Nothing is aggregated into this API server, but its clients complain where it does not know who would.
	frontProxy, err := newAuthority(now)
	if err != nil {
		return err
	}
	files := map[string][]byte{
		"ca.crt":             ca.encoded,
		"front-proxy-ca.crt": frontProxy.encoded,
		"sa.pub":             pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}),
	}
	if files["ca.key"], err = encodeKey(ca.key); err != nil {
		return err
	}
	if files["sa.key"], err = encodeKey(serviceAccounts); err != nil {
		return err
	}
	for _, wanted := range []credential{
		{file: "apiserver", user: "kube-apiserver", servers: []string{
			"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local", "localhost", Name,
			apiService, Address, "127.0.0.1"}},
		{file: "apiserver-kubelet-client", user: "kube-apiserver-kubelet-client"},
	} {
		issued, err := ca.issue(wanted, now)
		if err != nil {
			return err
		}
		files[wanted.file+".crt"], files[wanted.file+".key"] = issued.certificate, issued.key
	}
	for name, content := range files {
		if err := writeFile(n.path(filepath.Join(pkiFolder, name)), content, 0o600); err != nil {
			return err
		}
	}
	for _, client := range kubeconfigs() {
		if err := ca.writeKubeconfig(n.path(filepath.Join(kubeFolder, client.file)), client, now); err != nil {
			return err
		}
	}
	return ca.writeKubeconfig(n.Kubeconfig(), credential{user: "weir-node:admin", group: "system:masters"}, now)
}

func newAuthority(now time.Time) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(now.UnixNano()),
		Subject:               pkix.Name{CommonName: Name},
		NotBefore:             now.Add(-time.Hour), // the clocks of those who check may be behind
		NotAfter:              now.Add(validity),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(raw)
	if err != nil {
		return nil, err
	}
	return &authority{certificate: certificate, key: key, encoded: encodeCertificate(raw)}, nil
}

// issue makes a key and signs a certificate for it: a server's where the credential has server names, else a client's.
func (a *authority) issue(wanted credential, now time.Time) (identity, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return identity{}, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return identity{}, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: wanted.user},
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.Add(validity),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if wanted.group != "" {
		template.Subject.Organization = []string{wanted.group}
	}
	if len(wanted.servers) > 0 {
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	}
	for _, name := range wanted.servers {
		if address := net.ParseIP(name); address != nil {
			template.IPAddresses = append(template.IPAddresses, address)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return identity{}, err
	}
	encoded, err := encodeKey(key)
	return identity{certificate: encodeCertificate(raw), key: encoded}, err
}

func (a *authority) writeKubeconfig(path string, client credential, now time.Time) error {
	issued, err := a.issue(client, now)
	if err != nil {
		return err
	}
	config := clientcmdapi.NewConfig()
	config.Clusters[Name] = &clientcmdapi.Cluster{Server: "https://" + Address + ":6443", CertificateAuthorityData: a.encoded}
	config.AuthInfos[client.user] = &clientcmdapi.AuthInfo{ClientCertificateData: issued.certificate, ClientKeyData: issued.key}
	config.Contexts[Name] = &clientcmdapi.Context{Cluster: Name, AuthInfo: client.user}
	config.CurrentContext = Name
	return clientcmd.WriteToFile(*config, path)
}

func encodeCertificate(raw []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
}

func encodeKey(key crypto.PrivateKey) ([]byte, error) {
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}), err
}

// writeFile writes a file and the folders that lead to it.
func writeFile(path string, content []byte, mode os.FileMode) error {
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, content, mode))
}
