package stream

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// ErrDenied says that the connection's own user may not administer Redis: ACL and FUNCTION are needed.
var ErrDenied = errors.New("the Redis user may not administer users or functions")

// User is an ACL user of one property and role.
type User struct {
	// Name is the user's name in Redis.
	Name string
	// Password is what its pods authenticate with.
	Password string
	// KeepPasswords leaves other passwords of the user in force, for as long as pods may still use them.
	KeepPasswords bool
	Access        Access
	// Namespace and Property are whose keys the user may use.
	Namespace, Property string

	database int // where the keys are
}

// Users administers the ACL users of a Redis, on every node, for Redis does not replicate them. It is safe for
// concurrent use.
type Users struct {
	client *Client

	mu sync.Mutex
	// lines are the users as the nodes worded them after they were set, by node and user: Redis rewrites rules,
	// so what was asked for cannot be compared with what it lists.
	lines map[nodeUser]userLine
	// seed is of the lines' digests. A line has some 3 kB, and there are three for each property.
	seed maphash.Seed
	// seen says of each node when its users were as they should be.
	seen map[string]usersSeen
}

// usersSeen is what a node said of the changes to its users when these were as they should be, and how many looks have
// gone by it since.
type usersSeen struct {
	changes string
	looks   int
}

// mostLooks is how many looks in a row go by what a node says of changes: its list of users, of 8 MB for 1,000 properties,
// is read again all the same.
const mostLooks = 20

type nodeUser struct{ node, user string }

// userLine is what was asked for, and the digest of how the node words it where that has been looked at.
type userLine struct {
	asked  User
	looked bool
	line   uint64
}

// NewUsers prepares the administration; nothing is sent.
func NewUsers(client *Client) *Users {
	return &Users{client: client, lines: map[nodeUser]userLine{}, seed: maphash.MakeSeed(), seen: map[string]usersSeen{}}
}

// Set makes the users what they should be on every node, without looking at what is there: those that were set
// already are not set again. It costs nothing where nothing is new; [Users.Check] finds what has gone since. The
// error is [ErrDenied] where the connection's user may not.
func (u *Users) Set(ctx context.Context, users []User) error {
	return u.client.eachNode(ctx, func(ctx context.Context, node *redis.Client) error {
		u.mu.Lock() // nodes one after the other: there are few, and rarely anything to do
		defer u.mu.Unlock()
		changed := false
		for _, user := range users {
			user.database = node.Options().DB
			at := nodeUser{node.Options().Addr, user.Name}
			if u.lines[at].asked == user {
				continue
			}
			var others []string
			if user.KeepPasswords {
				var err error
				if others, err = passwords(ctx, node, user.Name); err != nil {
					return err
				}
			}
			if err := u.set(ctx, node, user, others); err != nil {
				return err
			}
			changed = true
		}
		if !changed {
			return nil
		}
		return saveUsers(ctx, node)
	})
}

// Check looks at every node's users and puts right what is missing or has been changed by somebody else. It returns
// how many users it had to set. What the users should be is asked for each node while nothing else is done to them, so that
// one who is being removed is not put back.
func (u *Users) Check(ctx context.Context, users func() []User) (int, error) {
	repaired := 0
	err := u.client.eachNode(ctx, func(ctx context.Context, node *redis.Client) error {
		u.mu.Lock()
		defer u.mu.Unlock()
		n, err := u.check(ctx, node, users())
		repaired += n
		return err
	})
	return repaired, err
}

func (u *Users) check(ctx context.Context, node *redis.Client, users []User) (int, error) {
	address := node.Options().Addr
	changes, err := userChanges(ctx, node)
	if err != nil {
		return 0, err
	}
	seen := u.seen[address]
	if changes != "" && changes == seen.changes && seen.looks < mostLooks && u.allLookedAt(node, users) {
		u.seen[address] = usersSeen{changes, seen.looks + 1}
		return 0, nil
	}
	delete(u.seen, address)
	listed, err := listUsers(ctx, node)
	if err != nil {
		return 0, err
	}
	repaired, set := 0, map[nodeUser]string{}
	for _, user := range users {
		user.database = node.Options().DB
		at, line := nodeUser{node.Options().Addr, user.Name}, listed[user.Name]
		known := u.lines[at]
		if line != "" && known == (userLine{user, true, maphash.String(u.seed, line)}) {
			continue
		}
		// One that was set without a look afterwards is set once more: what is listed now may be somebody else's.
		if line == "" || known.looked {
			repaired++
		}
		var others []string
		if user.KeepPasswords {
			others = hashes(line)
		}
		if err := u.set(ctx, node, user, others); err != nil {
			return repaired, err
		}
		set[at] = user.Name
	}
	if len(set) == 0 {
		u.seen[address] = usersSeen{changes: changes}
		return 0, nil
	}
	if listed, err = listUsers(ctx, node); err != nil {
		return repaired, err
	}
	for at, name := range set {
		known := u.lines[at]
		known.looked, known.line = true, maphash.String(u.seed, listed[name])
		u.lines[at] = known
	}
	return repaired, saveUsers(ctx, node)
}

// allLookedAt says whether each of the users was asked for before and seen to be there.
func (u *Users) allLookedAt(node *redis.Client, users []User) bool {
	return !slices.ContainsFunc(users, func(user User) bool {
		user.database = node.Options().DB
		known := u.lines[nodeUser{node.Options().Addr, user.Name}]
		return known.asked != user || !known.looked
	})
}

// userChanges returns a text that is another one whenever somebody has changed a node's users, or it has been started anew; ""
// where the node does not say, as where INFO is refused, or a proxy or a provider leaves sections out.
func userChanges(ctx context.Context, node *redis.Client) (string, error) {
	process, err := info(ctx, node, "server", "run_id")
	if errors.Is(err, ErrInfoDenied) || err == nil && process == "" {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	counts, err := node.Info(ctx, "commandstats").Result()
	if _, refused := errors.AsType[redis.Error](err); refused {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reach redis: %w", err)
	}
	if !strings.Contains(counts, "cmdstat_") { // of this very command there would be one
		return "", nil
	}
	for _, command := range []string{"setuser", "deluser", "load"} {
		process += " " + infoField(counts, "cmdstat_acl|"+command)
	}
	return process, nil
}

// set makes a user on a node what it should be; others are hashes of passwords that stay in force.
func (u *Users) set(ctx context.Context, node *redis.Client, user User, others []string) error {
	if err := node.ACLSetUser(ctx, user.Name, user.rules(others)...).Err(); err != nil {
		return deniedOr(fmt.Errorf("set Redis user %s: %w", user.Name, err))
	}
	u.lines[nodeUser{node.Options().Addr, user.Name}] = userLine{asked: user}
	return nil
}

// Remove removes users from every node; those that are not there are no error. Their connections end.
func (u *Users) Remove(ctx context.Context, names ...string) error {
	return u.client.eachNode(ctx, func(ctx context.Context, node *redis.Client) error {
		u.mu.Lock()
		defer u.mu.Unlock()
		arguments := []any{"acl", "deluser"}
		for _, name := range names {
			arguments = append(arguments, name)
		}
		removed, err := node.Do(ctx, arguments...).Int()
		if err != nil {
			return deniedOr(fmt.Errorf("remove Redis users: %w", err))
		}
		maps.DeleteFunc(u.lines, func(at nodeUser, _ userLine) bool { return slices.Contains(names, at.user) })
		if removed == 0 {
			return nil
		}
		return saveUsers(ctx, node)
	})
}

// rules are the arguments of ACL SETUSER. others are hashes of passwords that stay in force.
func (u User) rules(others []string) []string {
	sum := sha256.Sum256([]byte(u.Password))
	own := "#" + hex.EncodeToString(sum[:])
	all := append(slices.DeleteFunc(slices.Clone(others), func(other string) bool { return other == own }), own)
	slices.Sort(all)
	return append(u.Access.Rules(u.Namespace, u.Property, u.database), all...)
}

// hashes returns the words of a line of ACL LIST that are hashes of passwords, with the # before them.
func hashes(line string) []string {
	var found []string
	for word := range strings.FieldsSeq(line) {
		if strings.HasPrefix(word, "#") {
			found = append(found, word)
		}
	}
	return found
}

// passwords returns the hashes of one user's passwords, with the # before them; none where there is no such user.
func passwords(ctx context.Context, node *redis.Client, name string) ([]string, error) {
	reply, err := node.Do(ctx, "acl", "getuser", name).Slice()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	if err != nil {
		return nil, deniedOr(fmt.Errorf("look for Redis user %s: %w", name, err))
	}
	var found []string
	for i := 0; i+1 < len(reply); i += 2 {
		if values, isList := reply[i+1].([]any); isList && reply[i] == "passwords" {
			for _, value := range values {
				found = append(found, fmt.Sprint("#", value))
			}
		}
	}
	return found, nil
}

// listUsers returns the node's users, each as ACL LIST words it.
func listUsers(ctx context.Context, node *redis.Client) (map[string]string, error) {
	lines, err := node.ACLList(ctx).Result()
	if err != nil {
		return nil, deniedOr(fmt.Errorf("list Redis users: %w", err))
	}
	users := make(map[string]string, len(lines))
	for _, line := range lines {
		if words, isUser := strings.CutPrefix(line, "user "); isUser {
			name, _, _ := strings.Cut(words, " ")
			users[name] = line
		}
	}
	return users, nil
}

// saveUsers writes the users to the node's ACL file, so that they outlive its restart. A node without one forgets
// them then; the next check puts them back.
func saveUsers(ctx context.Context, node *redis.Client) error {
	err := node.Do(ctx, "acl", "save").Err()
	if err == nil || strings.Contains(err.Error(), "not configured to use an ACL file") {
		return nil
	}
	return deniedOr(fmt.Errorf("save Redis users: %w", err))
}

// deniedOr makes [ErrDenied] of Redis's own words for it.
func deniedOr(err error) error {
	text := err.Error()
	if strings.Contains(text, "NOPERM") || strings.Contains(text, "unknown command") {
		return fmt.Errorf("%w: %w", ErrDenied, err)
	}
	return err
}

// Denied says whether Redis has refused a command, or a transaction with one, because the connection's own user may not use it.
func Denied(err error) bool {
	return errors.Is(err, ErrDenied) || redis.HasErrorPrefix(err, "NOPERM") || redis.HasErrorPrefix(err, "EXECABORT")
}

// eachNode calls do for the one server, or for each node of a cluster or that Sentinels name, replicas too: one that takes
// over has what it needs then.
func (c *Client) eachNode(ctx context.Context, do func(context.Context, *redis.Client) error) error {
	if c.sentinels != nil {
		return c.sentinels.eachNode(ctx, do)
	}
	switch client := c.redis.(type) {
	case *redis.ClusterClient:
		return client.ForEachShard(ctx, do)
	case *redis.Client:
		return do(ctx, client)
	default:
		return fmt.Errorf("no way to reach the nodes of a %T", client)
	}
}
