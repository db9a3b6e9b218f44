package main

import (
	"encoding/xml"
	"path/filepath"
	"strings"
	"testing"
)

func admins() configuredUsers {
	var users configuredUsers
	text := "<clickhouse><users><root><password_sha256_hex>" + digest("root") + "</password_sha256_hex></root></users></clickhouse>"
	if err := xml.Unmarshal([]byte(text), &users); err != nil {
		panic(err)
	}
	return users
}

func open(t *testing.T, path string) *Access {
	t.Helper()
	access, err := OpenAccess(path, admins())
	if err != nil {
		t.Fatal(err)
	}
	return access
}

func runAll(t *testing.T, a *Access, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		if _, err := a.Run("root", "default", statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

func TestRightsOfStatements(t *testing.T) {
	a := open(t, filepath.Join(t.TempDir(), "access.json"))
	runAll(t, a, "CREATE USER reader, writer IDENTIFIED WITH sha256_password BY 'x'", "GRANT SELECT ON `shop`.* TO reader",
		"GRANT INSERT, SELECT, ALTER DELETE ON shop.events TO writer")
	for name, test := range map[string]struct {
		user, sql string
		want      string // the right that is missing
	}{
		"a reader reads its database":               {"reader", "SELECT * FROM events", ""},
		"and joins within it":                       {"reader", "SELECT * FROM shop.events AS e LEFT JOIN `shop`.`records` r ON e.at = r.at", ""},
		"a query's own name is no table":            {"reader", "WITH t AS (SELECT 1) SELECT * FROM t", ""},
		"another's database is denied":              {"reader", "SELECT * FROM other.events", "SELECT ON other.events"},
		"also in a subquery":                        {"reader", "SELECT * FROM events WHERE at IN (SELECT at FROM other.events)", "SELECT ON other.events"},
		"also behind a comma":                       {"reader", "SELECT * FROM events, other.events", "SELECT ON other.events"},
		"also behind a comment":                     {"reader", "SELECT 1 /* ' */ FROM/**/other.events", "SELECT ON other.events"},
		"a reader inserts nothing":                  {"reader", "INSERT INTO events (at) VALUES (1)", "INSERT ON shop.events"},
		"a reader makes no user":                    {"reader", "CREATE USER other", "ACCESS MANAGEMENT ON *.*"},
		"a reader sees nothing of running queries":  {"reader", "SELECT * FROM system.processes", "SELECT ON system.processes"},
		"a reader sees the tables that there are":   {"reader", "SELECT name FROM system.tables", ""},
		"files are read by nobody":                  {"reader", "SELECT * FROM file('/etc/passwd')", "CREATE TEMPORARY TABLE, FILE ON *.*"},
		"a writer inserts into its table":           {"writer", "INSERT INTO shop.events (at) FORMAT Native", ""},
		"a writer does not into another":            {"writer", "INSERT INTO records SELECT * FROM events", "INSERT ON shop.records"},
		"a writer deletes":                          {"writer", "ALTER TABLE events DELETE WHERE at = 1", ""},
		"a writer changes no column":                {"writer", "ALTER TABLE events ADD COLUMN c String", "ALTER COLUMN ON shop.events"},
		"and makes no index":                        {"writer", "ALTER TABLE events MATERIALIZE INDEX i", "ALTER INDEX ON shop.events"},
		"a writer drops nothing":                    {"writer", "DROP TABLE IF EXISTS events", "DROP TABLE ON shop.events"},
		"a writer makes no database":                {"writer", "CREATE DATABASE more", "CREATE DATABASE ON more.*"},
		"what has access management does all of it": {"root", "DROP TABLE shop.events", ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := a.Run(test.user, "shop", test.sql)
			switch {
			case test.want == "" && err != nil:
				t.Errorf("got %v, want no error", err)
			case test.want != "" && (err == nil || !strings.HasSuffix(err.Error(), "the grant "+test.want+". (ACCESS_DENIED)")):
				t.Errorf("got %v, want that %q is missing", err, test.want)
			}
		})
	}
}

func TestPasswords(t *testing.T) {
	for name, test := range map[string]struct {
		statements []string
		password   string
		want       bool
	}{
		"the password counts":                  {[]string{"CREATE USER u IDENTIFIED BY 'a'"}, "a", true},
		"another does not":                     {[]string{"CREATE USER u IDENTIFIED BY 'a'"}, "b", false},
		"a hash stands for its password":       {[]string{"CREATE USER u IDENTIFIED WITH sha256_hash BY '" + digest("a") + "'"}, "a", true},
		"a hash may have a salt":               {[]string{"CREATE USER u IDENTIFIED WITH sha256_hash BY '" + digest("aS") + "' SALT 'S'"}, "a", true},
		"a rotated password is worth nothing":  {[]string{"CREATE USER u IDENTIFIED BY 'a'", "ALTER USER u IDENTIFIED BY 'b'"}, "a", false},
		"one that was added leaves the first":  {[]string{"CREATE USER u IDENTIFIED BY 'a'", "ALTER USER u ADD IDENTIFIED BY 'b'"}, "a", true},
		"of several the last stays at a reset": {[]string{"CREATE USER u IDENTIFIED BY 'a', sha256_password BY 'b'", "ALTER USER u RESET AUTHENTICATION METHODS TO NEW"}, "a", false},
		"one that has ended is worth nothing":  {[]string{"CREATE USER u IDENTIFIED BY 'a' VALID UNTIL '2020-01-01 00:00:00'"}, "a", false},
		"IF NOT EXISTS changes nothing":        {[]string{"CREATE USER u IDENTIFIED BY 'a'", "CREATE USER IF NOT EXISTS u IDENTIFIED BY 'b'"}, "a", true},
		"a dropped user is unknown":            {[]string{"CREATE USER u IDENTIFIED BY 'a'", "DROP USER u"}, "a", false},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "access.json")
			runAll(t, open(t, path), test.statements...)
			if _, err := open(t, path).Authenticate("u", test.password); (err == nil) != test.want {
				t.Errorf("after a restart the answer is %v, want that it is taken: %v", err, test.want)
			}
		})
	}
}

func TestRewrite(t *testing.T) {
	a := open(t, filepath.Join(t.TempDir(), "access.json"))
	for name, test := range map[string]struct{ sql, want string }{
		"SYNC is taken from a DROP":          {"DROP DATABASE d SYNC", "DROP DATABASE d "},
		"other statements stay as they are":  {"SELECT 'system.users SYNC'", "SELECT 'system.users SYNC'"},
		"no grants are an empty table":       {"SELECT 1 FROM system.quotas q", "SELECT 1 FROM (SELECT * FROM values('name String, storage String', ('', '')) WHERE 0) q"},
		"users of the configuration are all": {"SELECT name FROM system.users", "SELECT name FROM (SELECT * FROM values('name String, storage String', ('root', 'users_xml')))"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := a.Rewrite(test.sql); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
