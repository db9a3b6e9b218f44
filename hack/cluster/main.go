// Command cluster makes a Kubernetes node of this machine, for demonstrations and end-to-end tests: see hack/cluster.sh for how
// it is used, and package node for how it is made.
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
	"path/filepath"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/weir-dev/weir/hack/cluster/ingress"
	"github.com/weir-dev/weir/hack/cluster/netpol"
	"github.com/weir-dev/weir/hack/cluster/node"
	"github.com/weir-dev/weir/hack/cluster/volumes"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1) //nolint:gocritic // stop has nothing to give back at the process's end
	}
}

const usage = `commands: up, down, load ARCHIVE…, status, images, logs [-n LINES] [PROGRAM…], start|stop|restart|kill PROGRAM…, exec COMMAND…, ingress-manifest, kubeconfig`

// run is the program without its globals.
func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 {
		return errors.New(usage)
	}
	command, args := args[0], args[1:]
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	ctrl.SetLogger(logr.FromSlogHandler(logger.Handler()))
	if agent, ok := agents[command]; ok {
		return agent(ctx, args, logger)
	}
	it, args, err := parseNode(command, args, out)
	if err != nil {
		return err
	}
	switch command {
	case "up":
		it.Images = args
		if err := it.Up(ctx); err != nil {
			return err
		}
		fmt.Fprintf(out, "export KUBECONFIG=%s\n", it.Kubeconfig())
		return nil
	case "down":
		return it.Down(ctx)
	case "load":
		return it.Import(ctx, args...)
	case "status":
		return status(ctx, it, out)
	case "images":
		names, err := it.ImageNames(ctx)
		fmt.Fprintln(out, strings.Join(names, "\n"))
		return err
	case "logs":
		return logs(it, args)
	case "start", "stop", "restart", "kill":
		for _, program := range args {
			if err := it.Control(ctx, command, program); err != nil {
				return err
			}
		}
		return nil
	case "ingress-manifest":
		manifest, err := node.IngressManifest()
		fmt.Fprint(out, manifest)
		return err
	case "exec":
		return it.Exec(ctx, args...)
	case "kubeconfig":
		fmt.Fprintln(out, it.Kubeconfig())
		return nil
	default:
		return fmt.Errorf("there is no command %q; %s", command, usage)
	}
}

// parseNode reads the flags that say which node is meant; what follows them belongs to the command.
func parseNode(command string, args []string, out io.Writer) (*node.Node, []string, error) {
	cache := os.Getenv("WEIR_CACHE")
	if cache == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return nil, nil, fmt.Errorf("no cache directory; WEIR_CACHE can name one: %w", err)
		}
		cache = filepath.Join(base, "weir")
	}
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	flags := flag.NewFlagSet("cluster "+command, flag.ContinueOnError)
	programs := flags.String("programs", "", "`FOLDER` with etcd, coredns and Kubernetes' programs, as hack/kube.sh prints it")
	flags.StringVar(&cache, "cache", cache, "`FOLDER` for packages, images and the node's state")
	if err := flags.Parse(args); err != nil {
		return nil, nil, err
	}
	if cache, err = filepath.Abs(cache); err != nil {
		return nil, nil, err
	}
	return &node.Node{State: filepath.Join(cache, "node"), Cache: cache, Programs: *programs, Self: self, Out: out}, flags.Args(), nil
}

// status prints the node's programs.
func status(ctx context.Context, it *node.Node, out io.Writer) error {
	list, err := it.Statuses(ctx)
	if err != nil {
		return err
	}
	for _, one := range list {
		state := "stopped"
		if one.PID != 0 {
			state = fmt.Sprintf("running, process %d", one.PID)
		}
		fmt.Fprintf(out, "%-24s %s, ended unasked %d times\n", one.Name, state, one.Crashes)
	}
	return nil
}

// logs is the command of that name.
func logs(it *node.Node, args []string) error {
	flags := flag.NewFlagSet("cluster logs", flag.ContinueOnError)
	lines := flags.Int("n", 20, "`LINES` of each log")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return it.Logs(*lines, flags.Args()...)
}

// agents are what this executable is inside the node.
var agents = map[string]func(context.Context, []string, *slog.Logger) error{
	"inside":  runInside,
	"ingress": runIngress,
	"netpol":  runNetpol,
	"volumes": runVolumes,
}

func runInside(_ context.Context, args []string, logger *slog.Logger) error {
	var root node.Root
	flags := flag.NewFlagSet("cluster inside", flag.ContinueOnError)
	flags.StringVar(&root.Folder, "root", "", "`FOLDER` that becomes the root file system")
	flags.StringVar(&root.Packages, "packages", "", "`FOLDER` with unpacked packages")
	flags.StringVar(&root.Programs, "programs", "", "`FOLDER` with Kubernetes' programs")
	flags.StringVar(&root.Self, "self", "", "this `EXECUTABLE`")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return node.Inside(root, os.Stdin, logger)
}

func runIngress(ctx context.Context, args []string, logger *slog.Logger) error {
	options := ingress.Options{}
	flags := flag.NewFlagSet("cluster ingress", flag.ContinueOnError)
	flags.StringVar(&options.Class, "class", "weir-node", "the IngressClass's `NAME`")
	flags.StringVar(&options.Address, "address", "", "`IP` that the Ingresses are reached at")
	flags.StringVar(&options.HTTP, "http", ":80", "`ADDRESS` for HTTP")
	flags.StringVar(&options.HTTPS, "https", ":443", "`ADDRESS` for HTTPS")
	flags.StringVar(&options.Health, "health", ":8081", "`ADDRESS` for /healthz and /readyz")
	config, err := agentConfig(flags, args)
	if err != nil {
		return err
	}
	return ingress.Run(ctx, config, options, logger)
}

func runNetpol(ctx context.Context, args []string, _ *slog.Logger) error {
	config, err := agentConfig(flag.NewFlagSet("cluster netpol", flag.ContinueOnError), args)
	if err != nil {
		return err
	}
	return netpol.Run(ctx, config)
}

func runVolumes(ctx context.Context, args []string, _ *slog.Logger) error {
	config, err := agentConfig(flag.NewFlagSet("cluster volumes", flag.ContinueOnError), args)
	if err != nil {
		return err
	}
	return volumes.Run(ctx, config, node.Volumes())
}

// agentConfig parses an agent's flags, and finds the API server: by a kubeconfig, or as a pod does.
func agentConfig(flags *flag.FlagSet, args []string) (*rest.Config, error) {
	kubeconfig := flags.String("kubeconfig", "", "`FILE` that leads to the API server; a pod needs none")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	return clientcmd.BuildConfigFromFlags("", *kubeconfig)
}
