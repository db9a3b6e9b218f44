package controllers_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/redisserver"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/controllers"
)

// nonsense serves every connection with something that is no Redis, and returns where.
func nonsense(t testing.TB, serve func(connection net.Conn, end <-chan struct{})) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	end := make(chan struct{})
	t.Cleanup(func() {
		close(end)
		listener.Close()
	})
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer connection.Close()
				serve(connection, end)
			}()
		}
	}()
	return listener.Addr().String()
}

// saying answers whatever comes with a text, and waits for the other end to go.
func saying(texts ...string) func(net.Conn, <-chan struct{}) {
	return func(connection net.Conn, _ <-chan struct{}) {
		buffer := make([]byte, 4096)
		for _, text := range texts {
			if _, err := connection.Read(buffer); err != nil {
				return
			}
			if _, err := io.WriteString(connection, text); err != nil {
				return
			}
		}
		_, _ = io.Copy(io.Discard, connection)
	}
}

// node speaks as a Redis does; answer says what it answers to a command, given where it is itself.
func node(answer func(here, command string) string) func(net.Conn, <-chan struct{}) {
	return func(connection net.Conn, _ <-chan struct{}) {
		reader := bufio.NewReader(connection)
		for {
			words, count, length := []string(nil), 0, 0
			if _, err := fmt.Fscanf(reader, "*%d\r\n", &count); err != nil {
				return
			}
			for range count {
				if _, err := fmt.Fscanf(reader, "$%d\r\n", &length); err != nil {
					return
				}
				word := make([]byte, length+2)
				if _, err := io.ReadFull(reader, word); err != nil {
					return
				}
				words = append(words, string(word[:length]))
			}
			reply := "+OK\r\n"
			switch command := strings.ToLower(strings.Join(words, " ")); {
			case command == "ping":
				reply = "+PONG\r\n"
			case strings.HasPrefix(command, "hello"), command == "command":
				reply = "*0\r\n"
			case !strings.HasPrefix(command, "auth"):
				reply = answer(connection.LocalAddr().String(), command)
			}
			if _, err := io.WriteString(connection, reply); err != nil {
				return
			}
		}
	}
}

// slots is how a cluster says that all that it has is at one address.
func slots(address string) string {
	host, port, _ := net.SplitHostPort(address)
	return fmt.Sprintf("*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$%d\r\n%s\r\n:%s\r\n", len(host), host, port)
}

// redirecting is a cluster of one node, which is fit, and answers with an error to whatever is about a key.
func redirecting(with string) func(net.Conn, <-chan struct{}) {
	const info = "redis_version:7.4.0\r\nmaxmemory_policy:noeviction\r\naof_enabled:0\r\n"
	return node(func(here, command string) string {
		switch word, _, _ := strings.Cut(command, " "); {
		case command == "cluster slots":
			return slots(here)
		case word == "info":
			return fmt.Sprintf("$%d\r\n%s\r\n", len(info), info)
		case command == "acl list", strings.HasPrefix(command, "function list"):
			return "*0\r\n"
		case slices.Contains([]string{"acl", "function", "readonly"}, word):
			return "+OK\r\n"
		default:
			return "-" + with + "\r\n"
		}
	})
}

// TestATenantsRedisHarmsNobodyElse points Properties at servers that are no Redis, and at addresses and with URLs that a tenant
// has no business with. Each gets a condition from a closed list, and another Property stays ready.
func TestATenantsRedisHarmsNobodyElse(t *testing.T) {
	const secret = "s3cret-of-another-team"
	namespace, logged := newNamespace(t), &lockedBuffer{}
	startOperator(t, operatorOptions{
		namespaces: []string{namespace}, Options: controllers.Options{RedisURL: redistest.URL(t)},
		log: slog.New(slog.NewTextHandler(logged, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	create(t, property(namespace, "innocent"))
	before := settled(t, namespace, "innocent")

	at := func(serve func(net.Conn, <-chan struct{})) string {
		return "redis://user:password@" + nonsense(t, serve)
	}
	cluster := func(serve func(net.Conn, <-chan struct{})) string {
		address := nonsense(t, serve)
		return "redis://user:password@" + address + "?addr=" + address
	}
	inside := func(string, string) string { return slots("10.1.2.3:6379") }
	tests := map[string]struct{ address, reason string }{
		"a string that no slice can hold": {at(saying("$4611686018427387904\r\n")), v1alpha1.ReasonRedisProtocolError},
		"it, once greeted":                {at(saying("+PONG\r\n", "$4611686018427387904\r\n")), v1alpha1.ReasonRedisProtocolError},
		"a string of all memory":          {at(saying("+PONG\r\n", "*0\r\n", "$536870912000\r\n")), v1alpha1.ReasonRedisProtocolError},
		"a list of all memory":            {at(saying("+PONG\r\n", "*0\r\n", "*1073741824\r\n")), v1alpha1.ReasonRedisProtocolError},
		"a banner with a secret":          {at(saying("220 " + secret + "\r\n")), v1alpha1.ReasonRedisProtocolError},
		"an error with a secret":          {at(saying("+PONG\r\n", "*0\r\n", "-"+secret+"\r\n")), v1alpha1.ReasonRedisUnreachable},
		"HTTP":                            {at(saying("HTTP/1.1 200 OK\r\n\r\n" + secret)), v1alpha1.ReasonRedisProtocolError},
		"bytes without an end": {at(func(connection net.Conn, _ <-chan struct{}) {
			for junk := bytes.Repeat([]byte("x"), 64<<10); ; {
				if _, err := connection.Write(junk); err != nil {
					return
				}
			}
		}), v1alpha1.ReasonRedisProtocolError},
		"a byte a second": {at(func(connection net.Conn, end <-chan struct{}) {
			ticker := time.NewTicker(time.Second)
			defer ticker.Stop()
			for {
				select {
				case <-end:
					return
				case <-ticker.C:
				}
				if _, err := connection.Write([]byte("+")); err != nil {
					return
				}
			}
		}), v1alpha1.ReasonRedisUnreachable},
		"Sentinels of one word":           {at(saying("+PONG\r\n", "*0\r\n", "*1\r\n$1\r\nx\r\n")) + "?master_name=shop", v1alpha1.ReasonRedisUnreachable},
		"a private address":               {"redis://10.1.2.3", v1alpha1.ReasonRedisAddressDenied},
		"the cloud's metadata":            {"redis://169.254.169.254:80", v1alpha1.ReasonRedisAddressDenied},
		"a cluster of private addresses":  {cluster(node(inside)), v1alpha1.ReasonRedisAddressDenied},
		"slots that have moved to one":    {cluster(redirecting("MOVED 1 10.1.2.3:6379")), v1alpha1.ReasonRedisAddressDenied},
		"slots that are asked for at one": {cluster(redirecting("ASK 1 10.1.2.3:6379")), v1alpha1.ReasonRedisAddressDenied},
		"slots that have moved to nobody": {cluster(redirecting("MOVED 1 127.0.0.1:1")), v1alpha1.ReasonRedisUnreachable},
		"Sentinels of a private address": {at(node(func(string, string) string { return "*2\r\n$8\r\n10.1.2.3\r\n$4\r\n6379\r\n" })) + "?master_name=shop",
			v1alpha1.ReasonRedisAddressDenied},
		"a socket of the machine":  {"unix:///var/run/redis.sock", v1alpha1.ReasonSecretInvalid},
		"a command in a password":  {"redis://:x%0d%0aFLUSHALL%0d%0a@127.0.0.1:1", v1alpha1.ReasonSecretInvalid},
		"a parameter nobody knows": {"redis://127.0.0.1:1?" + secret + "=1", v1alpha1.ReasonSecretInvalid},
		"a URL without an end":     {"redis://127.0.0.1:1/" + strings.Repeat("0", 5000), v1alpha1.ReasonSecretInvalid},
		"no TLS where it should be": {strings.Replace(at(saying("-ERR "+secret+"\r\n")), "redis://", "rediss://", 1),
			v1alpha1.ReasonRedisTLSFailed},
	}
	names := map[string]string{}
	for name, test := range tests {
		names[name] = "tenant-" + strings.ToLower(strings.Trim(strings.Map(func(r rune) rune {
			if r == ' ' || r == ',' || r == '\'' {
				return '-'
			}
			return r
		}, name), "-"))
		create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: names[name]}, StringData: map[string]string{"url": test.address}})
		create(t, property(namespace, names[name], ownRedis(names[name])))
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := waitFor(t, namespace, names[name], v1alpha1.ConditionRedisReady, metav1.ConditionFalse, test.reason)
			for _, condition := range p.Status.Conditions {
				if strings.Contains(condition.Message, secret) || strings.Contains(condition.Message, "FLUSHALL") {
					t.Errorf("%s repeats what is not its own: %s", condition.Type, condition.Message)
				}
			}
		})
	}
	if strings.Contains(logged.String(), secret) {
		t.Error("the log repeats what a server has answered")
	}
	after := settled(t, namespace, "innocent")
	was, is := meta.FindStatusCondition(before.Status.Conditions, v1alpha1.ConditionRedisReady), meta.FindStatusCondition(after.Status.Conditions, v1alpha1.ConditionRedisReady)
	if !was.LastTransitionTime.Equal(&is.LastTransitionTime) {
		t.Errorf("the other Property's Redis was not ready from %s to %s", was.LastTransitionTime, is.LastTransitionTime)
	}
}

// TestWhatIsWrongWithARedisURLIsSaid asks for words that mend it, and for nothing that is forbidden to a tenant.
func TestWhatIsWrongWithARedisURLIsSaid(t *testing.T) {
	tests := map[string]struct{ address, says string }{
		"a scheme of the web's":                   {"https://127.0.0.1", "redis://user:password@host:6379/0"},
		"no scheme":                               {"127.0.0.1:6379", "redis://user:password@host:6379/0"},
		"a socket of the machine":                 {"unix:///var/run/redis.sock", "not for a cluster"},
		"a port of letters":                       {"redis://127.0.0.1:redis", "port must be a number"},
		"a port that is too high":                 {"redis://127.0.0.1:65536", "port must be a number from 1 to 65535"},
		"port nought":                             {"redis://127.0.0.1:0", "port must be a number from 1 to 65535"},
		"a path that is no number":                {"redis://127.0.0.1/events", "number of a database and nothing else"},
		"a path of two":                           {"redis://127.0.0.1/0/1", "number of a database and nothing else"},
		"a database below nought":                 {"redis://127.0.0.1?db=-1", "number of a database and nothing else"},
		"skip_verify of a word":                   {"rediss://127.0.0.1?skip_verify=maybe", "skip_verify must be true or false"},
		"skip_verify in the clear":                {"redis://127.0.0.1?skip_verify=true", "skip_verify is for rediss:// alone"},
		"skip_verify of a cluster":                {"rediss://127.0.0.1?addr=127.0.0.2:1&skip_verify=true", "not for clusters"},
		"a second node without a port":            {"redis://127.0.0.1?addr=127.0.0.2", "addr must be a host and a port"},
		"a second Sentinel whose port is no such": {"redis://127.0.0.1?master_name=shop&addr=127.0.0.2:x", "addr must be a host and a port"},
		"a parameter nobody knows":                {"redis://127.0.0.1?pool_size=1", "parameter 1 is none of"},
	}
	namespace, i := newNamespace(t), 0
	startOperator(t, operatorOptions{namespaces: []string{namespace}})
	for sentence, test := range tests {
		i++
		name := fmt.Sprint("url-", i)
		t.Run(sentence, func(t *testing.T) {
			create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, StringData: map[string]string{"url": test.address}})
			create(t, property(namespace, name, ownRedis(name)))
			p := waitFor(t, namespace, name, v1alpha1.ConditionRedisReady, metav1.ConditionFalse, v1alpha1.ReasonSecretInvalid)
			text := message(p, v1alpha1.ConditionRedisReady)
			if !strings.HasPrefix(text, "spec.redis.urlSecretKeyRef: ") || !strings.Contains(text, test.says) {
				t.Errorf("%q does not say %q", text, test.says)
			}
			if strings.Contains(text, "unix:///") {
				t.Errorf("%q offers what is forbidden", text)
			}
		})
	}
}

// TestWhatIsWrongWithATenantsRedisHasAReason asks for the same of a Redis whose user the roles share as of any other.
func TestWhatIsWrongWithATenantsRedisHasAReason(t *testing.T) {
	namespace, ctx := newNamespace(t), context.Background()
	startOperator(t, operatorOptions{namespaces: []string{namespace}})
	tests := map[string]struct {
		// rules are the user's, beside all rights; change is done to the URL; extra goes into Redis's configuration.
		rules  []any
		change func(*url.URL)
		extra  []string
		status metav1.ConditionStatus
		reason string
	}{
		"all is well":                      {rules: []any{"-acl"}, status: metav1.ConditionTrue, reason: v1alpha1.ReasonSharedUser},
		"volatile-lru":                     {rules: []any{"-acl"}, extra: []string{"maxmemory-policy volatile-lru"}, reason: v1alpha1.ReasonEvictionEnabled},
		"allkeys-lru":                      {rules: []any{"-acl"}, extra: []string{"maxmemory-policy allkeys-lru"}, reason: v1alpha1.ReasonEvictionEnabled},
		"volatile-lru, users of one's own": {extra: []string{"maxmemory-policy volatile-lru"}, reason: v1alpha1.ReasonEvictionEnabled},
		"no right to functions":            {rules: []any{"-acl", "-function"}, reason: v1alpha1.ReasonRedisAdminDenied},
		"no functions":                     {rules: []any{"-acl"}, extra: []string{`rename-command FUNCTION ""`}, reason: v1alpha1.ReasonRedisFunctionsMissing},
		"no right to INFO":                 {rules: []any{"-acl", "-info"}, reason: v1alpha1.ReasonRedisInfoDenied},
		"another password": {change: func(u *url.URL) { u.User = url.UserPassword("tenant", "wrong") },
			reason: v1alpha1.ReasonRedisAuthenticationFailed},
		"nobody's name":                 {change: func(u *url.URL) { u.User = nil }, reason: v1alpha1.ReasonRedisAuthenticationFailed},
		"TLS where there is none":       {change: func(u *url.URL) { u.Scheme = "rediss" }, reason: v1alpha1.ReasonRedisTLSFailed},
		"an unknown parameter":          {change: func(u *url.URL) { u.RawQuery = "pool_size=1" }, reason: v1alpha1.ReasonSecretInvalid},
		"a port that nobody listens at": {change: func(u *url.URL) { u.Host = "127.0.0.1:1" }, reason: v1alpha1.ReasonRedisUnreachable},
	}
	i := 0
	for name, test := range tests {
		i++
		secret := "redis-" + string(rune('a'+i))
		t.Run(name, func(t *testing.T) {
			address := redistest.Start(t, redisserver.Options{Loopback: true, Extra: test.extra}).URL()
			rules := append([]any{"acl", "setuser", "tenant", "on", ">tenants-password", "~*", "&*", "+@all"}, test.rules...)
			if err := dial(t, address).Do(ctx, rules...).Err(); err != nil {
				t.Fatal(err)
			}
			parsed, err := url.Parse(withUser(t, address, "tenant", "tenants-password"))
			if err != nil {
				t.Fatal(err)
			}
			if test.change != nil {
				test.change(parsed)
			}
			if test.status == "" {
				test.status = metav1.ConditionFalse
			}
			create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: secret}, StringData: map[string]string{"url": parsed.String()}})
			create(t, property(namespace, secret, ownRedis(secret)))
			waitFor(t, namespace, secret, v1alpha1.ConditionRedisReady, test.status, test.reason)
		})
	}
}
