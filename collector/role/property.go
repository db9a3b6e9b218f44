package role

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/collector/audit"
	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/ingest"
	"github.com/weir-dev/weir/collector/quality"
	"github.com/weir-dev/weir/collector/query"
	"github.com/weir-dev/weir/collector/server"
	"github.com/weir-dev/weir/collector/session"
	"github.com/weir-dev/weir/collector/sources"
	"github.com/weir-dev/weir/collector/stream"
)

// property is one Property in this process: its settings as last accepted, and what serves it. The settings are
// changed by [process.reload] alone.
type property struct {
	directory string
	options   Options
	// watcher is for all but the ledger of erasures, ledgerWatcher for that.
	watcher, ledgerWatcher *config.Watcher
	settings

	client   *stream.Client
	stream   *stream.Stream
	reading  *stream.Stream     // for query: with what tells whose an event is, as long as that is kept
	appender *stream.Appender   // not for query alone
	rejected *stream.Rejections // not for query alone
	tally    *quality.Tally     // not for query alone
	engines  *engines           // only for query
	watch    *watch             // only for query
	ledger   *ledger
	// historyMetrics are those of a history that is asked: only for query.
	historyMetrics *historyMetrics
	// usedKeys and usedTokens are told which of them are used: of collect and of query, where acts are written down.
	usedKeys, usedTokens *audit.FirstUses
	// reached is set once Redis has answered.
	reached atomic.Bool
}

// settings are what the roles need of a configuration directory.
type settings struct {
	config   config.Property
	redis    config.Redis
	keys     []auth.Credential   // only for collect
	signing  map[string][]string // only for collect
	tokens   []auth.Credential   // only for query
	sessions []session.Key       // only for query
	told     config.Settings     // only for query
	console  auth.Verifier       // only for query
	// history is how the history is reached; nil where there is none, or none that this process reaches.
	history  *config.ClickHouse
	location *time.Location
}

// open loads a property and connects it with its Redis. It does not wait for that: the roles do.
func open(directory string, o Options, registerer prometheus.Registerer) (*property, error) {
	p := &property{directory: directory, options: o, watcher: config.NewWatcher(directory), ledgerWatcher: config.NewLedgerWatcher(directory)}
	var err error
	if p.settings, err = p.load(); err != nil {
		return nil, fmt.Errorf("configuration in %s: %w", directory, err)
	}
	p.setLogLevel()
	erased, err := config.LoadLedger(directory)
	if err != nil {
		return nil, fmt.Errorf("configuration in %s: %w", directory, err)
	}
	if p.client, err = stream.Dial(p.redis.URL, stream.DialOptions{TLS: p.redis.TLS}); err != nil {
		return nil, fmt.Errorf("%s: %w", p, err)
	}
	metrics, err := stream.NewMetrics(prometheus.WrapRegistererWith(p.labels(), registerer))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", p, err), p.client.Close())
	}
	p.client.Observe(metrics)
	p.stream = p.client.Stream(p.config.Namespace, p.config.Name)
	p.reading = p.stream.Opening(wire.Identity)
	p.ledger = newLedger(p.String(), erased)
	if o.has(Collect) || o.has(Deliver) { // which stores the orders that shops' webhooks have missed
		p.appender = stream.NewAppender(p.stream, stream.AppenderOptions{Window: p.config.DeduplicationWindow(), JoinedFor: p.config.Retention.JoinedFor(), Logger: o.Logger.With("property", p.String()), Metrics: metrics})
		p.rejected = stream.NewRejections(p.stream, o.Logger.With("property", p.String()))
		p.tally = quality.NewTally()
	}
	if o.has(Collect) && o.Audit != nil {
		p.usedKeys = audit.NewFirstUses(p.String(), o.Audit, p.stream.KeyUses(), o.Logger.With("property", p.String()))
	}
	if o.has(Query) && o.Audit != nil {
		p.usedTokens = audit.NewFirstUses(p.String(), o.Audit, p.stream.TokenUses(), o.Logger.With("property", p.String()))
	}
	if o.has(Query) {
		err := p.openEngines(prometheus.WrapRegistererWith(p.labels(), registerer))
		if err == nil {
			p.watch, err = newWatch(p, prometheus.WrapRegistererWith(p.labels(), registerer))
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", p, err), p.client.Close())
		}
	}
	return p, nil
}

// setLogLevel has the process log what the property asks for.
func (p *property) setLogLevel() {
	if p.options.LogLevel != nil {
		p.options.LogLevel.Set(p.config.LogLevel)
	}
}

// String returns namespace/name.
func (p *property) String() string { return p.config.Namespace + "/" + p.config.Name }

// labels tell the property's metrics from those of others in this process.
func (p *property) labels() prometheus.Labels {
	return prometheus.Labels{"namespace": p.config.Namespace, "property": p.config.Name}
}

// load reads the settings as the files have them now, all or nothing.
func (p *property) load() (loaded settings, err error) {
	if loaded.config, err = config.Load(p.directory); err != nil {
		return settings{}, err
	}
	if loaded.redis, err = config.LoadRedis(p.directory); err != nil {
		return settings{}, err
	}
	if p.options.has(Deliver) {
		if loaded.config.Egress, err = config.LoadEgress(p.directory, loaded.config.Egress); err != nil {
			return settings{}, err
		}
	}
	if p.options.has(Collect) {
		if loaded.keys, err = config.LoadAPIKeys(p.directory); err != nil {
			return settings{}, err
		}
		loaded.signing = p.signingSecrets(loaded.config.Sources)
	}
	if p.options.has(Query) {
		if loaded.tokens, err = config.LoadAccessTokens(p.directory); err != nil {
			return settings{}, err
		}
		loaded.sessions = p.sessionKeys()
		if loaded.told, err = config.LoadSettings(p.directory); err != nil {
			return settings{}, err
		}
		if loaded.console, err = config.LoadConsole(p.directory); err != nil {
			return settings{}, err
		}
		if loaded.history, err = p.loadHistory(loaded.config.History); err != nil {
			return settings{}, err
		}
	}
	if loaded.location, err = time.LoadLocation(loaded.config.TimeZone); err != nil {
		return settings{}, err
	}
	return loaded, nil
}

// loadHistory reads how a history is reached; nil where there is none, or where the pod has not been told yet how.
func (p *property) loadHistory(history *config.History) (*config.ClickHouse, error) {
	if history == nil {
		return nil, nil
	}
	how, found, err := config.LoadClickHouse(p.directory)
	if err != nil || !found {
		return nil, err
	}
	how.Cluster = history.Cluster
	return &how, nil
}

// signingSecrets reads what the sources' webhooks are verified with. One without a Secret is refused until it has one,
// and the others go on.
func (p *property) signingSecrets(list []sources.Source) map[string][]string {
	secrets := map[string][]string{}
	for _, source := range list {
		credentials, err := config.SourceCredentials(p.directory, source.Name)
		if secrets[source.Name] = strings.Fields(credentials[sources.SigningSecret]); len(secrets[source.Name]) == 0 {
			p.options.Logger.Error("a source is refused until its Secret has the key", "property", p.String(), "source", source.Name, "key", sources.SigningSecret, "error", err)
		}
	}
	return secrets
}

// sessionKeys reads what seals people's sessions. Where that is broken nobody is signed in, and tokens go on being taken.
func (p *property) sessionKeys() []session.Key {
	keys, err := config.LoadSessionKeys(p.directory)
	if err != nil {
		p.options.Logger.Error("nobody can sign in to the page until the keys of sessions can be read", "property", p.String(), "error", err)
	}
	return keys
}

func (p *property) collectTenant() ingest.Tenant {
	return ingest.Tenant{
		Property: p.config, Keys: p.keys, SigningSecrets: p.signing, Appender: p.appender, Limiter: p.stream, Rejections: p.rejected, Tally: p.tally,
		Suppression: p.ledger, Eraser: stream.ErasureRequester{Stream: p.stream}, FirstUses: p.usedKeys,
	}
}

func (p *property) queryTenant() query.Tenant {
	engine := p.engines.now()
	p.watch.serve(&p.settings)
	return query.Tenant{
		Property: p.config, Location: p.location, Tokens: p.tokens, Engine: engine, Replayer: stream.ReplayRequester{Stream: p.stream}, Reach: reach{engine, p.stream},
		Eraser: stream.ErasureRequester{Stream: p.stream}, Events: engine.events, Records: engine.records, Rejections: readers{p.stream, p.ledger}, Shadows: readers{p.stream, p.ledger}, FirstUses: p.usedTokens,
		Settings: p.told, SessionKeys: p.sessions, Console: p.console,
		Quality: p.watch, States: p.stream, Tester: stream.TestRequester{Stream: p.stream},
	}
}

// checks say when the property can be served. A process that only reads needs no Redis for that once its view has
// caught up, or its history was reached: it goes on answering from what it has. One that collects needs it to begin with. Nobody sends requests to
// one that only delivers: its readiness tells people, and holds up a rollout to pods that do not reach Redis. None is ready
// before it knows who has been erased.
func (p *property) checks() []server.Check {
	checks := []server.Check{{Name: "ledger " + p.String(), Ready: p.ledger.ready}}
	if p.options.has(Collect) || p.options.has(Deliver) || p.options.has(Archive) {
		checks = append(checks, server.Check{Name: "redis " + p.String(), Ready: p.reachRedis})
	}
	if p.engines != nil {
		checks = append(checks, server.Check{Name: "view " + p.String(), Ready: func(context.Context) error { return p.engines.now().ready() }})
	}
	return checks
}

// reachRedis says whether Redis answers. A process that collects and has reached it once stays ready: all collectors
// lose Redis at the same time, and without a ready one senders would get a balancer's error in place of the answer
// that they know, 503 with Retry-After, and go on getting it after Redis is back.
func (p *property) reachRedis(ctx context.Context) error {
	if p.options.has(Collect) && p.reached.Load() {
		return nil
	}
	err := p.client.Ping(ctx)
	if err == nil {
		p.reached.Store(true)
	}
	return err
}

// answering says whether the property's questions are answered, where they are asked here.
func (p *property) answering() bool { return p.engines == nil || p.engines.now().ready() == nil }

// close flushes what is still to be appended and closes the connection.
func (p *property) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	var errs []error
	if p.appender != nil {
		errs = append(errs, p.appender.Close(ctx), p.rejected.Close(ctx))
	}
	errs = append(errs, p.usedKeys.Close(ctx), p.usedTokens.Close(ctx))
	return errors.Join(append(errs, p.client.Close())...)
}
