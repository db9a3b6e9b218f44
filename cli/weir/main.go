// Command weir is for people: `weir dev` serves Property files on this machine, without a cluster, `weir import` brings the past of
// other systems into a Property's history, `weir backup` and `weir restore` move what Redis has of a Property, and `weir token` and
// `weir key` make tokens and keys for a Property in a cluster.
package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	_ "golang.org/x/crypto/x509roots/fallback" // a machine may have no files with the certificates of authorities

	"github.com/weir-dev/weir/cli/credentials"
	"github.com/weir-dev/weir/cli/flags"
	"github.com/weir-dev/weir/collector/backup"
	"github.com/weir-dev/weir/collector/stream"
)

// version is set when the binary is linked by make; `go install` leaves it to the module's version.
var version string

const usage = `Weir collects a website's events, delivers them to ad and analytics platforms, and answers questions about them.

Usage:
  weir dev -f FILE…               serve the Property resources in FILE… on this machine, without a cluster
  weir import --config DIR FILE…  bring the past of another system into a Property's history in ClickHouse
  weir backup --property P …      write all that Redis has of a Property into one file
  weir restore --property P FILE  put that into a Redis that has nothing of the Property
  weir token create NAME …        make an access token for a Property in a cluster
  weir key create NAME …          make an API key for a Property in a cluster
  weir version                    print the version

"weir COMMAND -h" lists a command's flags. In a cluster, Properties are served by weir-operator.
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
	var err error
	switch args[0] {
	case "dev":
		err = dev(ctx, args[1:], stdout, stderr)
	case "import":
		return importPast(ctx, args[1:], stdout, stderr)
	case "backup":
		return backup.Command(ctx, "weir backup", args[1:], surroundings(stdout, stderr))
	case "restore":
		return backup.RestoreCommand(ctx, "weir restore", args[1:], surroundings(stdout, stderr))
	case "token", "key":
		err = credentials.Command(ctx, args[0], args[1:], stdout, stderr)
	case "version", "-version", "--version":
		fmt.Fprintln(stdout, cmp.Or(version, moduleVersion()))
	case "help", "-h", "-help", "--help":
		fmt.Fprint(stdout, usage)
	default:
		err = flags.Errors{fmt.Sprintf("unknown command %q; the commands are dev, import, backup, restore, token, key and version", args[0])}
	}
	return flags.ExitCode("weir", err, stderr)
}

// surroundings are what backups use of them.
func surroundings(stdout, stderr io.Writer) backup.Environment {
	stream.RouteLogs(slog.New(slog.DiscardHandler)) // what fails the commands say
	return backup.Environment{Stdin: os.Stdin, Stdout: stdout, Stderr: stderr, Getenv: os.Getenv, Version: cmp.Or(version, moduleVersion())}
}

// moduleVersion is the version of the module that the program was built from, as `go install` notes it.
func moduleVersion() string {
	info, known := debug.ReadBuildInfo()
	if !known {
		return "dev"
	}
	return info.Main.Version
}
