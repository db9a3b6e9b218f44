package main

import (
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// Access knows users, passwords and rights, which libchdb has none of: everything runs as its only user. What is emulated:
//
//   - CREATE, ALTER and DROP USER with one or more passwords (sha256_password, sha256_hash, with SALT, VALID UNTIL) and SETTINGS,
//   - GRANT and REVOKE of privileges on all, on databases and on tables (not on columns),
//   - CREATE, ALTER and DROP QUOTA: quotas are kept and shown, and limit nothing,
//   - SHOW GRANTS, and system.users, system.grants and system.quotas in other statements (of the columns that [Access.Rewrite] names).
//
// Roles, row policies and settings profiles are refused. Statements are judged by the tables that they name; the users of the
// configuration may do everything.
type Access struct {
	mu    sync.Mutex
	path  string
	admin map[string]string // SHA-256 of the password in hexadecimal digits; "" takes any
	state accessState
}

type accessState struct {
	Users  map[string]*account
	Quotas map[string]string // the statement
}

type account struct {
	Passwords []password
	Settings  map[string]string
	Grants    []grant
}

type password struct {
	// Hash is of the password and the salt.
	Hash, Salt string
	Until      time.Time
}

type grant struct {
	Privilege, Database, Table string
	Option                     bool
}

// OpenAccess reads what an earlier process has kept.
func OpenAccess(path string, configured configuredUsers) (*Access, error) {
	a := &Access{path: path, admin: map[string]string{}, state: accessState{map[string]*account{}, map[string]string{}}}
	for _, user := range configured.Users.All {
		a.admin[user.XMLName.Local] = strings.ToLower(user.SHA256)
	}
	content, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return a, nil
	}
	if err != nil {
		return nil, err
	}
	return a, json.Unmarshal(content, &a.state)
}

// save keeps the state; a.mu is held.
func (a *Access) save() error {
	content, err := json.Marshal(a.state)
	if err != nil {
		return err
	}
	if err := os.WriteFile(a.path+".new", content, 0o600); err != nil {
		return err
	}
	return os.Rename(a.path+".new", a.path)
}

// Authenticate returns the user, or ClickHouse's exception for all that may be wrong.
func (a *Access) Authenticate(user, given string) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if hash, ok := a.admin[user]; ok && (hash == "" || same(hash, digest(given))) {
		return user, nil
	}
	if known := a.state.Users[user]; known != nil {
		for _, one := range known.Passwords {
			if same(one.Hash, digest(given+one.Salt)) && (one.Until.IsZero() || time.Now().Before(one.Until)) {
				return user, nil
			}
		}
	}
	return "", exception(516, "AUTHENTICATION_FAILED", user+": Authentication failed: password is incorrect, or there is no user with such name")
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// Settings are those that a user's sessions begin with.
func (a *Access) Settings(user string) map[string]string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if known := a.state.Users[user]; known != nil && known.Settings != nil {
		return maps.Clone(known.Settings)
	}
	return map[string]string{}
}

// Run runs a statement about access, and checks whether the user may run any other. A statement that has been run comes back
// as one that answers for it, "" where it answers nothing; nil is one for the engine.
func (a *Access) Run(user, database, sql string) (answer *string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := &parser{tokens: tokensOf(sql)}
	_, admin := a.admin[user]
	if p.accept("SHOW", "GRANTS") {
		shown := a.showGrants(p, user)
		return &shown, nil
	}
	change := a.change(p)
	if change == nil {
		if admin {
			return nil, nil
		}
		return nil, a.check(user, database, sql)
	}
	if !admin {
		return nil, denied(user, "ACCESS MANAGEMENT ON *.*")
	}
	if err := change(); err != nil {
		return nil, err
	}
	return new(string), a.save()
}

func denied(user, right string) error {
	return exception(497, "ACCESS_DENIED", user+": Not enough privileges. To execute this query, it's necessary to have the grant "+right)
}

// change is what a statement about access does; nil for others.
func (a *Access) change(p *parser) func() error {
	switch {
	case p.accept("CREATE", "USER"):
		return func() error { return a.createUser(p) }
	case p.accept("ALTER", "USER"):
		return func() error { return a.alterUser(p) }
	case p.accept("DROP", "USER"):
		return func() error { return drop(p, a.state.Users, 192, "UNKNOWN_USER") }
	case p.accept("CREATE", "QUOTA"), p.accept("ALTER", "QUOTA"):
		return func() error { return a.keepQuota(p) }
	case p.accept("DROP", "QUOTA"):
		return func() error { return drop(p, a.state.Quotas, 199, "UNKNOWN_QUOTA") }
	case p.accept("GRANT"):
		return func() error { return a.grant(p, true) }
	case p.accept("REVOKE"):
		return func() error { return a.grant(p, false) }
	}
	for _, verb := range []string{"CREATE", "ALTER", "DROP"} {
		for _, kind := range [][]string{{verb, "ROLE"}, {verb, "ROW", "POLICY"}, {verb, "SETTINGS", "PROFILE"}} {
			if p.accept(kind...) {
				return func() error { return exception(48, "NOT_IMPLEMENTED", strings.Join(kind, " ")+" is not emulated here") }
			}
		}
	}
	return nil
}

// onCluster goes past ON CLUSTER name.
func onCluster(p *parser) {
	if p.accept("ON", "CLUSTER") {
		p.next()
	}
}

func drop[T any](p *parser, from map[string]T, code int, problem string) error {
	ifExists := p.accept("IF", "EXISTS")
	for _, name := range p.names() {
		if _, ok := from[name]; !ok && !ifExists {
			return exception(code, problem, "There is no `"+name+"` in user directories")
		}
		delete(from, name)
	}
	return nil
}

func (a *Access) createUser(p *parser) error {
	ifNotExists, replace := p.accept("IF", "NOT", "EXISTS"), p.accept("OR", "REPLACE")
	for _, name := range p.names() {
		_, isAdmin := a.admin[name]
		if a.state.Users[name] != nil || isAdmin {
			if ifNotExists {
				return nil
			}
			if !replace {
				return exception(493, "ACCESS_ENTITY_ALREADY_EXISTS", "user `"+name+"`: cannot insert because user `"+name+"` already exists")
			}
		}
		at := p.at
		created := &account{}
		if err := created.read(p); err != nil {
			return err
		}
		p.at = at
		a.state.Users[name] = created
	}
	return nil
}

func (a *Access) alterUser(p *parser) error {
	ifExists := p.accept("IF", "EXISTS")
	for _, name := range p.names() {
		known := a.state.Users[name]
		if known == nil {
			if ifExists {
				continue
			}
			return exception(192, "UNKNOWN_USER", "There is no user `"+name+"` in user directories")
		}
		at := p.at
		changed := *known
		if err := changed.read(p); err != nil {
			return err
		}
		p.at = at
		*known = changed
	}
	return nil
}

// read reads what CREATE USER and ALTER USER say behind the names.
func (u *account) read(p *parser) error {
	for !p.ended() {
		switch {
		case p.accept("ON", "CLUSTER"):
			p.next()
		case p.accept("NOT", "IDENTIFIED"):
			u.Passwords = []password{{Hash: digest("")}}
		case p.accept("ADD", "IDENTIFIED"):
			more, err := readPasswords(p)
			if err != nil {
				return err
			}
			u.Passwords = append(slices.Clone(u.Passwords), more...)
		case p.accept("IDENTIFIED"):
			given, err := readPasswords(p)
			if err != nil {
				return err
			}
			u.Passwords = given
		case p.accept("RESET", "AUTHENTICATION", "METHODS", "TO", "NEW"):
			u.Passwords = u.Passwords[max(0, len(u.Passwords)-1):]
		case p.accept("SETTINGS"):
			u.Settings = readSettings(p)
		case p.accept("HOST", "ANY"), p.accept("HOST", "LOCAL"):
		case p.accept("DEFAULT", "DATABASE"):
			p.next()
		default:
			return exception(62, "SYNTAX_ERROR", "Syntax error: failed at "+p.peek().value+", or it is not emulated here")
		}
	}
	return nil
}

// readPasswords reads [WITH method] BY 'password', …
func readPasswords(p *parser) ([]password, error) {
	var given []password
	for {
		method := "sha256_password"
		if p.accept("WITH") || len(given) > 0 {
			method = strings.ToLower(p.next().value)
		}
		if !p.accept("BY") {
			return nil, exception(62, "SYNTAX_ERROR", "Syntax error: expected BY")
		}
		value := p.next().value
		one := password{}
		switch method {
		case "sha256_password", "plaintext_password":
			one.Hash = digest(value)
		case "sha256_hash":
			one.Hash = strings.ToLower(value)
			if decoded, err := hex.DecodeString(value); err != nil || len(decoded) != sha256.Size {
				return nil, exception(36, "BAD_ARGUMENTS", "Password hash for the 'SHA256_PASSWORD' authentication type must have length exactly 32 bytes")
			}
			if p.accept("SALT") {
				one.Salt = p.next().value
			}
		default:
			return nil, exception(48, "NOT_IMPLEMENTED", "Passwords by "+method+" are not emulated here")
		}
		if p.accept("VALID", "UNTIL") {
			until, err := time.Parse(time.DateTime, p.next().value)
			if err != nil {
				return nil, exception(41, "CANNOT_PARSE_DATETIME", "VALID UNTIL needs YYYY-MM-DD hh:mm:ss, in UTC")
			}
			one.Until = until
		}
		given = append(given, one)
		if !p.accept(",") {
			return given, nil
		}
	}
}

func readSettings(p *parser) map[string]string {
	settings := map[string]string{}
	for {
		name := p.next().value
		p.accept("=")
		settings[name] = p.next().value
		for p.accept("READONLY") || p.accept("CONST") || p.accept("WRITABLE") {
		}
		if !p.accept(",") {
			return settings
		}
	}
}

func (a *Access) keepQuota(p *parser) error {
	for p.accept("IF", "NOT", "EXISTS") || p.accept("OR", "REPLACE") || p.accept("IF", "EXISTS") {
	}
	name := p.next().value
	var said []string
	for _, t := range p.tokens {
		said = append(said, t.value)
	}
	a.state.Quotas[name] = strings.Join(said, " ")
	return nil
}

// grant reads privileges ON object TO users, several of them with commas between.
func (a *Access) grant(p *parser, add bool) error {
	onCluster(p)
	option := p.accept("GRANT", "OPTION", "FOR")
	given, err := readGrants(p)
	if err != nil {
		return err
	}
	if !p.accept("TO") && !p.accept("FROM") {
		return exception(62, "SYNTAX_ERROR", "Syntax error: expected TO or FROM")
	}
	names := p.names()
	option = p.accept("WITH", "GRANT", "OPTION") || option
	for _, name := range names {
		known := a.state.Users[name]
		if known == nil {
			return exception(511, "UNKNOWN_ROLE", "There is no role `"+name+"` in `user directories`")
		}
		for _, one := range given {
			one.Option = option && add
			known.Grants = slices.DeleteFunc(known.Grants, func(had grant) bool {
				return (covers(one.Privilege, had.Privilege) || had.Privilege == one.Privilege) && within(object{one.Database, one.Table}, object{had.Database, had.Table})
			})
			if add {
				known.Grants = append(known.Grants, one)
			}
		}
		slices.SortFunc(known.Grants, func(a, b grant) int {
			return cmp.Or(strings.Compare(a.Database, b.Database), strings.Compare(a.Table, b.Table), strings.Compare(a.Privilege, b.Privilege))
		})
	}
	return nil
}

func readGrants(p *parser) ([]grant, error) {
	var given []grant
	for {
		var privileges []string
		for begin := true; begin || p.accept(","); begin = false {
			var words []string
			for !p.ended() && p.peek().kind == word && !p.peek().is("ON") {
				words = append(words, strings.ToUpper(p.next().value))
			}
			if p.peek().is("(") {
				return nil, exception(48, "NOT_IMPLEMENTED", "Rights on columns are not emulated here")
			}
			privileges = append(privileges, strings.TrimSuffix(strings.Join(words, " "), " PRIVILEGES"))
		}
		if !p.accept("ON") {
			return nil, exception(48, "NOT_IMPLEMENTED", "Roles are not emulated here")
		}
		on := p.object("*")
		for _, privilege := range privileges {
			given = append(given, grant{Privilege: privilege, Database: on.database, Table: on.table})
		}
		if !p.accept(",") {
			return given, nil
		}
	}
}
