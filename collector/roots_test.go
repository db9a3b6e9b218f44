package main

import (
	"crypto/x509"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// nowhere is where a process is told to look for certificates; Go looks once, so it has to be told before it starts.
const nowhere = "/weir-has-no-such-file"

func TestAnImageWithoutCertificateFilesTrustsThePublicAuthorities(t *testing.T) {
	if os.Getenv("SSL_CERT_FILE") != nowhere {
		command := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v")
		command.Env = append(os.Environ(), "SSL_CERT_FILE="+nowhere, "SSL_CERT_DIR="+nowhere)
		if output, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v:\n%s", err, output)
		}
		return
	}

	trusted := 0
	for root := range bundle.Roots() {
		certificate, err := x509.ParseCertificate(root.Certificate)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := certificate.Verify(x509.VerifyOptions{KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err == nil {
			trusted++
		}
	}
	if trusted < 50 {
		t.Errorf("%d public authorities are trusted, want most of the hundred and more", trusted)
	}
}
