package access_test

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/clickhouse/clickhousetest"
	"github.com/weir-dev/weir/collector/history/access"
	"github.com/weir-dev/weir/collector/history/schema"
)

// kept is a Property whose history has been made.
type kept struct {
	*access.Keeper
	place access.Place
	users map[access.Role]access.User
	admin string
}

// keep makes the history of a Property of the test's own, with a table in it.
func keep(t testing.TB, admin, name string) kept {
	t.Helper()
	k := kept{place: access.Place{Namespace: "shops", Name: name}, users: map[access.Role]access.User{}, admin: admin}
	var err error
	if k.Keeper, err = access.Open(admin, clickhouse.Options{}, k.place); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	for _, role := range access.Roles() {
		k.users[role] = access.User{Role: role, Password: "first-" + string(role)}
	}
	if repaired := k.ensure(t); len(repaired) == 0 {
		t.Error("nothing was made")
	}
	clickhousetest.Exec(t, admin, "CREATE TABLE IF NOT EXISTS "+schema.Quote(k.place.Database())+".events (at UInt64) ENGINE = MergeTree ORDER BY at")
	return k
}

func (k kept) ensure(t testing.TB) []string {
	t.Helper()
	repaired, err := k.Ensure(context.Background(), []access.User{k.users[access.Archive], k.users[access.Query]})
	if err != nil {
		t.Fatal(err)
	}
	return repaired
}

// as runs a statement as a role's pods would.
func (k kept) as(t testing.TB, user access.User, sql string) error {
	t.Helper()
	client, err := clickhouse.Dial(k.URL(user), clickhouse.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	return client.Exec(context.Background(), clickhouse.Query{SQL: sql})
}

// server is a server without data, and the URL of whoever administers it.
func server(t testing.TB) string {
	t.Helper()
	return clickhousetest.Start(t).URL("")
}

func TestEachRoleMayDoItsWorkAndNothingElse(t *testing.T) {
	admin := server(t)
	shop, other := keep(t, admin, "shop"), keep(t, admin, "shop-other")
	others := "`" + other.place.Database() + "`.events"
	tests := map[string]struct {
		role    access.Role
		sql     string
		allowed bool
	}{
		"the query role reads":                           {access.Query, "SELECT count() FROM events", true},
		"the query role cannot write":                    {access.Query, "INSERT INTO events VALUES (1)", false},
		"the query role cannot delete":                   {access.Query, "ALTER TABLE events DELETE WHERE 1", false},
		"the query role cannot read another's database":  {access.Query, "SELECT count() FROM " + others, false},
		"the query role cannot see who else there is":    {access.Query, "SELECT name FROM system.users", false},
		"the query role cannot read what others asked":   {access.Query, "SELECT query FROM system.processes", false},
		"the query role cannot read files":               {access.Query, "SELECT * FROM file('/etc/passwd', 'LineAsString')", false},
		"the query role cannot ask other servers":        {access.Query, "SELECT * FROM url('http://169.254.169.254/', 'LineAsString')", false},
		"the query role cannot drop":                     {access.Query, "DROP TABLE events", false},
		"the query role cannot give itself rights":       {access.Query, "GRANT INSERT ON *.* TO `weir_shops_shop_query`", false},
		"the archive reads":                              {access.Archive, "SELECT max(at) FROM events", true},
		"the archive writes":                             {access.Archive, "INSERT INTO events VALUES (1)", true},
		"the archive erases":                             {access.Archive, "ALTER TABLE events DELETE WHERE at = 1", true},
		"the archive drops a month":                      {access.Archive, "ALTER TABLE events DROP PARTITION tuple()", true},
		"the archive sees which changes are under way":   {access.Archive, "SELECT count() FROM system.mutations", true},
		"the archive looks at the parts":                 {access.Archive, "SELECT count() FROM system.parts", true},
		"the archive cannot drop the database":           {access.Archive, "DROP DATABASE `weir_shops_shop`", false},
		"the archive cannot drop a table":                {access.Archive, "DROP TABLE events", false},
		"the archive cannot make a table":                {access.Archive, "CREATE TABLE more (at UInt64) ENGINE = MergeTree ORDER BY at", false},
		"the archive cannot change a table":              {access.Archive, "ALTER TABLE events ADD COLUMN more UInt8", false},
		"the archive cannot read another's database":     {access.Archive, "SELECT count() FROM " + others, false},
		"the archive cannot write to another's database": {access.Archive, "INSERT INTO " + others + " VALUES (1)", false},
		"the archive cannot make users":                  {access.Archive, "CREATE USER mine IDENTIFIED BY 'x'", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := shop.as(t, shop.users[test.role], test.sql)
			if denied := errors.Is(err, clickhouse.Denied); denied == test.allowed || test.allowed && err != nil {
				t.Errorf("got %v, want allowed %v", err, test.allowed)
			}
		})
	}
}

func TestDriftIsPutRight(t *testing.T) {
	admin := server(t)
	shop, other := keep(t, admin, "shop"), keep(t, admin, "shop-other")
	tests := map[string]struct {
		statements []string
		want       string
	}{
		"nothing has changed":           {},
		"a user was dropped":            {[]string{"DROP USER `weir_shops_shop_query`"}, "user weir_shops_shop_query"},
		"a password was changed":        {[]string{"ALTER USER `weir_shops_shop_archive` IDENTIFIED BY 'x'"}, "user weir_shops_shop_archive"},
		"a right was taken":             {[]string{"REVOKE INSERT ON `weir_shops_shop`.* FROM `weir_shops_shop_archive`"}, "grant of user weir_shops_shop_archive"},
		"a right was given":             {[]string{"GRANT INSERT ON `weir_shops_shop`.* TO `weir_shops_shop_query`"}, "revoke of user weir_shops_shop_query"},
		"a right on all was given":      {[]string{"GRANT SELECT ON *.* TO `weir_shops_shop_query`"}, "revoke of user weir_shops_shop_query"},
		"a quota was dropped":           {[]string{"DROP QUOTA `weir_shops_shop`"}, ""},
		"all of it, a dropped database": {[]string{"DROP DATABASE `weir_shops_shop` SYNC"}, "database weir_shops_shop"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for _, statement := range test.statements {
				clickhousetest.Exec(t, admin, statement)
			}
			repaired := shop.ensure(t)
			if test.want == "" && len(repaired) > 0 || test.want != "" && !slices.Contains(repaired, test.want) {
				t.Errorf("repaired %q, want %q", repaired, test.want)
			}
			if again := shop.ensure(t); len(again) > 0 {
				t.Errorf("and again %q", again)
			}
			if quotas := clickhousetest.Exec(t, admin, "SELECT name FROM system.quotas WHERE name = 'weir_shops_shop'"); quotas != "weir_shops_shop" {
				t.Errorf("the quotas are %q", quotas)
			}
			clickhousetest.Exec(t, admin, "CREATE TABLE IF NOT EXISTS `weir_shops_shop`.events (at UInt64) ENGINE = MergeTree ORDER BY at")
			others := "SELECT count() FROM `" + other.place.Database() + "`.events"
			for sql, want := range map[string]error{"SELECT count() FROM events": nil, "INSERT INTO events VALUES (1)": clickhouse.Denied, others: clickhouse.Denied} {
				if err := shop.as(t, shop.users[access.Query], sql); !errors.Is(err, want) {
					t.Errorf("the query role may %s: %v, want %v", sql, err, want)
				}
			}
		})
	}
}

func TestAUserWhoIsMadeAnewIsBoundAgain(t *testing.T) {
	admin := server(t)
	keep(t, admin, "shop")
	for name, test := range map[string]struct {
		user string
		want []string
	}{
		"the one who asks has the quota":        {"weir_shops_shop_query", []string{"DROP QUOTA", "CREATE USER", "GRANT SELECT", "CREATE QUOTA"}},
		"the one who writes had none, has none": {"weir_shops_shop_archive", []string{"CREATE USER", "GRANT SELECT"}},
	} {
		t.Run(name, func(t *testing.T) {
			clickhousetest.Exec(t, admin, "DROP USER `"+test.user+"`")
			proxy := clickhousetest.StartProxy(t, admin)
			again := keep(t, proxy.URL(), "shop")
			var got []string
			for _, sql := range proxy.Requests() {
				if words := strings.Fields(sql); slices.Contains([]string{"DROP", "CREATE", "GRANT"}, words[0]) && !slices.Contains(got, words[0]+" "+words[1]) && words[1] != "TABLE" {
					got = append(got, words[0]+" "+words[1])
				}
			}
			for _, other := range []string{"GRANT INSERT", "GRANT ALTER"} {
				got = slices.DeleteFunc(got, func(one string) bool { return one == other })
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("it runs %q, want %q", got, test.want)
			}
			if problem := again.as(t, again.users[access.Query], "SELECT count() FROM events"); problem != nil {
				t.Error(problem)
			}
		})
	}
}

func TestPasswordsAreRotated(t *testing.T) {
	shop := keep(t, server(t), "shop")
	before := shop.users[access.Query]
	shop.users[access.Query] = access.User{Role: access.Query, Password: "second", KeepPasswords: true}
	after := shop.users[access.Query]
	shop.ensure(t)
	tests := []struct {
		step string
		old  bool
	}{{"while pods may have the old one", true}, {"when they have the new one", false}}
	for _, test := range tests {
		if err := shop.as(t, after, "SELECT 1"); err != nil {
			t.Errorf("%s the new password: %v", test.step, err)
		}
		if err := shop.as(t, before, "SELECT 1"); errors.Is(err, clickhouse.Denied) == test.old {
			t.Errorf("%s the old password: %v", test.step, err)
		}
		if err := shop.Rotated(context.Background(), after); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWhatIsRemovedIsGone(t *testing.T) {
	tests := map[string]struct {
		remove func(kept) error
		rows   string
	}{
		"users go, and data stay": {func(k kept) error { return k.Remove(context.Background()) }, "1"},
		"users and data go":       {func(k kept) error { return k.Drop(context.Background()) }, "0"},
		"what is gone goes again": {func(k kept) error { return errors.Join(k.Drop(context.Background()), k.Drop(context.Background())) }, "0"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			admin := server(t)
			shop, other := keep(t, admin, "shop"), keep(t, admin, "shop-other")
			if err := test.remove(shop); err != nil {
				t.Fatal(err)
			}
			for _, role := range access.Roles() {
				if err := shop.as(t, shop.users[role], "SELECT 1"); !errors.Is(err, clickhouse.Denied) {
					t.Errorf("%s: %v", role, err)
				}
				if err := other.as(t, other.users[role], "SELECT count() FROM events"); err != nil {
					t.Errorf("another's %s: %v", role, err)
				}
			}
			if rows := clickhousetest.Exec(t, admin, "SELECT count() FROM system.databases WHERE name = 'weir_shops_shop'"); rows != test.rows {
				t.Errorf("there are %s databases, want %s", rows, test.rows)
			}
		})
	}
}

func TestProblemsSayWhatToDo(t *testing.T) {
	admin := server(t)
	clickhousetest.Exec(t, admin, "CREATE USER few IDENTIFIED BY 'pa55'")
	tests := map[string]struct {
		address string
		fault   clickhousetest.Fault
		want    error
		text    string
	}{
		"the user may not administer": {address: asUser(t, admin, "few", "pa55"), want: clickhouse.Denied, text: "WITH GRANT OPTION; GRANT CREATE USER"},
		"the password is wrong":       {address: asUser(t, admin, "few", "wr0ng"), want: clickhouse.Denied, text: "password is wrong"},
		"nobody is there":             {address: "http://few:pa55@127.0.0.1:1", want: clickhouse.Unreachable},
		"something else is there":     {address: admin, fault: clickhousetest.Fault{Nonsense: "hello"}, want: clickhouse.Nonsense},
		"the disk is full":            {address: admin, fault: clickhousetest.Fault{Code: 243, Matching: creates}, want: clickhouse.DiskFull},
		"its Keeper is away":          {address: admin, fault: clickhousetest.Fault{Code: 999, Matching: creates}, want: clickhouse.ReadOnly},
		"the connection is cut":       {address: admin, fault: clickhousetest.Fault{CutAfter: true, Matching: creates}, want: clickhouse.Unreachable},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			address := test.address
			if address == admin {
				proxy := clickhousetest.StartProxy(t, admin)
				proxy.Add(test.fault)
				address = proxy.URL()
			}
			keeper, err := access.Open(address, clickhouse.Options{}, access.Place{Namespace: "shops", Name: "problem"})
			if err != nil {
				t.Fatal(err)
			}
			defer keeper.Close()
			_, err = keeper.Ensure(context.Background(), []access.User{{Role: access.Query, Password: "s3cret"}})
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.text) {
				t.Errorf("got %v, want %v with %q", err, test.want, test.text)
			}
			for _, secret := range []string{"pa55", "wr0ng", "s3cret"} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("%v repeats %s", err, secret)
				}
			}
		})
	}
}

func creates(sql string) bool { return strings.HasPrefix(sql, "CREATE ") }

// asUser is a server's address for another user.
func asUser(t *testing.T, address, user, password string) string {
	t.Helper()
	parsed, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	parsed.User = url.UserPassword(user, password)
	return parsed.String()
}
