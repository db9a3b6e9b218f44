// Command weir-operator serves the Property resources of a cluster. People's own command is cli/weir, and the tenants' pods
// run collector.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // the image has no zone files

	_ "golang.org/x/crypto/x509roots/fallback" // nor the certificates of authorities

	"github.com/weir-dev/weir/controllers/operator"
)

// version is set when the binary is linked.
var version = "dev"

func main() {
	// The second signal is left to the runtime: whoever does not want to wait presses Ctrl-C again.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(operator.Run(ctx, version, os.Args[1:], os.Stdout, os.Stderr))
}
