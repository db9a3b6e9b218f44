package config

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/weir-dev/weir/collector/egress"
)

// DeliveryProxy is the proxy that deliveries go through, as its files have it.
type DeliveryProxy struct {
	// URL is as [egress.ParseProxy] reads it; "" for none.
	URL string
	// CA are authorities in PEM; "" for the system's.
	CA string
	// ByName is [Egress.ProxyByName]; it is in none of the files.
	ByName bool
}

// Files renders it, by the files' paths. All are there, whether or not they have a content: a volume may then name each.
func (p DeliveryProxy) Files() map[string][]byte {
	return map[string][]byte{ProxyURLFile: []byte(p.URL), ProxyCAFile: []byte(p.CA)}
}

// LoadEgress completes what the property file says of deliveries with the proxy below dir, where there is one. Errors repeat nothing
// of its URL, which may hold a password.
func LoadEgress(dir string, said Egress) (Egress, error) {
	text, err := readFile(dir, ProxyURLFile)
	if errors.Is(err, fs.ErrNotExist) {
		return said, nil
	}
	if err != nil {
		return Egress{}, err
	}
	ca, err := readFile(dir, ProxyCAFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Egress{}, err
	}
	proxy, err := egress.ParseProxy(string(text), string(ca))
	switch {
	case errors.Is(err, egress.ErrProxyCA):
		return Egress{}, fmt.Errorf("%s: %w", ProxyCAFile, err)
	case err != nil:
		return Egress{}, fmt.Errorf("%s: %w", ProxyURLFile, err)
	}
	proxy.ByName = said.ProxyByName
	said.Proxy = &proxy
	return said, nil
}
