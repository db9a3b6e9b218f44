package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path"
	"slices"
	"time"
	_ "time/tzdata" // a machine may have no zone files

	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/redisserver"
	"github.com/weir-dev/weir/collector/role"
	"github.com/weir-dev/weir/collector/server"
	"github.com/weir-dev/weir/collector/stream"
	"github.com/weir-dev/weir/controllers/resources"
)

// redisPatience is how long a Redis may take to answer at the start, and to end when we do.
const redisPatience = 10 * time.Second

// dev serves the Properties of some files until ctx ends. It renders them to the same files that the operator
// mounts into pods, and runs the pods' roles on those.
func dev(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	options, err := parseDevFlags(args, stdout)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	properties, err := loadProperties(ctx, options.files)
	if err != nil {
		return err
	}
	logger := slog.New(slog.NewTextHandler(stderr, nil))
	stream.RouteLogs(logger)

	listener, metricsListener, err := options.open(ctx)
	if err != nil {
		return err
	}
	defer closeAll(listener, metricsListener) // the servers close them too; what counts is that nobody forgets
	state, err := openStateDir(options.stateDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, state.Close()) }()

	redisURL := options.redisURL
	if redisURL == "" && slices.ContainsFunc(properties, func(p *loadedProperty) bool { return p.redisURL == "" }) {
		private, startErr := startRedis(ctx, state.redisDir(), logger)
		if startErr != nil {
			return startErr
		}
		defer func() {
			limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), redisPatience)
			defer cancel()
			err = errors.Join(err, private.Stop(limit))
		}()
		redisURL = private.URL()
	}

	credentials, err := state.readCredentials()
	if err != nil {
		return err
	}
	credentials = credentials.renewed(properties, "http://"+reachable(listener.Addr()))
	directories, err := options.render(ctx, state, properties, credentials, redisURL)
	if err != nil {
		return err
	}
	consumer, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("host name: %w", err)
	}
	var notReady error
	err = role.Run(ctx, role.Options{
		Roles: options.roles, Directories: directories, Listener: listener, MetricsListener: metricsListener,
		Consumer: consumer, Logger: logger,
		Ready: func() {
			if notReady = state.writeCredentials(credentials); notReady != nil {
				return
			}
			fmt.Fprintf(stdout, "listening on %s; keys and tokens are in %s. Try:\n\n%s\n",
				credentials.Properties[0].CollectURL, state.credentialsFile(), credentials.Properties[0].curlLines())
		},
	})
	return errors.Join(notReady, err)
}

// open takes the ports before anything is started, so that a port in use costs nothing.
func (o *devOptions) open(ctx context.Context) (listener, metrics net.Listener, err error) {
	if listener, err = server.Listen(ctx, o.listen, "--listen"); err != nil || o.metricsListen == "" {
		return listener, nil, err
	}
	if metrics, err = server.Listen(ctx, o.metricsListen, "--metrics-listen"); err != nil {
		return nil, nil, errors.Join(err, listener.Close())
	}
	return listener, metrics, nil
}

func closeAll(listeners ...net.Listener) {
	for _, listener := range listeners {
		if listener != nil {
			_ = listener.Close() // closed already, where all went well
		}
	}
}

// startRedis runs a Redis of our own that loses nothing: append-only, on the disk before it answers.
func startRedis(ctx context.Context, directory string, logger *slog.Logger) (*redisserver.Server, error) {
	binary, err := redisserver.Find(ctx, logger)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return nil, err
	}
	return redisserver.Start(ctx, binary, redisserver.Options{Dir: directory, Persist: true, Fsync: redisserver.FsyncAlways})
}

// render makes each property's Redis ready and writes its configuration. It returns the directories.
func (o *devOptions) render(ctx context.Context, state *stateDir, properties []*loadedProperty, credentials devCredentials, redisURL string) ([]string, error) {
	var directories, prepared []string
	for _, p := range properties {
		address, source := redisURL, "--redis"
		if p.redisURL != "" && o.redisURL == "" {
			address, source = p.redisURL, fmt.Sprintf("%s: Property %s: spec.redis", p.file, p.id())
		}
		if !slices.Contains(prepared, address) {
			if err := prepareRedis(ctx, address); err != nil {
				return nil, fmt.Errorf("%s: %w", source, err)
			}
			prepared = append(prepared, address)
		}
		files, err := resources.PodConfig(p.Property, credentials.property(p.Name).rendered(), resources.Options{
			EgressAllowCIDRs: o.egress, PlatformEndpoints: o.endpoints, RedisURL: address,
		})
		if err != nil {
			return nil, fmt.Errorf("%s: Property %s: %w", p.file, p.id(), err)
		}
		for platform, keys := range p.platformSecrets {
			for key, value := range keys {
				files[path.Join(config.PlatformsDir, platform, key)] = []byte(value)
			}
		}
		directory, err := state.writePod(p.Namespace, p.Name, files)
		if err != nil {
			return nil, err
		}
		directories = append(directories, directory)
	}
	return directories, nil
}

// prepareRedis checks that a Redis answers and will not forget, and loads the function library into it.
func prepareRedis(ctx context.Context, address string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, redisPatience)
	defer cancel()
	client, err := stream.Dial(address)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	if err := client.Check(ctx); err != nil {
		return err
	}
	return client.Load(ctx)
}

// reachable returns the address under which this machine reaches a listener.
func reachable(address net.Addr) string {
	tcp := address.(*net.TCPAddr) // what server.Listen opens
	if tcp.IP.IsUnspecified() {
		return fmt.Sprintf("127.0.0.1:%d", tcp.Port)
	}
	return tcp.String()
}
