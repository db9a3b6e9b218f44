package controllers_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/clickhouse/clickhousetest"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/history/archive"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/collector/stream"
	"github.com/weir-dev/weir/controllers"
)

// calledVersion puts before a server one that says it is of another version.
func calledVersion(t testing.TB, address, version string) string {
	t.Helper()
	target, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	behind := url.URL{Scheme: "http", Host: target.Host}
	proxy := httptest.NewServer(&httputil.ReverseProxy{ErrorLog: log.New(io.Discard, "", 0), Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&behind)
		sql, err := io.ReadAll(r.In.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		sql = bytes.ReplaceAll(sql, []byte("SELECT version()"), []byte("SELECT '"+version+"'"))
		r.Out.Body, r.Out.ContentLength = io.NopCloser(bytes.NewReader(sql)), int64(len(sql))
	}})
	t.Cleanup(proxy.Close)
	target.Scheme, target.Host = "http", proxy.Listener.Addr().String()
	return target.String()
}

// archiversRedis is Redis as the archive's pod reaches it. The connections end with the test.
func archiversRedis(t *testing.T, namespace, name string) *stream.Client {
	t.Helper()
	client, err := stream.Dial(string(get(t, &corev1.Secret{}, namespace, name+"-redis-archive").Data["url"]), stream.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// archiving runs the archive of a Property as its pod would, with the users that the operator has made for it, on some way to
// ClickHouse, until the test ends.
func archiving(t *testing.T, namespace, name, address string) {
	t.Helper()
	way, err := url.Parse(historyURL(t, namespace, name, "archive"))
	if err != nil {
		t.Fatal(err)
	}
	through, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	way.Host = through.Host
	history, err := clickhouse.Dial(way.String(), clickhouse.Options{})
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := archive.NewMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	client := archiversRedis(t, namespace, name)
	copies := archive.New(archive.Options{
		Property: namespace + "/" + name, Stream: client.Stream(namespace, name).Opening(wire.Identity), Client: history, Metrics: metrics,
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { copies.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
		history.Close()
	})
}

// TestWhyNothingIsArchivedIsSaid has the archive itself meet what may be wrong, on its own way to ClickHouse: the operator finds nothing.
func TestWhyNothingIsArchivedIsSaid(t *testing.T) {
	t.Parallel()
	const secret = "pa55-of-somebody"
	server := clickhousetest.Start(t)
	namespace := newNamespace(t)
	startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: redistest.URL(t), ClickHouseURL: server.URL("")}})
	behind := func(fault clickhousetest.Fault) string {
		proxy := clickhousetest.StartProxy(t, server.URL(""))
		proxy.Add(fault)
		return proxy.URL()
	}
	names := 0
	shop := func() (name string) {
		names++
		name = fmt.Sprintf("shop-%d", names)
		create(t, property(namespace, name, inClickHouse))
		return name
	}
	for sentence, test := range map[string]struct{ address, reason, says string }{
		"it is not reached":       {behind(clickhousetest.Fault{CutBefore: true}), v1alpha1.ReasonHistoryUnreachable, "whether its pod may connect to it"},
		"its tables are missing":  {behind(clickhousetest.Fault{Code: 60, Message: secret}), v1alpha1.ReasonHistoryUnreachable, "look"},
		"its user may not":        {behind(clickhousetest.Fault{Code: 497, Message: secret}), v1alpha1.ReasonHistoryAccessDenied, "put right within a minute"},
		"its password is wrong":   {behind(clickhousetest.Fault{Code: 516, Message: secret}), v1alpha1.ReasonHistoryAccessDenied, "put right within a minute"},
		"the server is too old":   {calledVersion(t, server.URL(""), "24.3.18.7"), v1alpha1.ReasonHistoryVersionTooOld, "24.8 or newer"},
		"the disk is full":        {behind(clickhousetest.Fault{Code: 243, Message: secret}), v1alpha1.ReasonHistoryDiskFull, "larger one"},
		"parts are not merged":    {behind(clickhousetest.Fault{Code: 252, Message: secret}), v1alpha1.ReasonHistoryTooManyParts, "more processors"},
		"something else is there": {behind(clickhousetest.Fault{Nonsense: secret}), v1alpha1.ReasonHistoryUnreachable, "does not reach"},
	} {
		name := shop()
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			remembered(t, namespace, name)
			archiving(t, namespace, name, test.address)
			p := waitFor(t, namespace, name, v1alpha1.ConditionHistoryReady, metav1.ConditionFalse, test.reason)
			got := message(p, v1alpha1.ConditionHistoryReady)
			if !strings.Contains(got, test.says) || !strings.Contains(got, "events wait in Redis") || strings.Contains(got, secret) {
				t.Errorf("it says %q, want %q", got, test.says)
			}
		})
	}
	mended := shop()
	t.Run("and it passes where it is mended while the archive runs", func(t *testing.T) {
		t.Parallel()
		remembered(t, namespace, mended)
		proxy := clickhousetest.StartProxy(t, server.URL(""))
		proxy.Add(clickhousetest.Fault{Code: 243})
		archiving(t, namespace, mended, proxy.URL())
		waitFor(t, namespace, mended, v1alpha1.ConditionHistoryReady, metav1.ConditionFalse, v1alpha1.ReasonHistoryDiskFull)
		waitFor(t, namespace, mended, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonHistoryDiskFull)
		proxy.Heal()
		remembered(t, namespace, mended)
	})
	unknown := shop()
	t.Run("and a word that no archive has says nothing", func(t *testing.T) {
		t.Parallel()
		remembered(t, namespace, unknown)
		redis := archiversRedis(t, namespace, unknown)
		began := time.Now()
		eventually(t, func() error { // several of the operator's looks
			if err := redis.Stream(namespace, unknown).PausePlatform(t.Context(), stream.ArchiveName, secret); err != nil {
				return err
			}
			p := get(t, &v1alpha1.Property{}, namespace, unknown)
			if got := message(p, v1alpha1.ConditionHistoryReady); strings.Contains(got, secret) || !strings.HasPrefix(got, "ClickHouse has") {
				t.Fatalf("it says %q", got)
			}
			if time.Since(began) < 5*time.Second {
				return fmt.Errorf("the operator may not have looked")
			}
			return nil
		})
	})
}

// TestAnArchiveThatLagsIsSaidAndChangesNothingElse has an archive note how far it is, by a clock on which minutes are seconds.
func TestAnArchiveThatLagsIsSaidAndChangesNothingElse(t *testing.T) {
	t.Parallel()
	server := clickhousetest.Start(t)
	namespace, start := newNamespace(t), time.Now()
	now := func() time.Time { return start.Add(time.Since(start) * 30) }
	startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: redistest.URL(t), ClickHouseURL: server.URL(""), Now: now}})
	create(t, property(namespace, "shop", inClickHouse))
	began := now()
	remembered(t, namespace, "shop")
	rollOut(t, namespace, "shop", "archive")

	p := waitFor(t, namespace, "shop", v1alpha1.ConditionHistoryReady, metav1.ConditionFalse, v1alpha1.ReasonArchiveLagging)
	if after := now().Sub(began); after < 5*time.Minute {
		t.Errorf("an archive that has only just been asked for is said to lag, after %s", after)
	}
	if got := message(p, v1alpha1.ConditionHistoryReady); !strings.Contains(got, "WeirArchiveLagging.md") {
		t.Errorf("it says %q", got)
	}
	waitFor(t, namespace, "shop", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)

	copied := archiversRedis(t, namespace, "shop").Stream(namespace, "shop")
	epoch, err := copied.BeginArchive(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	note := func(current time.Time) {
		t.Helper()
		if _, _, err := copied.NoteArchive(t.Context(), epoch, current); err != nil {
			t.Fatal(err)
		}
	}
	note(now().Add(2 * time.Minute))
	remembered(t, namespace, "shop")
	waitFor(t, namespace, "shop", v1alpha1.ConditionHistoryReady, metav1.ConditionFalse, v1alpha1.ReasonArchiveLagging) // it has noted nothing since
	note(now().Add(time.Hour))
	remembered(t, namespace, "shop")
}
