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

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/cli/flags"
	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/history/access"
	"github.com/weir-dev/weir/collector/history/schema"
	"github.com/weir-dev/weir/collector/role"
)

const (
	// ownClickHouse in place of a URL asks for a ClickHouse of our own.
	ownClickHouse = "own"
	// clickHouseVariable is the environment's in place of --clickhouse: a command line can be read by everybody on the machine.
	clickHouseVariable = "WEIR_CLICKHOUSE_URL"
	// clickHouseTimeout is how long a ClickHouse may take to make what a property needs, and to end when we do.
	clickHouseTimeout = 30 * time.Second
)

// checkClickHouse reads what --clickhouse says, or the environment in its place, and the file of its authorities.
func (o *devOptions) checkClickHouse(caFile string, errs *flags.Errors) {
	o.clickHouseFrom = "--clickhouse"
	if address := os.Getenv(clickHouseVariable); o.clickHouse.URL == "" && address != "" {
		o.clickHouse.URL, o.clickHouseFrom = address, clickHouseVariable
	}
	switch o.clickHouse.URL {
	case "", ownClickHouse:
		if caFile != "" {
			errs.Add("--clickhouse-ca-file: goes with the URL of --clickhouse or %s alone", clickHouseVariable)
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
		errs.Add("%s: %v", o.clickHouseFrom, err)
	}
}

// findHistories sees to the properties' histories: all have one in the server of --clickhouse; without that those have one whose spec
// says so, and it has to say where. Where nobody has said which roles are served, the archive is as well then.
func (o *devOptions) findHistories(properties []*loadedProperty) error {
	var errs flags.Errors
	some := o.clickHouse.URL != ""
	for _, p := range properties {
		if !p.Spec.HasHistory() || o.clickHouse.URL != "" {
			continue
		}
		if some = true; p.clickHouse.URL == "" {
			errs.Add("%s: Property %s: spec.history: is in the operator's ClickHouse; name one in its place, as in --clickhouse own", p.file, p.id())
		}
	}
	if some && o.usualRoles {
		o.roles = append(o.roles, role.Archive)
	}
	return errs.Err()
}

// historySet does for the properties' histories what the operator does in a cluster: it makes databases, tables and users.
type historySet struct {
	// server is that of --clickhouse, where there is one: it goes before that of a spec.
	server config.ClickHouse
	// from is what named it.
	from  string
	state *stateDir
	// user is whose user the roles share: there is one file for all of them.
	user access.Role
}

// histories prepares them for the server of --clickhouse, if any.
func (o *devOptions) histories(state *stateDir, server config.ClickHouse) *historySet {
	set := &historySet{server: server, from: o.clickHouseFrom, state: state, user: access.Query}
	if slices.Contains(o.roles, role.Archive) {
		set.user = access.Archive
	}
	return set
}

// add makes what a property's history needs, where it has one, and adds to its files how that is reached. Errors say where the server
// was named.
func (s *historySet) add(ctx context.Context, p *loadedProperty, files map[string][]byte) error {
	server, source := s.server, s.from
	if server.URL == "" {
		server, source = p.clickHouse, p.file+": spec.history"
	}
	if server.URL == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, clickHouseTimeout)
	defer cancel()
	if err := s.addIn(ctx, server, p, files); err != nil {
		return fmt.Errorf("%s: Property %s: %w", source, p.id(), err)
	}
	return nil
}

// addIn does that in a server.
func (s *historySet) addIn(ctx context.Context, server config.ClickHouse, p *loadedProperty, files map[string][]byte) error {
	var property config.Property
	if err := json.Unmarshal(files[config.PropertyFile], &property); err != nil {
		return err
	}
	if property.History == nil { // --clickhouse alone says so
		property.History = &config.History{RetentionDays: max(v1alpha1.DefaultHistoryDays, property.Retention.Days)}
	}
	how, place := clickhouse.Options{TLS: server.TLS}, access.Place{Namespace: p.Namespace, Name: p.Name, Cluster: property.History.Cluster}
	keeper, err := access.Open(server.URL, how, place)
	if err != nil {
		return err
	}
	defer keeper.Close()
	password, err := s.password(p.id())
	if err != nil {
		return err
	}
	user := access.User{Role: s.user, Password: password}
	if _, err := keeper.Ensure(ctx, []access.User{user}); err != nil {
		return err
	}
	if err := ensureTables(ctx, server.URL, how, place); err != nil {
		return err
	}
	if files[config.PropertyFile], err = json.MarshalIndent(property, "", "  "); err != nil {
		return err
	}
	maps.Copy(files, config.ClickHouse{URL: keeper.URL(user), TLS: server.TLS}.Files())
	return nil
}

// ensureTables makes a property's tables, for which its own users have no right.
func ensureTables(ctx context.Context, server string, how clickhouse.Options, place access.Place) error {
	address, err := url.Parse(server)
	if err != nil {
		return clickhouse.ErrURL // the error of url.Parse repeats the URL, which has a password in it
	}
	address.Path = "/" + place.Database()
	client, err := clickhouse.Dial(address.String(), how)
	if err != nil {
		return err
	}
	defer client.Close()
	_, err = schema.EnsureOn(ctx, client, schema.Cluster(place.Cluster))
	return err
}

// password is that of a property's user. It is the same at every start.
func (s *historySet) password(property objectName) (string, error) {
	secret, err := s.state.historySecret()
	if err != nil {
		return "", fmt.Errorf("--state-dir: %w", err)
	}
	sum := hmac.New(sha256.New, secret)
	fmt.Fprintf(sum, "%s %s", property, s.user) // a hash takes everything
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// historySecret returns what the passwords of histories are made of: what an earlier run made, or a new one.
func (s *stateDir) historySecret() ([]byte, error) {
	file := filepath.Join(s.path, "history")
	text, err := os.ReadFile(file) //nolint:gosec // in the directory that whoever runs it names
	if errors.Is(err, fs.ErrNotExist) {
		text = []byte(rand.Text())
		err = os.WriteFile(file, text, 0o600) //nolint:gosec // as above
	}
	return text, err
}
