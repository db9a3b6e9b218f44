// Package access makes and keeps who may do what with a Property's database in ClickHouse: the database, a user for each role
// that reaches it, the rights of these and a quota. It says how each drifts, and removes all of it. It is for whoever administers
// the server; the tables are package schema's.
package access

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/history/schema"
)

// Role is whose pods a user is for.
type Role string

// The roles that reach the history.
const (
	Archive Role = "archive"
	Query   Role = "query"
)

// Roles returns all roles.
func Roles() []Role { return []Role{Archive, Query} }

// Place is where a Property's history is.
type Place struct {
	// Namespace and Name are the Property's: names of Kubernetes, which have neither '_' nor quotation marks.
	Namespace, Name string
	// Cluster is the cluster of ClickHouse's configuration on which users and rights are made; "" for the server alone.
	Cluster string
}

// Database is the name of the database.
func (p Place) Database() string { return schema.Database(p.Namespace, p.Name) }

// UserName is the name of a role's user.
func (p Place) UserName(role Role) string { return schema.User(p.Database(), string(role)) }

// URL is what a role's pods reach the history with, given the address of the server.
func (p Place) URL(address *url.URL, user User) string {
	own := *address
	own.User, own.Path = url.UserPassword(p.UserName(user.Role), user.Password), "/"+p.Database()
	return own.String()
}

// User is what a role's pods show.
type User struct {
	Role Role
	// Password is one that cannot be guessed: ClickHouse gets its SHA-256, which is in no log.
	Password string
	// KeepPasswords leaves the passwords before in force, for as long as pods may still show them. ClickHouse before 24.9 keeps none:
	// until the new one reaches them, pods that show the old one are refused.
	KeepPasswords bool
}

// Keeper keeps one Property's database, users, rights and quota.
type Keeper struct {
	place   Place
	address *url.URL
	how     clickhouse.Options
	admin   *clickhouse.Client
}

// Open prepares a keeper; nothing is sent. The URL is that of a user who may administer, of which [AdminGrants] has the rights. Errors
// are those of [clickhouse.Dial].
func Open(address string, how clickhouse.Options, place Place) (*Keeper, error) {
	parsed, err := url.Parse(address)
	if err != nil {
		return nil, clickhouse.ErrURL // the error of url.Parse repeats the URL, which has a password in it
	}
	base := *parsed
	base.Path = "" // the database may not be there yet
	admin, err := clickhouse.Dial(base.String(), how)
	if err != nil {
		return nil, err
	}
	return &Keeper{place, parsed, how, admin}, nil
}

// Close ends the idle connections.
func (k *Keeper) Close() { k.admin.Close() }

// URL is what a role's pods reach the history with.
func (k *Keeper) URL(user User) string { return k.place.URL(k.address, user) }

// Ensure makes everything what it shall be. It costs a few questions where nothing is to be done. What it had to make or put right
// is in the answer, in words that may be shown. Errors are [clickhouse.Problem], and [*DeniedError] where the URL's user lacks a right.
func (k *Keeper) Ensure(ctx context.Context, users []User) (repaired []string, err error) {
	defer func() { err = k.explain(err) }()
	if _, err := k.admin.Version(ctx); err != nil {
		return nil, err
	}
	made, err := k.database(ctx)
	if err != nil {
		return nil, err
	}
	repaired = append(repaired, made...)
	there, err := k.names(ctx, "SELECT name FROM system.users")
	if err != nil {
		return repaired, err
	}
	for _, user := range users {
		name, changed := k.place.UserName(user.Role), true
		if slices.Contains(there, name) {
			changed, err = k.password(ctx, user)
		} else {
			err = k.run(ctx, "CREATE USER IF NOT EXISTS "+schema.Quote(name)+k.onCluster()+" IDENTIFIED WITH "+method(user.Password))
		}
		if err != nil {
			return repaired, err
		}
		if changed {
			repaired = append(repaired, "user "+name)
		}
	}
	rights, err := k.rights(ctx, users)
	if err != nil {
		return append(repaired, rights...), err
	}
	return append(repaired, rights...), k.quota(ctx, users)
}

// database makes the database where it is missing.
func (k *Keeper) database(ctx context.Context) (made []string, err error) {
	name := k.place.Database()
	there, err := k.names(ctx, "SELECT name FROM system.databases")
	if err != nil || slices.Contains(there, name) {
		return nil, err
	}
	return []string{"database " + name}, k.run(ctx, "CREATE DATABASE IF NOT EXISTS "+schema.Quote(name)+k.onCluster())
}

// password has a user who is there take the password, and no other where none is to be kept. ClickHouse does not tell which it takes,
// so the user is tried.
func (k *Keeper) password(ctx context.Context, user User) (changed bool, err error) {
	name := schema.Quote(k.place.UserName(user.Role))
	tried, err := clickhouse.Dial(k.tryURL(user), k.how)
	if err != nil {
		return false, err
	}
	defer tried.Close()
	if _, err := tried.Version(ctx); err == nil || !errors.Is(err, clickhouse.Denied) {
		return false, err
	}
	if user.KeepPasswords {
		err := k.run(ctx, "ALTER USER "+name+k.onCluster()+" ADD IDENTIFIED WITH "+method(user.Password))
		if !hasCode(err, syntaxError) {
			return true, err
		}
	}
	return true, k.Rotated(ctx, user)
}

// Rotated ends the rotation of a password: those before are refused from then on.
func (k *Keeper) Rotated(ctx context.Context, user User) error {
	return k.explain(k.run(ctx, "ALTER USER "+schema.Quote(k.place.UserName(user.Role))+k.onCluster()+" IDENTIFIED WITH "+method(user.Password)))
}

// tryURL is as [Keeper.URL], without a database.
func (k *Keeper) tryURL(user User) string {
	own := *k.address
	own.User, own.Path = url.UserPassword(k.place.UserName(user.Role), user.Password), ""
	return own.String()
}

// method is how a password is said, by its SHA-256: the password itself is in no statement. It needs no salt, for it is no word that
// anybody could try.
func method(password string) string {
	sum := sha256.Sum256([]byte(password))
	return "sha256_hash BY '" + hex.EncodeToString(sum[:]) + "'"
}

// Remove removes users and quota, first the one who writes. The data stay.
func (k *Keeper) Remove(ctx context.Context) error {
	for _, role := range Roles() {
		if err := k.run(ctx, "DROP USER IF EXISTS "+schema.Quote(k.place.UserName(role))+k.onCluster()); err != nil {
			return k.explain(err)
		}
	}
	return k.explain(k.run(ctx, "DROP QUOTA IF EXISTS "+schema.Quote(k.place.Database())+k.onCluster()))
}

// Drop removes everything, the data too. It returns when they are gone from the disk.
func (k *Keeper) Drop(ctx context.Context) error {
	if err := k.Remove(ctx); err != nil {
		return err
	}
	return k.explain(k.run(ctx, "DROP DATABASE IF EXISTS "+schema.Quote(k.place.Database())+k.onCluster()+" SYNC"))
}

// run runs a statement. Where the server keeps its users in Keeper they are on all servers anyway, and ON CLUSTER would fail.
func (k *Keeper) run(ctx context.Context, sql string) error {
	query := clickhouse.Query{SQL: sql}
	if k.place.Cluster != "" {
		query.Settings = clickhouse.Settings{"ignore_on_cluster_for_replicated_access_entities_queries": true}
	}
	return k.admin.Exec(ctx, query)
}

// names are those of a table of the system that belong to this Property, or could.
func (k *Keeper) names(ctx context.Context, from string) ([]string, error) {
	return clickhouse.Select[string](ctx, k.admin, clickhouse.Query{
		SQL: from + " WHERE startsWith(name, {database:String})", Parameters: map[string]any{"database": k.place.Database()},
	})
}

func (k *Keeper) onCluster() string {
	if k.place.Cluster == "" {
		return ""
	}
	return " ON CLUSTER " + schema.Quote(k.place.Cluster)
}

// syntaxError is ClickHouse's number of what it does not understand, such as words that an older version does not know.
const syntaxError = 62

func hasCode(err error, code int) bool {
	known, ok := errors.AsType[*clickhouse.Problem](err)
	return ok && known.Code == code
}

// DeniedError says that the URL's user lacks a right, and how to give it.
type DeniedError struct {
	problem *clickhouse.Problem
	// Mend are the statements with which somebody who may gives all rights that are needed.
	Mend []string
}

// Error implements error.
func (d *DeniedError) Error() string {
	return fmt.Sprintf("%v; run %s", d.problem, strings.Join(d.Mend, "; "))
}

// Unwrap returns the [*clickhouse.Problem].
func (d *DeniedError) Unwrap() error { return d.problem }

// missingRight is ClickHouse's number of it.
const missingRight = 497

// explain adds to a missing right what gives it.
func (k *Keeper) explain(err error) error {
	known, ok := errors.AsType[*clickhouse.Problem](err)
	if _, already := errors.AsType[*DeniedError](err); !ok || already || known.Code != missingRight {
		return err
	}
	return &DeniedError{known, AdminGrants(k.address.User.Username(), k.place.Cluster != "")}
}
