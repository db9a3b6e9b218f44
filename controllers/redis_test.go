package controllers_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/redisserver"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/collector/role"
	"github.com/weir-dev/weir/controllers"
)

// dial speaks to a Redis as a URL says.
func dial(t testing.TB, address string) *redis.Client {
	t.Helper()
	options, err := redis.ParseURL(address)
	if err != nil {
		t.Fatal(err)
	}
	options.Protocol = 2
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// asRole speaks to Redis as the pods of a role do.
func asRole(t testing.TB, namespace, property, role string) *redis.Client {
	t.Helper()
	secret := get(t, &corev1.Secret{}, namespace, property+"-redis-"+role)
	return dial(t, string(secret.Data["url"]))
}

func TestEachRoleMayDoItsWorkInRedisAndNothingElse(t *testing.T) {
	namespace := newNamespace(t)
	address := redistest.URL(t)
	startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: address}})
	create(t, property(namespace, "shop"))
	create(t, property(namespace, "other"))
	settled(t, namespace, "shop")
	settled(t, namespace, "other")
	admin := dial(t, address)
	ctx := context.Background()
	own, others := "weir:{"+namespace+"/shop}:events", "weir:{"+namespace+"/other}:events"
	for _, key := range []string{own, others} {
		if err := admin.XAdd(ctx, &redis.XAddArgs{Stream: key, Values: []string{"e", "x"}}).Err(); err != nil {
			t.Fatal(err)
		}
	}

	tests := map[string]struct {
		role    string
		command []any
		allowed bool
	}{
		"the collector appends to its stream":              {"collector", []any{"xadd", own, "*", "e", "y"}, true},
		"the collector cannot read its own stream":         {"collector", []any{"xrange", own, "-", "+"}, false},
		"the collector cannot tail its own stream":         {"collector", []any{"xread", "streams", own, "0"}, false},
		"the collector cannot append to another's stream":  {"collector", []any{"xadd", others, "*", "e", "y"}, false},
		"the collector cannot trim":                        {"collector", []any{"xtrim", own, "maxlen", "0"}, false},
		"the collector cannot evaluate scripts":            {"collector", []any{"eval", "return 1", "0"}, false},
		"the collector cannot load scripts":                {"collector", []any{"script", "load", "return 1"}, false},
		"the collector cannot load functions":              {"collector", []any{"function", "list"}, false},
		"the collector cannot read the configuration":      {"collector", []any{"config", "get", "*"}, false},
		"the collector cannot list users":                  {"collector", []any{"acl", "list"}, false},
		"the collector cannot see all keys":                {"collector", []any{"keys", "*"}, false},
		"the collector cannot empty Redis":                 {"collector", []any{"flushall"}, false},
		"the deliverer reads its stream":                   {"deliverer", []any{"xrange", own, "-", "+"}, true},
		"the deliverer cannot read another's stream":       {"deliverer", []any{"xrange", others, "-", "+"}, false},
		"the deliverer cannot evaluate scripts":            {"deliverer", []any{"eval", "return 1", "0"}, false},
		"the query role reads its stream":                  {"query", []any{"xrange", own, "-", "+"}, true},
		"the query role cannot append":                     {"query", []any{"xadd", own, "*", "e", "y"}, false},
		"the query role cannot read another's stream":      {"query", []any{"xread", "streams", others, "0"}, false},
		"the query role cannot remove its stream":          {"query", []any{"unlink", own}, false},
		"the query role cannot administer functions":       {"query", []any{"function", "flush"}, false},
		"the query role cannot change the configuration":   {"query", []any{"config", "set", "maxmemory", "1"}, false},
		"the deliverer cannot change the configuration":    {"deliverer", []any{"config", "set", "maxmemory", "1"}, false},
		"the deliverer cannot load functions":              {"deliverer", []any{"function", "load", "x"}, false},
		"the deliverer cannot touch another's consumers":   {"deliverer", []any{"xgroup", "create", others, "g", "0"}, false},
		"the collector cannot call functions on another's": {"collector", []any{"fcall", "weir_allow", "1", others, "1", "1"}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := asRole(t, namespace, "shop", test.role).Do(ctx, test.command...).Err()
			denied := err != nil && strings.Contains(err.Error(), "NOPERM")
			if denied == test.allowed || (test.allowed && err != nil) {
				t.Errorf("%v: got %v, want allowed %v", test.command, err, test.allowed)
			}
		})
	}
}

// intact says whether a node has the Property's users, each with its own rights and no more, and the functions.
func intact(admin *redis.Client, namespace, property string) error {
	ctx := context.Background()
	stream := "weir:{" + namespace + "/" + property + "}:events"
	for role, may := range map[string]string{"collector": "xadd", "deliverer": "xtrim", "query": "xread"} {
		user := "weir:" + namespace + "/" + property + ":" + role
		for command, want := range map[string]bool{may: true, "config": false, "eval": false, "flushall": false} {
			arguments := map[string][]any{
				"xadd": {stream, "*", "e", "x"}, "xtrim": {stream, "maxlen", "0"}, "xread": {"streams", stream, "0"},
				"config": {"get", "*"}, "eval": {"return 1", "0"},
			}[command]
			answer, err := admin.Do(ctx, append([]any{"acl", "dryrun", user, command}, arguments...)...).Text()
			if err != nil {
				return fmt.Errorf("%s %s: %w", user, command, err)
			}
			if (answer == "OK") != want {
				return fmt.Errorf("%s %s: %s", user, command, answer)
			}
		}
	}
	libraries, err := admin.FunctionList(ctx, redis.FunctionListQuery{LibraryNamePattern: "weir*"}).Result()
	if err == nil && len(libraries) != 1 {
		err = fmt.Errorf("there are %d libraries", len(libraries))
	}
	return err
}

func TestUsersAndFunctionsComeBackAfterRedisForgotThem(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	redisServer := redistest.Start(t, redisserver.Options{})
	startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: redisServer.URL()}})
	create(t, property(namespace, "shop"))
	settled(t, namespace, "shop")
	admin, ctx := dial(t, redisServer.URL()), context.Background()
	back := func(t *testing.T) {
		t.Helper()
		eventually(t, func() error { return intact(admin, namespace, "shop") })
		for _, role := range []string{"collector", "deliverer", "query"} {
			if err := asRole(t, namespace, "shop", role).Ping(ctx).Err(); err != nil {
				t.Errorf("the %s cannot use Redis: %v", role, err)
			}
		}
	}
	back(t)
	t.Run("a user, another's rights, a third's bounds and the library", func(t *testing.T) {
		user := "weir:" + namespace + "/shop:"
		for _, command := range [][]any{
			{"acl", "deluser", user + "collector"},
			{"acl", "setuser", user + "deliverer", "resetkeys"},
			{"acl", "setuser", user + "query", "+@all"},
			{"function", "flush"},
			{"flushall"},
		} {
			if err := admin.Do(ctx, command...).Err(); err != nil {
				t.Fatal(err)
			}
		}
		if intact(admin, namespace, "shop") == nil {
			t.Fatal("nothing has been forgotten")
		}
		back(t)
	})
	t.Run("everything, in a restart without an ACL file", func(t *testing.T) {
		if err := redisServer.Restart(ctx); err != nil {
			t.Fatal(err)
		}
		back(t)
	})
}

func TestEveryNodeOfAClusterHasUsersAndFunctions(t *testing.T) {
	t.Parallel()
	namespace, ctx := newNamespace(t), context.Background()
	cluster := redistest.StartClusterWith(t, redistest.ClusterOptions{Replicas: 1})
	var nodes []*redis.Client
	for _, address := range cluster.Nodes {
		nodes = append(nodes, dial(t, address))
	}
	startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: cluster.URL}})
	evicting := func(policy string) {
		if err := nodes[1].ConfigSet(ctx, "maxmemory-policy", policy).Err(); err != nil {
			t.Fatal(err)
		}
	}
	evicting("allkeys-lru")
	create(t, property(namespace, "shop", func(p *v1alpha1.Property) { p.Spec.DeletionPolicy = v1alpha1.DeletionPolicyDelete }))
	waitFor(t, namespace, "shop", v1alpha1.ConditionRedisReady, metav1.ConditionFalse, v1alpha1.ReasonEvictionEnabled)
	evicting("noeviction")
	settled(t, namespace, "shop")
	back := func(t *testing.T) {
		t.Helper()
		for i, node := range nodes {
			eventually(t, func() error {
				if err := intact(node, namespace, "shop"); err != nil {
					return fmt.Errorf("node %d: %w", i, err)
				}
				return nil
			})
		}
	}
	back(t)

	t.Run("the pods use it, with their own users", func(t *testing.T) {
		collect, _ := pod(t, namespace, "shop", "collector", role.Collect)
		read, _ := pod(t, namespace, "shop", "query", role.Query)
		if got := send(t, collect, credential(t, namespace, "shop", "api-key.default")); got != http.StatusAccepted {
			t.Errorf("collecting is answered %d", got)
		}
		eventually(t, func() error {
			if status, body := list(t, read, "shop", credential(t, namespace, "shop", "access-token.default")); status != http.StatusOK || !strings.Contains(body, "pageview") {
				return fmt.Errorf("the read API answers %d without the event", status)
			}
			return nil
		})
	})
	t.Run("one node forgets a user, another the library, a third everything in a restart", func(t *testing.T) {
		if err := nodes[0].Do(ctx, "acl", "deluser", "weir:"+namespace+"/shop:query").Err(); err != nil {
			t.Fatal(err)
		}
		if err := nodes[1].FunctionFlush(ctx).Err(); err != nil {
			t.Fatal(err)
		}
		if err := cluster.Servers[2].Restart(ctx); err != nil {
			t.Fatal(err)
		}
		back(t)
		settled(t, namespace, "shop")
	})
	t.Run("a deletion removes users and data from every node", func(t *testing.T) {
		deleted(t, namespace, "shop")
		for i, node := range nodes {
			users, err := node.ACLList(ctx).Result()
			if keys := node.Keys(ctx, "*").Val(); err != nil || len(users) != 1 || len(keys) > 0 {
				t.Errorf("node %d has the users %v and keys %v, error %v", i, users, keys, err)
			}
		}
	})
}

// TestTheUserOfAnOwnersRedisMayChange puts another user into a Redis URL that the owner brings: the operator goes on as
// that user and never comes back as the one before.
func TestTheUserOfAnOwnersRedisMayChange(t *testing.T) {
	t.Parallel()
	namespace, address, ctx := newNamespace(t), tenantsRedis(t), context.Background()
	admin := dial(t, address)
	do := func(command ...any) {
		t.Helper()
		if err := admin.Do(ctx, command...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	do("acl", "setuser", "first", "on", ">one", "~*", "&*", "+@all")
	do("acl", "setuser", "second", "on", ">two", "~*", "&*", "+@all")
	startOperator(t, operatorOptions{namespaces: []string{namespace}})
	create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mine"}, StringData: map[string]string{"url": withUser(t, address, "first", "one")}})
	create(t, property(namespace, "shop", ownRedis("mine")))
	settled(t, namespace, "shop")
	before := string(get(t, &corev1.Secret{}, namespace, "shop-redis-query").Data["url"])

	change(t, &corev1.Secret{}, namespace, "mine", func(s *corev1.Secret) { s.Data["url"] = []byte(withUser(t, address, "second", "two")) })
	eventually(t, func() error {
		list, err := admin.ClientList(ctx).Result()
		if err == nil && !strings.Contains(list, "user=second") {
			err = errors.New("the operator is not there as the second user")
		}
		return err
	})
	do("acl", "deluser", "first")
	do("acl", "log", "reset")
	do("acl", "deluser", "weir:"+namespace+"/shop:query")
	eventually(t, func() error { return intact(admin, namespace, "shop") })
	if entries, err := admin.ACLLog(ctx, 10).Result(); err != nil || len(entries) > 0 {
		t.Errorf("Redis refused something, error %v: %+v", err, entries)
	}
	settled(t, namespace, "shop")
	if now := string(get(t, &corev1.Secret{}, namespace, "shop-redis-query").Data["url"]); now != before {
		t.Error("the pods have another URL, though the Redis and their users are the same")
	}
}

func TestARedisThatIsNotFitIsAConditionThatHealsByItself(t *testing.T) {
	t.Parallel()
	t.Run("evicting", func(t *testing.T) {
		namespace := newNamespace(t)
		address := redistest.URL(t)
		admin, ctx := dial(t, address), context.Background()
		if err := admin.ConfigSet(ctx, "maxmemory-policy", "allkeys-lru").Err(); err != nil {
			t.Fatal(err)
		}
		startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: address}})
		create(t, property(namespace, "shop"))
		waitFor(t, namespace, "shop", v1alpha1.ConditionRedisReady, metav1.ConditionFalse, v1alpha1.ReasonEvictionEnabled)
		if err := admin.ConfigSet(ctx, "maxmemory-policy", "noeviction").Err(); err != nil {
			t.Fatal(err)
		}
		settled(t, namespace, "shop")
	})
	t.Run("whose default user may not run what is replayed", func(t *testing.T) {
		namespace := newNamespace(t)
		address, err := url.Parse(redistest.URL(t))
		if err != nil {
			t.Fatal(err)
		}
		first, ctx := dial(t, address.String()), context.Background()
		if err := errors.Join(first.ConfigSet(ctx, "appendonly", "yes").Err(),
			first.ACLSetUser(ctx, "administrator", "on", ">password", "~*", "&*", "+@all").Err(),
			first.ACLSetUser(ctx, "default", "-@all", "+ping").Err()); err != nil {
			t.Fatal(err)
		}
		address.User = url.UserPassword("administrator", "password")
		startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: address.String()}})
		create(t, property(namespace, "shop"))
		waitFor(t, namespace, "shop", v1alpha1.ConditionRedisReady, metav1.ConditionFalse, v1alpha1.ReasonRedisUnsupported)
		if err := dial(t, address.String()).ACLSetUser(ctx, "default", "off", "~*", "&*", "+@all").Err(); err != nil {
			t.Fatal(err)
		}
		settled(t, namespace, "shop")
	})
	t.Run("gone and back", func(t *testing.T) {
		namespace := newNamespace(t)
		redisServer := redistest.Start(t, redisserver.Options{Loopback: true})
		startOperator(t, operatorOptions{namespaces: []string{namespace}})
		create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mine"}, StringData: map[string]string{"url": "redis://127.0.0.1:1"}})
		create(t, property(namespace, "shop", ownRedis("mine")))
		waitFor(t, namespace, "shop", v1alpha1.ConditionRedisReady, metav1.ConditionFalse, v1alpha1.ReasonRedisUnreachable)
		change(t, &corev1.Secret{}, namespace, "mine", func(s *corev1.Secret) { s.Data["url"] = []byte(redisServer.URL()) })
		settled(t, namespace, "shop")
	})
}

// tenantsRedis starts a Redis of its own for the test, where a tenant's can be: not at a socket of the machine.
func tenantsRedis(t testing.TB) string {
	t.Helper()
	return redistest.Start(t, redisserver.Options{Loopback: true}).URL()
}

func ownRedis(secret string) func(*v1alpha1.Property) {
	return func(p *v1alpha1.Property) {
		p.Spec.Redis = &v1alpha1.Redis{URLSecretKeyRef: &v1alpha1.SecretKeyReference{Name: secret, Key: "url"}}
	}
}

// TestTheDocumentedRightsSuffice gives the operator's user what docs/operate/redis.md says, and no more.
func TestTheDocumentedRightsSuffice(t *testing.T) {
	page, err := os.ReadFile("../docs/operate/redis.md")
	if err != nil {
		t.Fatal(err)
	}
	address := tenantsRedis(t)
	admin, ctx := dial(t, address), context.Background()
	granted := func(t *testing.T, begins, name string) string {
		t.Helper()
		_, rules, found := strings.Cut(string(page), begins)
		if !found {
			t.Fatalf("the page says nothing that begins with %q", begins)
		}
		rules, _, _ = strings.Cut(rules, "\n")
		rules, _, _ = strings.Cut(rules, "`")
		arguments := []any{"acl", "setuser", name, "on", ">secret"}
		for rule := range strings.FieldsSeq(rules) {
			arguments = append(arguments, rule)
		}
		if err := admin.Do(ctx, arguments...).Err(); err != nil {
			t.Fatal(err)
		}
		return withUser(t, address, name, "secret")
	}
	t.Run("for the operator", func(t *testing.T) {
		namespace := newNamespace(t)
		startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: granted(t, "ACL SETUSER weir on >PASSWORD ", "weir")}})
		for name, policy := range map[string]v1alpha1.DeletionPolicy{"kept": v1alpha1.DeletionPolicyRetain, "erased": v1alpha1.DeletionPolicyDelete} {
			create(t, property(namespace, name, func(p *v1alpha1.Property) { p.Spec.DeletionPolicy = policy }))
			settled(t, namespace, name)
			deleted(t, namespace, name)
		}
	})
	t.Run("for a Property whose roles share a user", func(t *testing.T) {
		namespace := newNamespace(t)
		startOperator(t, operatorOptions{namespaces: []string{namespace}})
		create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mine"},
			StringData: map[string]string{"url": granted(t, "`~weir:{NAMESPACE/NAME}:* ", "tenant")}})
		if err := admin.Do(ctx, "acl", "setuser", "tenant", "~weir:{"+namespace+"/shop}:*").Err(); err != nil {
			t.Fatal(err)
		}
		create(t, property(namespace, "shop", ownRedis("mine")))
		waitFor(t, namespace, "shop", v1alpha1.ConditionRedisReady, metav1.ConditionTrue, v1alpha1.ReasonSharedUser)
		deleted(t, namespace, "shop")
	})
}

func TestARedisWhoseUserMayNotAdminister(t *testing.T) {
	address := tenantsRedis(t)
	admin, ctx := dial(t, address), context.Background()
	namespace := newNamespace(t)
	limited := func(name string, rules ...string) string {
		arguments := []any{"acl", "setuser", name, "on", ">secret-of-" + name, "~*", "+@all"}
		for _, rule := range rules {
			arguments = append(arguments, rule)
		}
		if err := admin.Do(ctx, arguments...).Err(); err != nil {
			t.Fatal(err)
		}
		return withUser(t, address, name, "secret-of-"+name)
	}

	t.Run("the operator's own: a condition", func(t *testing.T) {
		startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: limited("operator", "-acl")}})
		create(t, property(namespace, "shop"))
		waitFor(t, namespace, "shop", v1alpha1.ConditionRedisReady, metav1.ConditionFalse, v1alpha1.ReasonRedisAdminDenied)
	})
	t.Run("the Property's own: its roles share the user, and the condition says so", func(t *testing.T) {
		namespace := newNamespace(t)
		shared := limited("tenant", "-acl")
		startOperator(t, operatorOptions{namespaces: []string{namespace}})
		create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mine"}, StringData: map[string]string{"url": shared}})
		create(t, property(namespace, "shop", ownRedis("mine")))
		p := waitFor(t, namespace, "shop", v1alpha1.ConditionRedisReady, metav1.ConditionTrue, v1alpha1.ReasonSharedUser)
		if got := string(get(t, &corev1.Secret{}, namespace, "shop-redis-query").Data["url"]); got != shared {
			t.Errorf("the pods' URL is not that of the shared user")
		}
		if len(quiet(t, p)) == 0 {
			t.Error("there are no objects")
		}
	})
	t.Run("without functions: a condition", func(t *testing.T) {
		namespace := newNamespace(t)
		startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: limited("half", "-function")}})
		create(t, property(namespace, "shop"))
		waitFor(t, namespace, "shop", v1alpha1.ConditionRedisReady, metav1.ConditionFalse, v1alpha1.ReasonRedisAdminDenied)
	})
}
