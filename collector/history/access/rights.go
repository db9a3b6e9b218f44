package access

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/history/schema"
)

// right is a privilege on a table, as system.grants has it; nil is all of them.
type right struct {
	Privilege string  `ch:"access_type"`
	Database  *string `ch:"database"`
	Table     *string `ch:"table"`
}

// on is what the right is on.
func (r right) on() string {
	name := func(part *string) string {
		if part == nil {
			return "*"
		}
		return schema.Quote(*part)
	}
	return name(r.Database) + "." + name(r.Table)
}

// text tells rights apart.
func (r right) text() string { return r.Privilege + " ON " + r.on() }

// rightsOf are a role's. None may make, change or drop a table, or see another database.
func (p Place) rightsOf(role Role) []right {
	database, system := p.Database(), "system"
	if role == Query {
		return []right{{"SELECT", &database, nil}}
	}
	var list []right
	// It reads how far it is, inserts, and deletes and changes rows of persons who are erased.
	for _, privilege := range []string{"SELECT", "INSERT", "ALTER DELETE", "ALTER UPDATE"} {
		list = append(list, right{privilege, &database, nil})
	}
	// How many parts wait to be merged, and whether what was erased is gone: of its own tables, for it is shown no others.
	for _, table := range []string{"mutations", "parts"} {
		list = append(list, right{"SELECT", &system, &table})
	}
	if p.Cluster != "" {
		// It changes rows, and looks at those tables of the system, on all servers.
		for _, privilege := range clusterPrivileges() {
			list = append(list, right{privilege, nil, nil})
		}
	}
	return list
}

// rights gives users what they lack and takes what they have beyond it, right by right, so that nobody is refused meanwhile.
func (k *Keeper) rights(ctx context.Context, users []User) (repaired []string, err error) {
	for _, user := range users {
		name := k.place.UserName(user.Role)
		have, err := clickhouse.Select[right](ctx, k.admin, clickhouse.Query{
			SQL:        "SELECT toString(access_type) AS access_type, database, table FROM system.grants WHERE user_name = {user:String}",
			Parameters: map[string]any{"user": name},
		})
		if err != nil {
			return repaired, err
		}
		want := k.place.rightsOf(user.Role)
		for _, statement := range changes(name, k.onCluster(), have, want) {
			if err := k.run(ctx, statement); err != nil {
				return repaired, err
			}
			verb, _, _ := strings.Cut(statement, " ")
			repaired = append(repaired, strings.ToLower(verb)+" of user "+name)
		}
	}
	return slices.Compact(repaired), nil
}

// privilege is what a privilege may be called: the names come from a server that a tenant may have brought.
var privilege = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9 ]{0,60}$`)

// changes are the statements that make of the rights that a user has those that it shall have.
func changes(user, onCluster string, have, want []right) []string {
	has := func(list []right, one right) bool {
		return slices.ContainsFunc(list, func(other right) bool { return other.text() == one.text() })
	}
	var statements []string
	for _, one := range have {
		if !has(want, one) && privilege.MatchString(one.Privilege) {
			statements = append(statements, fmt.Sprintf("REVOKE%s %s FROM %s", onCluster, one.text(), schema.Quote(user)))
		}
	}
	// A right that was taken may have held one of the others in it: these are given anew.
	for _, one := range want {
		if len(statements) > 0 || !has(have, one) {
			statements = append(statements, fmt.Sprintf("GRANT%s %s TO %s", onCluster, one.text(), schema.Quote(user)))
		}
	}
	return statements
}

// mostQueries and mostSeconds are what a Property's questions may take of the server in a minute: mostSeconds is the time that they
// run, of all together.
const (
	mostQueries = 6000
	mostSeconds = 600
)

// quota bounds the one who asks: a page that asks without end must not take the server from others. The one who writes has none, for
// what it does not write waits in Redis.
func (k *Keeper) quota(ctx context.Context, users []User) error {
	name := k.place.Database()
	there, err := k.names(ctx, "SELECT name FROM system.quotas")
	if err != nil || slices.Contains(there, name) {
		return err
	}
	if !slices.ContainsFunc(users, func(user User) bool { return user.Role == Query }) {
		return nil
	}
	return k.run(ctx, fmt.Sprintf("CREATE QUOTA IF NOT EXISTS %s%s FOR INTERVAL 1 minute MAX queries = %d, execution_time = %d TO %s",
		schema.Quote(name), k.onCluster(), mostQueries, mostSeconds, schema.Quote(k.place.UserName(Query))))
}

// unbound takes the quota away before the user whom it bounds is made anew: with the one before it has lost whom it is for, and it does
// not tell. So it is missing, and made again, also where whoever does this dies in between.
func (k *Keeper) unbound(ctx context.Context, user User) error {
	if user.Role != Query {
		return nil
	}
	return k.run(ctx, "DROP QUOTA IF EXISTS "+schema.Quote(k.place.Database())+k.onCluster())
}

// AdminGrants are the statements that give a user what the operator needs, with tables of one server or of a cluster.
func AdminGrants(user string, cluster bool) []string {
	own := schema.Quote(user)
	statements := []string{
		"GRANT SHOW, SELECT, INSERT, ALTER, CREATE DATABASE, CREATE TABLE, CREATE VIEW, DROP DATABASE, DROP TABLE, DROP VIEW, OPTIMIZE, TRUNCATE " +
			"ON *.* TO " + own + " WITH GRANT OPTION",
		"GRANT CREATE USER, ALTER USER, DROP USER, CREATE QUOTA, ALTER QUOTA, DROP QUOTA, SHOW ACCESS ON *.* TO " + own,
	}
	if cluster {
		statements = append(statements, "GRANT "+strings.Join(clusterPrivileges(), ", ")+" ON *.* TO "+own+" WITH GRANT OPTION")
	}
	return statements
}

// clusterPrivileges are those that statements need which reach all servers of a cluster.
func clusterPrivileges() []string { return []string{"CLUSTER", "REMOTE", "CREATE TEMPORARY TABLE"} }
