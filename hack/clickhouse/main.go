// Clickhouse is a ClickHouse server for tests and development: the real engine (libchdb, which must lie beside this program)
// behind ClickHouse's HTTP interface. It is started as ClickHouse is,
//
//	clickhouse server --config-file=FILE
//
// and reads of the file what type configuration names. The engine checks no users: that is done here, see [Access].
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "clickhouse:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) == 1 && arguments[0] == "--version" {
		fmt.Println("ClickHouse server for tests, with the engine of libchdb")
		return nil
	}
	if len(arguments) != 2 || arguments[0] != "server" || !strings.HasPrefix(arguments[1], "--config-file=") {
		return errors.New("it is started with: server --config-file=FILE")
	}
	config, users, err := readConfiguration(strings.TrimPrefix(arguments[1], "--config-file="))
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	engineConfig, err := engineConfiguration(config)
	if err != nil {
		return err
	}
	access, err := OpenAccess(filepath.Join(config.Path, "access.json"), users)
	if err != nil {
		return err
	}
	engine, err := OpenEngine(filepath.Join(filepath.Dir(program), "libchdb.so"), engineConfig, config.Path)
	if err != nil {
		return err
	}
	defer engine.Close()
	return serve(config, &Server{engine: engine, access: access, spool: filepath.Join(config.Path, "tmp")})
}

// serve answers on the configured ports until the process is told to end.
func serve(config configuration, handler *Server) error {
	if err := os.MkdirAll(handler.spool, 0o700); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 30 * time.Second, IdleTimeout: 10 * time.Second}
	failed := make(chan error, 2)
	if config.HTTPPort != 0 {
		listener, err := listen(ctx, config.ListenHost, config.HTTPPort)
		if err != nil {
			return err
		}
		go func() { failed <- server.Serve(listener) }()
	}
	if config.HTTPSPort != 0 {
		settings, err := tlsSettings(config)
		if err != nil {
			return err
		}
		server.TLSConfig = settings
		listener, err := listen(ctx, config.ListenHost, config.HTTPSPort)
		if err != nil {
			return err
		}
		go func() { failed <- server.ServeTLS(listener, "", "") }()
	}
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return server.Shutdown(grace)
}

func listen(ctx context.Context, host string, port int) (net.Listener, error) {
	return (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
}

// tlsSettings are those of openSSL.server. verificationMode strict asks for a client certificate of the authority.
func tlsSettings(config configuration) (*tls.Config, error) {
	files := config.TLS
	settings := &tls.Config{
		// The files are read at each handshake, so that replaced ones count, as ClickHouse reloads them.
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(files.Certificate, files.Key)
			return &pair, err
		},
	}
	if files.Verification == "strict" {
		content, err := os.ReadFile(files.CA)
		if err != nil {
			return nil, err
		}
		settings.ClientCAs = x509.NewCertPool()
		if !settings.ClientCAs.AppendCertsFromPEM(content) {
			return nil, fmt.Errorf("%s has no certificate in it", files.CA)
		}
		settings.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return settings, nil
}
