// Package s3 has the files that are written to a bucket judged by programs that others have made: a server that speaks S3's API
// takes them, and DuckDB reads them. It is a module of its own, so that the product depends on neither.
package s3

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/duckdb/duckdb-go/v2"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/deliver"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/collector/stream"
)

const accessKey, secretKey = "weir-test-access", "weir-test-secret"

// serve starts versitygw over a folder and returns its URL.
func serve(t *testing.T, folder string) string {
	t.Helper()
	tool := exec.Command("hack/tool.sh", "hack/s3", "github.com/versity/versitygw/cmd/versitygw")
	tool.Dir, tool.Stderr = "../..", os.Stderr
	program, err := tool.Output()
	if err != nil {
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	var log bytes.Buffer
	server := exec.CommandContext(t.Context(), strings.TrimSpace(string(program)), "--access", accessKey, "--secret", secretKey,
		"--region", "eu-central-1", "--port", address, "--quiet", "posix", folder)
	server.Stdout, server.Stderr = &log, &log
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	for deadline := time.Now().Add(30 * time.Second); ; {
		answer, err := http.Get("http://" + address + "/")
		if err == nil {
			answer.Body.Close()
			return "http://" + address
		}
		if time.Now().After(deadline) {
			t.Fatalf("versitygw does not answer: %v\n%s", err, log.String())
		}
		<-time.After(50 * time.Millisecond)
	}
}

// shop is a property with a bucket.
type shop struct {
	t        *testing.T
	url      string
	stream   *stream.Stream
	appender *stream.Appender
	property config.Property
	metrics  *deliver.Metrics
}

func newShop(t *testing.T, endpoint string, rows int) *shop {
	t.Helper()
	url := redistest.URL(t)
	client, err := stream.Dial(url, stream.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	if err := client.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := &shop{t: t, url: url, stream: client.Stream("default", "shop"), property: config.Property{
		Namespace: "default", Name: "shop", Currency: "EUR",
		Retention: config.Retention{Days: 62, MaxEvents: 10_000_000},
		Egress:    config.Egress{AllowCIDRs: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
		Platforms: []platforms.Platform{{Name: "lake", Type: platforms.TypeS3, Endpoint: endpoint, Settings: platforms.Settings{S3: &platforms.S3{
			Bucket: "events", Region: "eu-central-1", RowsPerFile: rows, FlushMinutes: 1,
		}}}},
	}}
	if s.metrics, err = deliver.NewMetrics(prometheus.NewRegistry()); err != nil {
		t.Fatal(err)
	}
	s.appender = stream.NewAppender(s.stream, stream.AppenderOptions{Window: time.Hour})
	t.Cleanup(func() {
		if err := s.appender.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// store appends n purchases of 9.50 EUR each.
func (s *shop) store(n int) {
	s.t.Helper()
	amount := event.Amount(95_000)
	for from := 0; from < n; from += 500 {
		additions := make([]stream.Addition, 0, 500)
		for i := range min(500, n-from) {
			id, err := uuid.NewV7()
			if err != nil {
				s.t.Fatal(err)
			}
			e := event.Event{
				ID: id.String(), DeliveryID: id, Name: "purchase", Value: &amount, Currency: "EUR", OrderID: id.String(),
				ClientID: fmt.Sprint("c.", (from+i)%1000), Platforms: []string{"lake"},
				Contents: []event.Item{{ID: fmt.Sprint("sku-", i%10), Quantity: &amount, Price: &amount, Name: "Lamp"}},
				Context:  event.Context{UTMSource: []string{"newsletter", "search"}[i%2], PageURL: "https://shop.example/"},
			}
			additions = append(additions, stream.Addition{Entry: wire.Encode(&e), EventID: e.ID})
		}
		if _, err := s.appender.Append(s.t.Context(), additions); err != nil {
			s.t.Fatal(err)
		}
	}
}

// deliver runs a deliverer until it is stopped; killed, nothing that it was about reaches Redis or the bucket any more.
func (s *shop) deliver(consumer string) (kill func()) {
	s.t.Helper()
	client, err := stream.Dial(s.url, stream.DialOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	engine := deliver.New(deliver.Options{
		Stream: client.Stream("default", "shop"), Property: s.property, Consumer: consumer, Metrics: s.metrics,
		Credentials: func(string) (map[string]string, error) {
			return map[string]string{"accessKeyID": accessKey, "secretAccessKey": secretKey}, nil
		},
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), DrainTimeout: time.Nanosecond,
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := engine.Run(ctx); err != nil {
			s.t.Error(err)
		}
	}()
	var once sync.Once
	kill = func() {
		once.Do(func() {
			_ = client.Close()
			cancel()
			<-done
		})
	}
	s.t.Cleanup(kill)
	return kill
}

// settled is how many events the platform has been handed.
func (s *shop) settled() int64 {
	groups, err := s.stream.Groups(s.t.Context())
	if err != nil || len(groups) == 0 {
		return 0
	}
	bounds, err := s.stream.Bounds(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return bounds.Length - max(groups[0].Lag, 0) - groups[0].Pending - groups[0].Waiting
}

func (s *shop) await(n int64) {
	s.t.Helper()
	for deadline := time.Now().Add(10 * time.Minute); s.settled() < n; {
		if time.Now().After(deadline) {
			s.t.Fatalf("%d of %d events are settled", s.settled(), n)
		}
		<-time.After(100 * time.Millisecond)
	}
}

func ask(t *testing.T, db *sql.DB, question string, into ...any) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), question).Scan(into...); err != nil {
		t.Fatalf("%s: %v", question, err)
	}
}

// TestAMillionEventsAreEachARowOnce has deliverers written to a server of others' and killed at any time, several at once, and
// DuckDB count.
func TestAMillionEventsAreEachARowOnce(t *testing.T) {
	const events, rows = 1_000_000, 25_000
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "events"), 0o755); err != nil {
		t.Fatal(err)
	}
	s := newShop(t, serve(t, folder), rows)
	stored := make(chan struct{})
	go func() {
		defer close(stored)
		s.store(events)
	}()
	began := time.Now()
	forgetting, enough := context.WithCancel(t.Context())
	var forgetful sync.WaitGroup
	forgetful.Go(func() { // nothing may rest on the lease: it is lost again and again, and several write at once
		for forgetting.Err() == nil {
			if err := s.stream.UnlockWriter(forgetting, "lake"); err != nil && forgetting.Err() == nil {
				t.Error(err)
			}
			<-time.After(200 * time.Millisecond)
		}
	})
	kills := 0
	for ; kills < 12; kills++ {
		one, other := s.deliver("pod-a"), s.deliver("pod-b")
		<-time.After(time.Duration(500+rand.N(3000)) * time.Millisecond)
		one()
		other()
	}
	<-stored
	enough() // of several that write for good, each keeps the others from it
	forgetful.Wait()
	s.deliver("pod-a")
	s.deliver("pod-b")
	s.await(events)
	t.Logf("%d events, %d kills, %s", events, kills, time.Since(began).Round(time.Second))

	db, err := sql.Open("duckdb", "")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	files := filepath.Join(folder, "events/default/shop/lake/*/*.parquet")
	var count, distinct, positions, wrong int64
	var revenue string
	ask(t, db, "SELECT count(*), count(DISTINCT event_id), count(DISTINCT position), CAST(sum(value) AS VARCHAR) FROM read_parquet('"+files+"', hive_partitioning = true)",
		&count, &distinct, &positions, &revenue)
	if count != events || distinct != events || positions != events || revenue != "9500000.0000" {
		t.Errorf("%d rows, %d ids, %d positions, revenue %s; want %d of each and 9500000.0000", count, distinct, positions, revenue, events)
	}
	ask(t, db, "SELECT count(*) FROM read_parquet('"+files+"', hive_partitioning = true) WHERE CAST(received_at AS DATE) <> date", &wrong)
	if wrong != 0 {
		t.Errorf("%d rows are in the file of another day", wrong)
	}
	theGuideIsRight(t, db, files)
}

// theGuideIsRight runs what the guide has for DuckDB.
func theGuideIsRight(t *testing.T, db *sql.DB, files string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/guides/warehouse.md")
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, block := range strings.Split(string(page), "```sql duckdb\n")[1:] {
		text, _, _ := strings.Cut(block, "```")
		text = strings.ReplaceAll(text, "s3://shop-events/default/shop/lake/*/*.parquet", files)
		for _, statement := range strings.Split(text, ";\n") {
			statement = strings.TrimSpace(statement)
			if statement == "" || strings.HasPrefix(statement, "CREATE SECRET") || strings.HasPrefix(statement, "INSTALL") {
				continue // what reaches S3: here the files are read where they lie
			}
			rows, err := db.QueryContext(t.Context(), statement)
			if err != nil {
				t.Errorf("%s: %v", statement, err)
				continue
			}
			found := rows.Next()
			if err := rows.Close(); err != nil {
				t.Error(err)
			}
			if strings.HasPrefix(statement, "SELECT") && !found {
				t.Errorf("%s: nothing was found", statement)
			}
			ran++
		}
	}
	if ran < 4 {
		t.Errorf("%d statements of the guide have run", ran)
	}
}
