package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// need is a right that a statement needs.
type need struct {
	privilege string
	on        object
}

// freely are tables of the system that everybody may read.
var freely = []string{
	"one", "numbers", "databases", "tables", "columns", "settings", "merge_tree_settings", "functions", "formats", "time_zones", "build_options",
	"data_type_families", "table_engines", "table_functions", "collations", "privileges", "keywords", "contributors", "licenses",
}

// harmless are table functions that need no right here.
var harmless = []string{"numbers", "numbers_mt", "zeros", "values", "view", "null", "generateRandom", "generateSeries", "arrayJoin"}

// check says whether a user may run a statement; a.mu is held.
func (a *Access) check(user, database, sql string) error {
	known := a.state.Users[user]
	if known == nil {
		return exception(516, "AUTHENTICATION_FAILED", user+": Authentication failed")
	}
	for _, needed := range needs(tokensOf(sql), database) {
		if !known.may(needed) {
			return denied(user, fmt.Sprintf("%s ON %s.%s", needed.privilege, needed.on.database, needed.on.table))
		}
	}
	return nil
}

func (u *account) may(needed need) bool {
	if needed.privilege == "SELECT" && needed.on.database == "system" && slices.Contains(freely, needed.on.table) {
		return true
	}
	return slices.ContainsFunc(u.Grants, func(g grant) bool {
		return covers(g.Privilege, needed.privilege) && within(object{g.Database, g.Table}, needed.on)
	})
}

// covers says whether a privilege has another in it, as ALTER has ALTER DELETE.
func covers(privilege, other string) bool {
	if privilege == "ALL" || privilege == other || strings.HasPrefix(other, privilege+" ") {
		return true
	}
	columns := []string{"ALTER DELETE", "ALTER UPDATE", "ALTER TTL", "ALTER COLUMN", "ALTER INDEX", "ALTER PROJECTION", "ALTER SETTINGS", "ALTER ORDER BY"}
	return privilege == "ALTER TABLE" && slices.Contains(columns, other)
}

func within(wide, narrow object) bool {
	return (wide.database == "*" || wide.database == narrow.database) && (wide.table == "*" || wide.table == narrow.table)
}

// needs are the rights that a statement needs.
func needs(tokens []token, database string) []need {
	p := &parser{tokens: tokens}
	first := strings.ToUpper(p.next().value)
	switch first {
	case "SELECT", "WITH", "(", "EXPLAIN", "FROM":
		return reads(tokens, database)
	case "SET", "USE", "SHOW", "EXISTS", "KILL":
		return nil
	case "DESCRIBE", "DESC":
		p.accept("TABLE")
		return []need{{"SELECT", p.object(database)}}
	case "INSERT":
		p.accept("INTO")
		p.accept("TABLE")
		return append([]need{{"INSERT", p.object(database)}}, reads(tokens[p.at:], database)...)
	case "DELETE":
		p.accept("FROM")
		return []need{{"ALTER DELETE", p.object(database)}}
	case "ALTER":
		p.accept("TABLE")
		on := p.object(database)
		onCluster(p)
		return append([]need{{alteration(p), on}}, reads(tokens[p.at:], database)...)
	case "OPTIMIZE", "TRUNCATE":
		p.accept("TABLE")
		return []need{{first, p.object(database)}}
	case "CREATE", "DROP", "ATTACH", "DETACH", "RENAME":
		return definition(p, first, database)
	default:
		return []need{{first, object{"*", "*"}}}
	}
}

// alteration is the privilege of what an ALTER TABLE does.
func alteration(p *parser) string {
	switch {
	case p.accept("DELETE"), p.accept("DROP", "PARTITION"), p.accept("DROP", "PART"):
		return "ALTER DELETE"
	case p.accept("UPDATE"):
		return "ALTER UPDATE"
	case p.accept("MODIFY", "TTL"), p.accept("REMOVE", "TTL"), p.accept("MATERIALIZE", "TTL"):
		return "ALTER TTL"
	case p.accept("MODIFY", "SETTING"):
		return "ALTER SETTINGS"
	case p.accept("ADD", "COLUMN"), p.accept("MODIFY", "COLUMN"), p.accept("DROP", "COLUMN"):
		return "ALTER COLUMN"
	case p.accept("ADD", "PROJECTION"), p.accept("MATERIALIZE", "PROJECTION"), p.accept("DROP", "PROJECTION"):
		return "ALTER PROJECTION"
	case p.accept("ADD", "INDEX"), p.accept("MATERIALIZE", "INDEX"), p.accept("DROP", "INDEX"):
		return "ALTER INDEX"
	default:
		return "ALTER TABLE"
	}
}

// definition is what CREATE and DROP need.
func definition(p *parser, verb, database string) []need {
	p.accept("OR", "REPLACE")
	p.accept("MATERIALIZED")
	what := strings.ToUpper(p.next().value)
	for p.accept("IF", "NOT", "EXISTS") || p.accept("IF", "EXISTS") {
	}
	if what == "DATABASE" {
		return []need{{verb + " DATABASE", object{p.next().value, "*"}}}
	}
	return append([]need{{verb + " " + what, p.object(database)}}, reads(p.tokens[min(p.at, len(p.tokens)):], database)...)
}

// reads are the tables that a query reads: whatever stands behind FROM, JOIN and IN, and is neither named in WITH nor a query itself.
func reads(tokens []token, database string) []need {
	own := map[string]bool{}
	for i := range len(tokens) - 2 {
		if tokens[i+1].is("AS") && tokens[i+2].is("(") {
			own[tokens[i].value] = true
		}
	}
	var found []need
	for i, t := range tokens {
		if !t.is("FROM") && !t.is("JOIN") && !t.is("IN") || i+1 >= len(tokens) {
			continue
		}
		p := &parser{tokens: tokens, at: i + 1}
		found = append(found, readsAt(p, t.is("FROM"), own, database)...)
	}
	return found
}

// readsAt are the tables at a place, more than one where they may have commas between them.
func readsAt(p *parser, several bool, own map[string]bool, database string) []need {
	var found []need
	for {
		if k := p.peek().kind; k != word && k != name {
			return found
		}
		on := p.object(database)
		switch {
		case p.peek().is("("):
			if !slices.Contains(harmless, on.table) {
				return append(found, need{"CREATE TEMPORARY TABLE, " + strings.ToUpper(on.table), object{"*", "*"}})
			}
			return found
		case on.database == database && own[on.table]:
		default:
			found = append(found, need{"SELECT", on})
		}
		if !several || !p.accept(",") {
			return found
		}
	}
}

// Rewrite puts what is emulated in place of the tables of the system that tell of it, and takes SYNC from a DROP: here nothing
// removes dropped tables while the engine runs, so that it would wait for ever.
func (a *Access) Rewrite(sql string) string {
	if tokens := tokensOf(sql); len(tokens) > 1 && tokens[0].is("DROP") {
		if last := tokens[len(tokens)-1]; last.is("SYNC") {
			return sql[:last.begin]
		}
	}
	if !strings.Contains(strings.ToLower(sql), "system.") {
		return sql
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	tables := map[string]string{"users": a.usersTable(), "grants": a.grantsTable(), "quotas": a.quotasTable()}
	tokens := tokensOf(sql)
	for i := len(tokens) - 3; i >= 0; i-- {
		if instead, ok := tables[tokens[i+2].value]; ok && tokens[i].is("system") && tokens[i+1].is(".") {
			sql = sql[:tokens[i].begin] + instead + sql[tokens[i+2].end:]
		}
	}
	return sql
}

// made is a query of rows of texts.
func made(columns string, rows []string) string {
	if len(rows) == 0 {
		empty := strings.Repeat("'', ", strings.Count(columns, ",")) + "''"
		return "(SELECT * FROM values(" + quoted(columns) + ", (" + empty + ")) WHERE 0)"
	}
	return "(SELECT * FROM values(" + quoted(columns) + ", " + strings.Join(rows, ", ") + "))"
}

func (a *Access) usersTable() string {
	var rows []string
	for _, name := range slices.Sorted(maps.Keys(a.state.Users)) {
		rows = append(rows, "("+quoted(name)+", 'local_directory')")
	}
	for _, name := range slices.Sorted(maps.Keys(a.admin)) {
		rows = append(rows, "("+quoted(name)+", 'users_xml')")
	}
	return made("name String, storage String", rows)
}

func (a *Access) grantsTable() string {
	var rows []string
	nullable := func(text string) string {
		if text == "*" {
			return "NULL"
		}
		return quoted(text)
	}
	for _, name := range slices.Sorted(maps.Keys(a.state.Users)) {
		for _, g := range a.state.Users[name].Grants {
			rows = append(rows, "("+quoted(name)+", "+quoted(g.Privilege)+", "+nullable(g.Database)+", "+nullable(g.Table)+")")
		}
	}
	return made("user_name Nullable(String), access_type String, database Nullable(String), table Nullable(String)", rows)
}

func (a *Access) quotasTable() string {
	var rows []string
	for _, name := range slices.Sorted(maps.Keys(a.state.Quotas)) {
		rows = append(rows, "("+quoted(name)+", 'local_directory')")
	}
	return made("name String, storage String", rows)
}

// showGrants is a query that answers as SHOW GRANTS [FOR user] does.
func (a *Access) showGrants(p *parser, user string) string {
	if p.accept("FOR") {
		user = p.next().value
	}
	var rows []string
	if known := a.state.Users[user]; known != nil {
		for _, g := range known.Grants {
			on := func(text string) string {
				if text == "*" {
					return text
				}
				return "`" + text + "`"
			}
			rows = append(rows, "("+quoted("GRANT "+g.Privilege+" ON "+on(g.Database)+"."+on(g.Table)+" TO "+user)+")")
		}
	}
	if _, ok := a.admin[user]; ok {
		rows = append(rows, "("+quoted("GRANT ALL ON *.* TO "+user+" WITH GRANT OPTION")+")")
	}
	return "SELECT * FROM " + made("GRANTS String", rows)
}

// readsOnly says whether a statement changes nothing.
func readsOnly(sql string) bool {
	p := &parser{tokens: tokensOf(sql)}
	for p.accept("(") {
	}
	return p.accept("SELECT") || p.accept("WITH") || p.accept("SHOW") || p.accept("EXPLAIN")
}
