// Command collector is the tenant pods' binary: it serves one Property in the roles that it is given. `collector import` is what a
// Job runs beside them to bring a past into the Property's history, `collector backup` and `collector restore` what a CronJob and a
// Job of whoever runs Redis do.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"
	_ "time/tzdata" // the image has no zone files

	"github.com/KimMachineGun/automemlimit/memlimit"
	_ "golang.org/x/crypto/x509roots/fallback" // nor the certificates of authorities

	"github.com/weir-dev/weir/collector/audit"
	"github.com/weir-dev/weir/collector/backup"
	"github.com/weir-dev/weir/collector/history/imports"
	"github.com/weir-dev/weir/collector/role"
	"github.com/weir-dev/weir/collector/server"
	"github.com/weir-dev/weir/collector/stream"
)

// version is set when the binary is linked.
var version = "dev"

// redisPatience is for how long a Job's pod tries to reach Redis.
const redisPatience = time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	// GOMEMLIMIT goes before the container's limit, of which a tenth is left for what the runtime does not count.
	if _, err := memlimit.Set(); err != nil {
		fmt.Fprintln(os.Stderr, "collector: the container's memory limit is unknown, so that no memory limit is kept to:", err)
	}
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is the program without its globals; it returns the exit code. The audit log goes to stdout, the log to stderr.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 {
		surroundings := backup.Environment{Stdin: os.Stdin, Stdout: stdout, Stderr: stderr, Getenv: os.Getenv, Version: version, Patience: redisPatience}
		stream.RouteLogs(slog.New(slog.DiscardHandler)) // what fails the commands say
		switch args[0] {
		case "import":
			return imports.Command(ctx, "collector import", args[1:], os.Stdin, stdout, stderr)
		case "backup":
			return backup.Command(ctx, "collector backup", args[1:], surroundings)
		case "restore":
			return backup.RestoreCommand(ctx, "collector restore", args[1:], surroundings)
		}
	}
	var options role.Options
	var roles, directory, listen, metricsListen string
	flags := flag.NewFlagSet("collector", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&roles, "roles", "", "the `ROLES` to serve, with commas between: collect, deliver, query, archive")
	flags.StringVar(&directory, "config-dir", "/etc/weir", "`DIRECTORY` with the Property's rendered configuration")
	flags.StringVar(&listen, "listen", ":8080", "`ADDRESS` for collecting and reading; not used by deliver alone")
	flags.StringVar(&metricsListen, "metrics-listen", ":9090", "`ADDRESS` for /metrics, /livez and /readyz")
	flags.StringVar(&options.Consumer, "consumer", "", "what tells this deliverer from the Property's others, `NAME`; the same one after a restart (default: the host name)")
	flags.DurationVar(&options.DrainDelay, "drain-delay", 0, "how long to go on serving after readiness has turned false, so that load balancers notice")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	if flags.NArg() > 0 {
		fmt.Fprintf(stderr, "collector: %q is no flag; -h lists them\n", flags.Arg(0))
		return 2
	}

	var err error
	if options.Roles, err = role.Parse(roles); err != nil {
		fmt.Fprintln(stderr, "collector: --roles:", err)
		return 2
	}
	options.Directories = []string{directory}
	options.LogLevel = new(slog.LevelVar)
	options.Logger = slog.New(slog.NewJSONHandler(stderr, &slog.HandlerOptions{Level: options.LogLevel}))
	options.Audit = audit.New(stdout, options.Logger, time.Now)
	stream.RouteLogs(options.Logger)
	options.Logger.InfoContext(ctx, "collector starts", "version", version, "roles", roles)
	if err := serve(ctx, options, listen, metricsListen); err != nil {
		fmt.Fprintln(stderr, "collector:", err)
		return 1
	}
	return 0
}

// serve opens the listeners that the roles need and runs the roles. A pod's name is its host name, and with it
// what tells one deliverer from another.
func serve(ctx context.Context, o role.Options, listen, metricsListen string) (err error) {
	if o.Consumer == "" {
		if o.Consumer, err = os.Hostname(); err != nil {
			return fmt.Errorf("host name: %w", err)
		}
	}
	if slices.Contains(o.Roles, role.Collect) || slices.Contains(o.Roles, role.Query) {
		if o.Listener, err = server.Listen(ctx, listen, "--listen"); err != nil {
			return err
		}
	}
	if o.MetricsListener, err = server.Listen(ctx, metricsListen, "--metrics-listen"); err != nil {
		return err
	}
	return role.Run(ctx, o)
}
