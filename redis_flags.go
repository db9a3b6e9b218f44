package main

import (
	"errors"
	"flag"

	"github.com/weir-dev/weir/collector/stream"
)

// The flags that name [stream.TLSFiles].
const (
	caFlag          = "redis-ca-file"
	certificateFlag = "redis-client-cert-file"
	keyFlag         = "redis-client-key-file"
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
