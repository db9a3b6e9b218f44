package main

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/weir-dev/weir/cli/flags"
	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/clickhouseserver"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/history/access"
	"github.com/weir-dev/weir/collector/history/schema"
	"github.com/weir-dev/weir/collector/role"
)

const (
	// ownClickHouse in place of a URL asks for a ClickHouse of our own.
	ownClickHouse = "own"
	// clickHouseTimeout is how long a ClickHouse may take to make what a property needs, and to end when we do.
	clickHouseTimeout = 30 * time.Second
	// historyDays is for how many days a history keeps events whose Property does not say.
	historyDays = 1095
)

// checkClickHouse reads what --clickhouse says, and the file of its authorities.
func (o *devOptions) checkClickHouse(caFile string, errs *flags.Errors) {
	switch o.clickHouse.URL {
	case "", ownClickHouse:
		if caFile != "" {
			errs.Add("--clickhouse-ca-file: goes with the URL of --clickhouse alone")
		}
		return
	}
	if caFile != "" {
		authorities, err := os.ReadFile(caFile)
		if err != nil {
			errs.Add("--clickhouse-ca-file: %v", err)
			return
		}
		o.clickHouse.TLS.CA = string(authorities)
	}
	if err := clickhouse.CheckURL(o.clickHouse.URL, o.clickHouse.TLS); err != nil {
		errs.Add("--clickhouse: %v", err)
	}
}

// startClickHouse runs a ClickHouse of our own, which keeps its data in a directory. The function returned ends it.
func startClickHouse(ctx context.Context, directory string) (address string, alive context.Context, stop func() error, err error) {
	program, err := clickhouseserver.Find()
	if err != nil {
		return "", nil, nil, fmt.Errorf("--clickhouse: %w", err)
	}
	server, err := clickhouseserver.Start(ctx, program, clickhouseserver.Options{Dir: directory})
	if err != nil {
		return "", nil, nil, fmt.Errorf("--clickhouse: %w", err)
	}
	alive, end := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-server.Exited():
			end(fmt.Errorf("the ClickHouse that weir dev runs has ended of itself; its log is in %s; start again to go on", directory))
		case <-ctx.Done():
			end(nil)
		}
	}()
	return server.URL(""), alive, func() error {
		limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), clickHouseTimeout)
		defer cancel()
		return server.Stop(limit)
	}, nil
}

// historySet does for the properties' histories what the operator does in a cluster: it makes databases, tables and users.
type historySet struct {
	server config.ClickHouse
	// secret is what passwords are made of.
	secret []byte
	// user is whose user the roles share: there is one file for all of them.
	user access.Role
}

// histories prepares them for the server of --clickhouse; nil where there is none.
func (o *devOptions) histories(state *stateDir, server config.ClickHouse) (*historySet, error) {
	if server.URL == "" {
		return nil, nil
	}
	secret, err := state.historySecret()
	if err != nil {
		return nil, fmt.Errorf("--state-dir: %w", err)
	}
	set := &historySet{server: server, secret: secret, user: access.Query}
	if slices.Contains(o.roles, role.Archive) {
		set.user = access.Archive
	}
	return set, nil
}

// add makes what a property's history needs, and adds to its files how that is reached.
func (s *historySet) add(ctx context.Context, p *loadedProperty, files map[string][]byte) error {
	ctx, cancel := context.WithTimeout(ctx, clickHouseTimeout)
	defer cancel()
	var property config.Property
	if err := json.Unmarshal(files[config.PropertyFile], &property); err != nil {
		return err
	}
	if property.History == nil {
		property.History = &config.History{RetentionDays: max(historyDays, property.Retention.Days)}
	}
	place := access.Place{Namespace: p.Namespace, Name: p.Name, Cluster: property.History.Cluster}
	keeper, err := access.Open(s.server.URL, clickhouse.Options{TLS: s.server.TLS}, place)
	if err != nil {
		return err
	}
	defer keeper.Close()
	user := access.User{Role: s.user, Password: s.password(p.id())}
	if _, err := keeper.Ensure(ctx, []access.User{user}); err != nil {
		return err
	}
	if err := s.ensureTables(ctx, place); err != nil {
		return err
	}
	if files[config.PropertyFile], err = json.MarshalIndent(property, "", "  "); err != nil {
		return err
	}
	maps.Copy(files, config.ClickHouse{URL: keeper.URL(user), TLS: s.server.TLS}.Files())
	return nil
}

// ensureTables makes a property's tables, for which its own users have no right.
func (s *historySet) ensureTables(ctx context.Context, place access.Place) error {
	address, err := url.Parse(s.server.URL)
	if err != nil {
		return clickhouse.ErrURL // the error of url.Parse repeats the URL, which has a password in it
	}
	address.Path = "/" + place.Database()
	client, err := clickhouse.Dial(address.String(), clickhouse.Options{TLS: s.server.TLS})
	if err != nil {
		return err
	}
	defer client.Close()
	_, err = schema.Ensure(ctx, client)
	return err
}

// password is that of a property's user. It is the same at every start.
func (s *historySet) password(property objectName) string {
	sum := hmac.New(sha256.New, s.secret)
	fmt.Fprintf(sum, "%s %s", property, s.user) // a hash takes everything
	return hex.EncodeToString(sum.Sum(nil))
}

// historySecret returns what the passwords of histories are made of: what an earlier run made, or a new one.
func (s *stateDir) historySecret() ([]byte, error) {
	file := filepath.Join(s.path, "history")
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		text = []byte(rand.Text())
		err = os.WriteFile(file, text, 0o600)
	}
	return text, err
}
