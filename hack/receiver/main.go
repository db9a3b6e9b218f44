// Command receiver is the customer's end of a Webhook platform, for `make run`: it takes what Weir delivers,
// verifies it as a careful customer would, and prints one line per event.
//
//	receiver [--listen ADDRESS] [--ready-file FILE]
//
// The signing secret (whsec_…) is read from the environment variable WEIR_WEBHOOK_SECRET. It is verified by the
// reference implementation of Standard Webhooks, so that Weir's signing is not judged by its own reading of
// that specification.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/weir-dev/weir/collector/server"
)

// secretVariable is an environment variable rather than a flag: flags show in the list of processes.
const secretVariable = "WEIR_WEBHOOK_SECRET"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Getenv(secretVariable), os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "receiver:", err)
		os.Exit(1) //nolint:gocritic // stop has nothing to give back at the process's end
	}
}

// run serves until ctx is done. Where --ready-file is given, it creates that file once it accepts connections.
func run(ctx context.Context, args []string, secret string, out io.Writer) error {
	flags := flag.NewFlagSet("receiver", flag.ContinueOnError)
	address := flags.String("listen", "127.0.0.1:9099", "`ADDRESS` to receive on")
	readyFile := flags.String("ready-file", "", "`FILE` to create once connections are accepted")
	if err := flags.Parse(args); err != nil {
		return err
	}
	verifier, err := newVerifier(secret)
	if err != nil {
		return err
	}
	listener, err := server.Listen(ctx, *address, "--listen")
	if err != nil {
		return err
	}
	receiver := &http.Server{Handler: &handler{verifier: verifier, out: out}, ReadHeaderTimeout: 5 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- receiver.Serve(listener) }()

	fmt.Fprintf(out, "receiver: listening on http://%s for the samples' webhook\n", listener.Addr())
	if *readyFile != "" {
		if err := os.WriteFile(*readyFile, nil, 0o600); err != nil {
			return errors.Join(err, receiver.Close())
		}
	}
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return receiver.Shutdown(grace)
}

// newVerifier makes the judge of signatures. Its errors never repeat the secret.
func newVerifier(secret string) (*standardwebhooks.Webhook, error) {
	if secret == "" {
		return nil, fmt.Errorf("%s must hold the platform's signing secret, whsec_ and base64", secretVariable)
	}
	verifier, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		return nil, fmt.Errorf("%s is no signing secret; it must be whsec_ and base64", secretVariable)
	}
	return verifier, nil
}
