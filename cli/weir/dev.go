package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // a machine may have no zone files

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/audit"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/role"
	"github.com/weir-dev/weir/collector/server"
	"github.com/weir-dev/weir/collector/stream"
	"github.com/weir-dev/weir/controllers/resources"
)

// dev serves the Properties of some files until ctx ends. It renders them to the same files that the operator
// mounts into pods, and runs the pods' roles on those.
func dev(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	options, err := parseDevFlags(args, stdout)
	if err != nil {
		return err
	}
	properties, err := loadProperties(ctx, options.files)
	if err != nil {
		return err
	}
	if err := options.findHistories(properties); err != nil {
		return err
	}
	logger := slog.New(slog.NewTextHandler(stderr, nil))
	stream.RouteLogs(logger)
	sayLeftAlone(logger, properties)

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

	fakes, err := options.fakePlatforms(ctx, properties, stdout, logger)
	if err != nil {
		return err
	}
	defer fakes.close()

	redis := options.redis
	if redis.URL == "" && slices.ContainsFunc(properties, func(p *loadedProperty) bool { return p.redis.URL == "" }) {
		private, startErr := startRedis(ctx, state.redisDir(), logger)
		if startErr != nil {
			return startErr
		}
		defer func() { err = errors.Join(err, private.stop(ctx)) }()
		redis.URL, ctx = private.URL(), private.whileAlive(ctx)
	}
	clickHouse := options.clickHouse
	if clickHouse.URL == ownClickHouse {
		private, alive, startErr := startClickHouse(ctx, state.clickHouseDir(), logger)
		if startErr != nil {
			return startErr
		}
		defer func() { err = errors.Join(err, private.stop(ctx)) }()
		clickHouse.URL, ctx = private.URL(""), alive
	}
	err = options.serve(ctx, devRun{
		state: state, properties: properties, redis: redis, clickHouse: clickHouse, listener: listener, metricsListener: metricsListener,
		logger: logger, stdout: stdout,
	})
	if cause := context.Cause(ctx); err == nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return err
}

// sayLeftAlone says what of properties there is no operator for, where somebody could take it to be in force.
func sayLeftAlone(logger *slog.Logger, properties []*loadedProperty) {
	for _, p := range properties {
		if _, there := p.Annotations[v1alpha1.AnnotationPaused]; there {
			logger.Warn("an annotation is left alone: it is for an operator", "annotation", v1alpha1.AnnotationPaused, "property", p.id())
		}
		if p.Spec.DedicatedRedis() != nil {
			logger.Warn("spec.redis.dedicated is left alone: no Redis is made for a Property, so it is in that of the others", "property", p.id())
		}
	}
}

// devRun is what one run has to work with.
type devRun struct {
	state                     *stateDir
	properties                []*loadedProperty
	redis                     config.Redis
	clickHouse                config.ClickHouse
	listener, metricsListener net.Listener
	logger                    *slog.Logger
	stdout                    io.Writer
}

// serve renders the properties and runs the roles on them until ctx ends.
func (o *devOptions) serve(ctx context.Context, run devRun) (err error) {
	before, err := run.state.readCredentials()
	if err != nil {
		return err
	}
	acts, err := run.state.openAudit()
	if err != nil {
		return fmt.Errorf("--state-dir: %w", err)
	}
	defer func() { err = errors.Join(err, acts.Close()) }()
	auditLog := audit.New(acts, run.logger, time.Now)
	credentials := before.renewed(run.properties, "http://"+reachable(run.listener.Addr()))
	redises := &redisSet{logger: run.logger}
	defer func() { err = errors.Join(err, redises.close()) }()
	erasures := &devErasures{logger: run.logger, audit: auditLog}
	directories, err := o.render(ctx, run, credentials, redises, erasures)
	if err != nil {
		return err
	}
	if err := o.demo.fill(ctx, directories, run.stdout); err != nil {
		return err
	}
	consumer, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("host name: %w", err)
	}
	keeping, stop := context.WithCancel(ctx)
	defer stop()
	go redises.keepLibraries(keeping)
	go erasures.keep(keeping)
	return role.Run(ctx, role.Options{
		Roles: o.roles, Directories: directories, Listener: run.listener, MetricsListener: run.metricsListener,
		Consumer: consumer, Logger: run.logger, Audit: auditLog, Local: credentials.local(),
		Ready: func() error {
			if err := run.state.writeCredentials(credentials); err != nil {
				return fmt.Errorf("--state-dir: %w", err)
			}
			auditCredentials(ctx, auditLog, before, credentials)
			first := credentials.Properties[0]
			_, err := fmt.Fprintf(run.stdout, "listening on %s; keys and tokens are in %s.%s\n%s",
				first.CollectURL, run.state.credentialsFile(), first.curlLines(o.roles), credentials.pageLines(o.roles))
			return err
		},
	})
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

// render makes each property's Redis ready, its ledger of erasures too, and writes its configuration. It returns the directories.
func (o *devOptions) render(ctx context.Context, run devRun, credentials devCredentials, redises *redisSet, erasures *devErasures) ([]string, error) {
	if err := run.state.removePods(); err != nil {
		return nil, fmt.Errorf("--state-dir: %w", err)
	}
	sessionKeys, err := run.state.sessionKeys()
	if err != nil {
		return nil, fmt.Errorf("--state-dir: %w", err)
	}
	histories := o.histories(run.state, run.clickHouse)
	var directories []string
	for _, p := range run.properties {
		redis, source := run.redis, "--redis"
		if p.redis.URL != "" && o.redis.URL == "" {
			redis, source = p.redis, fmt.Sprintf("%s: Property %s: spec.redis", p.file, p.id())
		}
		if err := redises.prepare(ctx, redis); err != nil {
			return nil, fmt.Errorf("%s: %w", source, err)
		}
		own := credentials.property(p.id())
		files, err := resources.PodConfig(p.Property, own.rendered(), resources.Options{
			EgressAllowCIDRs: o.egress, TrustedProxyCIDRs: o.proxies, WithholdUnsaid: o.withholdUnsaid, PlatformEndpoints: o.endpoints, Redis: redis,
			CollectURL: own.CollectURL, APIURL: strings.TrimSuffix(own.BaseURL, "/api/v1"), SessionKeys: sessionKeys,
		})
		if err != nil {
			return nil, fmt.Errorf("%s: Property %s: %w", p.file, p.id(), err)
		}
		for directory, secrets := range map[string]map[string]map[string]string{config.PlatformsDir: p.platformSecrets, config.SourcesDir: p.sourceSecrets} {
			for name, keys := range secrets {
				for key, value := range keys {
					files[path.Join(directory, name, key)] = []byte(value)
				}
			}
		}
		if err := histories.add(ctx, p, files); err != nil {
			return nil, err
		}
		directory, err := run.state.writePod(p.Namespace, p.Name, files)
		if err != nil {
			return nil, err
		}
		if err := erasures.add(ctx, redises.clients[redis], p, run.state.ledgerFile(p.Namespace, p.Name), directory); err != nil {
			return nil, fmt.Errorf("%s: Property %s: the ledger of erasures: %w", p.file, p.id(), err)
		}
		directories = append(directories, directory)
	}
	return directories, nil
}

// reachable returns the address under which this machine reaches a listener.
func reachable(address net.Addr) string {
	tcp := address.(*net.TCPAddr) // what server.Listen opens
	if tcp.IP.IsUnspecified() {
		return fmt.Sprintf("127.0.0.1:%d", tcp.Port)
	}
	return tcp.String()
}
