package role

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/ingest"
	"github.com/weir-dev/weir/collector/query"
	"github.com/weir-dev/weir/collector/server"
	"github.com/weir-dev/weir/collector/stream"
)

// property is one Property in this process: its configuration as last loaded, and what serves it. Its fields
// are changed by [process.reload] alone.
type property struct {
	directory string
	options   Options
	watcher   *config.Watcher

	config   config.Property
	keys     []auth.Credential
	tokens   []auth.Credential
	location *time.Location

	client   *stream.Client
	stream   *stream.Stream
	appender *stream.Appender // only for collect
	view     *analytics.View  // only for query
}

// open loads a property and connects it with its Redis. It does not wait for that: the roles do.
func open(directory string, o Options) (*property, error) {
	p := &property{directory: directory, options: o, watcher: config.NewWatcher(directory)}
	if err := p.load(); err != nil {
		return nil, fmt.Errorf("configuration in %s: %w", directory, err)
	}
	address, err := config.LoadRedisURL(directory)
	if err != nil {
		return nil, fmt.Errorf("configuration in %s: %w", directory, err)
	}
	if p.client, err = stream.Dial(address); err != nil {
		return nil, fmt.Errorf("%s: %w", p, err)
	}
	p.stream = p.client.Stream(p.config.Namespace, p.config.Name)
	if o.has(Collect) {
		p.appender = stream.NewAppender(p.stream, stream.AppenderOptions{Window: p.config.DeduplicationWindow(), Logger: o.Logger})
	}
	if o.has(Query) {
		p.view = analytics.NewView(analytics.Options{Property: p.String(), Currency: p.config.Currency, Logger: o.Logger})
	}
	return p, nil
}

// String returns namespace/name.
func (p *property) String() string { return p.config.Namespace + "/" + p.config.Name }

// load reads what the roles need of the configuration, all or nothing.
func (p *property) load() error {
	loaded, err := config.Load(p.directory)
	if err != nil {
		return err
	}
	var keys, tokens []auth.Credential
	if p.options.has(Collect) {
		if keys, err = config.LoadAPIKeys(p.directory); err != nil {
			return err
		}
	}
	if p.options.has(Query) {
		if tokens, err = config.LoadAccessTokens(p.directory); err != nil {
			return err
		}
	}
	location, err := time.LoadLocation(loaded.TimeZone)
	if err != nil {
		return err
	}
	p.config, p.keys, p.tokens, p.location = loaded, keys, tokens, location
	return nil
}

func (p *property) collectTenant() ingest.Tenant {
	return ingest.Tenant{Property: p.config, Keys: p.keys, Appender: p.appender, Limiter: p.stream}
}

func (p *property) queryTenant() query.Tenant {
	return query.Tenant{Property: p.config, Location: p.location, Tokens: p.tokens, View: p.view}
}

// checks say when the property can be served.
func (p *property) checks() []server.Check {
	checks := []server.Check{{Name: "redis " + p.String(), Ready: p.client.Ping}}
	if p.view != nil {
		checks = append(checks, server.Check{Name: "view " + p.String(), Ready: func(context.Context) error {
			if !p.view.Status().Ready {
				return errors.New("still replaying the stream")
			}
			return nil
		}})
	}
	return checks
}

// follow keeps the view up to date until ctx ends.
func (p *property) follow(ctx context.Context) error {
	err := p.view.Follow(ctx, p.stream)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// close flushes what is still to be appended and closes the connection.
func (p *property) close() error {
	var errs []error
	if p.appender != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		errs = append(errs, p.appender.Close(ctx))
	}
	return errors.Join(append(errs, p.client.Close())...)
}
