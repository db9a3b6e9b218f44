package main

import (
	"errors"
	"flag"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/collector/stream"
)

// The flags that name [stream.TLSFiles].
const (
	caFlag          = "redis-ca-file"
	certificateFlag = "redis-client-cert-file"
	keyFlag         = "redis-client-key-file"
)

// The flags of [redisCertificates].
const (
	secretFlag = "redis-certificate-secret"
	reloadFlag = "redis-reload-certificates"
)

func addTLSFlags(flags *flag.FlagSet, files *stream.TLSFiles) {
	flags.StringVar(&files.CA, caFlag, "", "`FILE` with the authorities that Redis's certificate may come from, in PEM; default: the system's")
	flags.StringVar(&files.Certificate, certificateFlag, "", "`FILE` with the certificate to show Redis, in PEM; default: none")
	flags.StringVar(&files.Key, keyFlag, "", "`FILE` with that certificate's key, in PEM")
}

// readTLS reads the files for the Redis at a URL, which the flag urlFlag gave.
func readTLS(urlFlag, address string, files stream.TLSFiles, fault func(format string, args ...any)) stream.TLS {
	if files == (stream.TLSFiles{}) {
		return stream.TLS{}
	}
	blame := "--" + certificateFlag
	switch {
	case address == "":
		if files.CA != "" {
			blame = "--" + caFlag
		}
		fault("%s: goes with %s alone", blame, urlFlag)
		return stream.TLS{}
	case (files.Certificate == "") != (files.Key == ""):
		fault("%s and --%s: go together", blame, keyFlag)
		return stream.TLS{}
	}
	read, err := files.Read()
	if err == nil {
		err = read.Check(address)
	}
	if errors.Is(err, stream.ErrCA) {
		blame = "--" + caFlag
	}
	if errors.Is(err, stream.ErrCA) || errors.Is(err, stream.ErrClientCertificate) {
		fault("%s: %v", blame, err)
	}
	return read
}

// redisCertificates says what the operator does for the certificates of its own Redis.
type redisCertificates struct {
	// secret is where it makes them, the zero value for nowhere.
	secret types.NamespacedName
	// reload says that somebody else makes them, and that Redis is told to read them again.
	reload bool
}

func (c redisCertificates) made() bool { return c.secret != types.NamespacedName{} }

func (c *redisCertificates) addFlags(flags *flag.FlagSet) {
	flags.Func(secretFlag, "make and renew the certificates of the Redis at --redis-url-file, in the Secret `NAMESPACE/NAME`, which has to be there, "+
		"and trust these alone; default: somebody else does", func(value string) error {
		namespace, name, found := strings.Cut(value, "/")
		if !found || namespace == "" || name == "" || strings.Contains(name, "/") {
			return errors.New("must be NAMESPACE/NAME, as in weir-system/weir-redis-tls")
		}
		c.secret = types.NamespacedName{Namespace: namespace, Name: name}
		return nil
	})
	flags.BoolVar(&c.reload, reloadFlag, false, "have the Redis at --redis-url-file read its certificates again every hour, which somebody else makes")
}

func (c *redisCertificates) check(address string, files stream.TLSFiles, fault func(format string, args ...any)) {
	name := secretFlag
	if !c.made() {
		name = reloadFlag
	}
	switch {
	case !c.made() && !c.reload:
	case !strings.HasPrefix(address, "rediss://"):
		fault("--%s: the URL in --redis-url-file must begin with rediss://", name)
	case c.made() && c.reload:
		fault("--%s: goes without --%s, which does the same", reloadFlag, secretFlag)
	case c.made() && files != (stream.TLSFiles{}):
		fault("--%s: goes without --%s, --%s and --%s", secretFlag, caFlag, certificateFlag, keyFlag)
	}
}
