package controllers_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/url"
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
		"Sentinels of one word":    {at(saying("+PONG\r\n", "*0\r\n", "*1\r\n$1\r\nx\r\n")) + "?master_name=shop", v1alpha1.ReasonRedisUnreachable},
		"a private address":        {"redis://10.1.2.3", v1alpha1.ReasonRedisAddressDenied},
		"the cloud's metadata":     {"redis://169.254.169.254:80", v1alpha1.ReasonRedisAddressDenied},
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
