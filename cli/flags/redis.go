package flags

import (
	"errors"
	"flag"

	"github.com/weir-dev/weir/collector/stream"
)

// The flags that name [stream.TLSFiles].
const (
	RedisCA          = "redis-ca-file"
	RedisCertificate = "redis-client-cert-file"
	RedisKey         = "redis-client-key-file"
)

// AddRedisTLS adds the flags for the certificates of a Redis.
func AddRedisTLS(set *flag.FlagSet, files *stream.TLSFiles) {
	set.StringVar(&files.CA, RedisCA, "", "`FILE` with the authorities that Redis's certificate may come from, in PEM; default: the system's")
	set.StringVar(&files.Certificate, RedisCertificate, "", "`FILE` with the certificate to show Redis, in PEM; default: none")
	set.StringVar(&files.Key, RedisKey, "", "`FILE` with that certificate's key, in PEM")
}

// ReadRedisTLS reads the files for the Redis at a URL, which the flag urlFlag gave.
func ReadRedisTLS(urlFlag, address string, files stream.TLSFiles, errs *Errors) stream.TLS {
	if files == (stream.TLSFiles{}) {
		return stream.TLS{}
	}
	blame := "--" + RedisCertificate
	switch {
	case address == "":
		if files.CA != "" {
			blame = "--" + RedisCA
		}
		errs.Add("%s: goes with %s alone", blame, urlFlag)
		return stream.TLS{}
	case (files.Certificate == "") != (files.Key == ""):
		errs.Add("%s and --%s: go together", blame, RedisKey)
		return stream.TLS{}
	}
	read, err := files.Read()
	if err == nil {
		err = stream.CheckTLS(address, read)
	}
	if errors.Is(err, stream.ErrCA) {
		blame = "--" + RedisCA
	}
	if errors.Is(err, stream.ErrCA) || errors.Is(err, stream.ErrClientCertificate) {
		errs.Add("%s: %v", blame, err)
	}
	return read
}
