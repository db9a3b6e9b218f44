package controllers_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/collector/stream"
	"github.com/weir-dev/weir/controllers"
)

// shown returns the certificate that a Redis shows now.
func shown(t *testing.T, address, bundle string) *x509.Certificate {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(bundle))
	dialer := &tls.Dialer{Config: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	conn, err := dialer.DialContext(t.Context(), "tcp", strings.TrimPrefix(address, "rediss://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0]
}

// TestTheOperatorMakesAndRenewsRedisCertificates fills a Secret, has a Redis show what is in it, and turns the clock.
func TestTheOperatorMakesAndRenewsRedisCertificates(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	name := types.NamespacedName{Namespace: namespace, Name: "weir-redis-tls"}
	now := time.Now().Add(-61 * 24 * time.Hour)
	var log bytes.Buffer
	c := &controllers.RedisCertificates{
		Client: server.client, Secret: name, RedisURL: "rediss://127.0.0.1:1", Now: func() time.Time { return now }, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	}
	if err := c.Look(t.Context()); err == nil || !strings.Contains(err.Error(), name.String()) {
		t.Errorf("without the Secret: %v, want an error that names it", err)
	}
	if _, err := c.Read(); !errors.Is(err, stream.ErrCA) || !strings.Contains(err.Error(), name.String()) {
		t.Errorf("what to trust, before it is known: %v", err)
	}
	create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name.Name}, StringData: map[string]string{"other": "theirs"}})
	if err := c.Look(t.Context()); !errors.Is(err, stream.ErrUnreachable) {
		t.Errorf("before there is a Redis: %v", err)
	}
	secret := func() map[string][]byte { return get(t, &corev1.Secret{}, namespace, name.Name).Data }
	first := secret()
	known, err := c.Read()
	if err != nil || known != (stream.TLS{CA: string(first["ca.crt"])}) || string(first["other"]) != "theirs" {
		t.Fatalf("error %v; what to trust is another authority than the Secret's, or a key of somebody else's is gone", err)
	}

	redis := redistest.StartTLS(t, string(first["tls.crt"]), string(first["tls.key"]), "")
	c.RedisURL = redis.Address
	if err := c.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, secret()); diff != "" {
		t.Error("nothing is due, and the Secret has changed")
	}
	now = time.Now()
	if err := c.Look(t.Context()); err != nil { // and Redis has the files before it: the pod's follow the Secret later
		t.Fatal(err)
	}
	second := secret()
	if bytes.Equal(second["tls.crt"], first["tls.crt"]) || !bytes.Equal(second["ca.crt"], first["ca.crt"]) {
		t.Fatal("want another certificate of the same authority")
	}
	before := shown(t, redis.Address, known.CA)
	redis.Give(t, string(second["tls.crt"]), string(second["tls.key"]), "")
	if err := c.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after := shown(t, redis.Address, known.CA); after.Equal(before) || after.NotAfter.Before(now.Add(89*24*time.Hour)) {
		t.Errorf("redis shows a certificate until %s", after.NotAfter)
	}
	for _, key := range []string{"tls.key", "ca.key"} {
		if strings.Contains(log.String(), string(second[key])) {
			t.Errorf("the log has %s", key)
		}
	}
}

// TestCertificatesOfSomebodyElsesAreReadAgain leaves making them to somebody else.
func TestCertificatesOfSomebodyElsesAreReadAgain(t *testing.T) {
	t.Parallel()
	authority := redistest.NewAuthority(t)
	certificate, key := authority.Sign(t, nil)
	redis := redistest.StartTLS(t, certificate, key, "")
	file := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(file, []byte(authority.PEM), 0o600); err != nil {
		t.Fatal(err)
	}
	c := &controllers.RedisCertificates{RedisURL: redis.Address, Files: stream.TLSFiles{CA: file}, Now: time.Now, Logger: slog.New(slog.DiscardHandler)}
	before := shown(t, redis.Address, authority.PEM)
	certificate, key = authority.Sign(t, nil)
	redis.Give(t, certificate, key, "")
	if err := c.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	if shown(t, redis.Address, authority.PEM).Equal(before) {
		t.Error("redis shows the certificate that it had before")
	}
}

// TestPropertiesWaitForTheFirstCertificates starts an operator whose certificates nobody has made yet.
func TestPropertiesWaitForTheFirstCertificates(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	name := types.NamespacedName{Namespace: namespace, Name: "weir-redis-tls"}
	maker := &controllers.RedisCertificates{
		Client: server.client, Secret: name, RedisURL: "rediss://127.0.0.1:1", Now: time.Now, Logger: slog.New(slog.DiscardHandler),
	}
	create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name.Name}})
	if err := maker.Look(t.Context()); !errors.Is(err, stream.ErrUnreachable) {
		t.Fatal(err)
	}
	data := get(t, &corev1.Secret{}, namespace, name.Name).Data
	redis := redistest.StartTLS(t, string(data["tls.crt"]), string(data["tls.key"]), "")
	missing := types.NamespacedName{Namespace: namespace, Name: "later"}
	c := &controllers.RedisCertificates{Client: server.client, Secret: missing, RedisURL: redis.Address, Now: time.Now, Logger: slog.New(slog.DiscardHandler)}
	startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: redis.Address, RedisCertificates: c}})
	create(t, property(namespace, "shop"))
	p := waitFor(t, namespace, "shop", "RedisReady", metav1.ConditionFalse, "SecretInvalid")
	if text := message(p, "RedisReady"); !strings.Contains(text, "CA certificates") {
		t.Errorf("the condition says %q", text)
	}
	create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: missing.Name}, Data: data})
	waitFor(t, namespace, "shop", "RedisReady", metav1.ConditionTrue, "Ready")
}
