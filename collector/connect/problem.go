package connect

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
)

// TLSDetail is what is wrong with TLS, "" for nothing.
func TLSDetail(err error) string {
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "its certificate's authority is not known"
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return "its certificate is for another host"
	}
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok && invalid.Reason == x509.Expired {
		return "its certificate has expired, or is not valid yet"
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "its certificate is not valid"
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return "what answers does not speak it"
	}
	if operation, ok := errors.AsType[*net.OpError](err); ok && operation.Op == "remote error" {
		return "it ends the handshake, as one does that asks for a client certificate"
	}
	return ""
}

// NetworkDetail is what is wrong with a connection, in words of a closed list.
func NetworkDetail(err error) string {
	resolution, unresolved := errors.AsType[*net.DNSError](err)
	network, isNetwork := errors.AsType[net.Error](err)
	switch {
	case unresolved && resolution.IsNotFound:
		return "its host has no address"
	case unresolved:
		return "its host's address cannot be looked up"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "it refuses connections"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded),
		isNetwork && network.Timeout():
		return "it does not answer in time"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "it ends the connection"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "there is no way to its address"
	case errors.Is(err, context.Canceled):
		return "the attempt was broken off"
	default:
		return "there is no connection"
	}
}
