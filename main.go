// Command weir serves Property resources: `weir operator` those of a cluster, `weir dev` those of a file on this
// machine, without a cluster.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	_ "golang.org/x/crypto/x509roots/fallback" // the image has no files with the certificates of authorities
)

// version is set when the binary is linked.
var version = "dev"

const usage = `Weir collects a website's events, delivers them to ad and analytics platforms, and answers questions about them.

Usage:
  weir operator       serve the Property resources of a cluster; flags without a command mean this, too
  weir dev -f FILE…   serve the Property resources in FILE… on this machine, without a cluster
  weir acl-file       prepare the ACL file of the Redis in Weir's Helm chart, before that starts
  weir check          look whether an installation's operator and Redis are as they should be, for helm test
  weir version        print the version

"weir COMMAND -h" lists a command's flags.
`

func main() {
	// The second signal is left to the runtime: whoever does not want to wait for the drain presses Ctrl-C again.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is the program without its globals. It returns the exit code: 0, 1 for what went wrong while serving,
// 2 for what was asked wrongly.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(stderr, usage)
		return 2
	}
	if strings.HasPrefix(args[0], "-") && !slices.Contains([]string{"-h", "-help", "--help", "-version", "--version"}, args[0]) {
		args = append([]string{"operator"}, args...)
	}
	switch args[0] {
	case "operator":
		return exitCode(operator(ctx, args[1:], stdout, stderr), stderr)
	case "dev":
		return exitCode(dev(ctx, args[1:], stdout, stderr), stderr)
	case "acl-file":
		return exitCode(aclFile(args[1:], stdout), stderr)
	case "check":
		return exitCode(check(ctx, args[1:], stdout), stderr)
	case "version", "-version", "--version":
		fmt.Fprintln(stdout, version)
		return 0
	case "help", "-h", "-help", "--help":
		fmt.Fprint(stdout, usage)
		return 0
	default:
		fmt.Fprintf(stderr, "weir: unknown command %q; the commands are operator, dev, acl-file, check and version\n", args[0])
		return 2
	}
}

// exitCode reports err, one line per fault, and says how the program ends for it.
func exitCode(err error, stderr io.Writer) int {
	var faults faultList
	switch {
	case err == nil || errors.Is(err, context.Canceled) || errors.Is(err, flag.ErrHelp):
		return 0
	case errors.As(err, &faults):
		for _, fault := range faults {
			fmt.Fprintln(stderr, "weir:", fault)
		}
		return 2
	default:
		fmt.Fprintln(stderr, "weir:", err)
		return 1
	}
}

// faultList is what is wrong with the input: one line each, naming where and what would be right.
type faultList []string

// Error joins the faults.
func (f faultList) Error() string {
	return fmt.Sprintf("%d faults, the first: %s", len(f), f[0])
}
