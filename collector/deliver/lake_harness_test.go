package deliver

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/parquet-go/parquet-go"

	"github.com/weir-dev/weir/collector/deliver/fakes"
	"github.com/weir-dev/weir/collector/deliver/lake"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/stream"
)

var bucketCredentials = map[string]string{"accessKeyID": "AKIAIOSFODNN7EXAMPLE", "secretAccessKey": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"}

// lakeSite is a property with a bucket: a fake S3, and the deliverer.
type lakeSite struct {
	*harness
	fake *fakes.Server
	// before and after are called with every request, before it reaches the fake and before its answer goes back; nil for
	// nothing. Where one returns true the connection breaks off.
	before, after atomic.Pointer[func(*http.Request) bool]
}

func newLakeSite(t testing.TB, adjust func(*platforms.Platform)) *lakeSite {
	t.Helper()
	s := &lakeSite{}
	cfg := platforms.Platform{Name: "lake", Type: platforms.TypeS3, Settings: platforms.Settings{S3: &platforms.S3{
		Bucket: "shop-events", Region: "eu-central-1", Prefix: "weir", RowsPerFile: 1000,
	}}}
	call := func(hook *atomic.Pointer[func(*http.Request) bool], r *http.Request) bool {
		f := hook.Load()
		return f != nil && (*f)(r)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if call(&s.before, r) {
			panic(http.ErrAbortHandler)
		}
		answer := httptest.NewRecorder()
		s.fake.ServeHTTP(answer, r)
		if call(&s.after, r) {
			panic(http.ErrAbortHandler)
		}
		maps.Copy(w.Header(), answer.Header())
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes()) // the deliverer may have gone
	}))
	cfg.Endpoint = server.URL
	if adjust != nil {
		adjust(&cfg)
	}
	var err error
	if s.fake, err = fakes.New(cfg.Type, []fakes.Account{{Platform: cfg, Credentials: bucketCredentials}}, nil, time.Now); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.fake.Close()
		server.Close()
	})
	s.harness = newHarness(t, cfg)
	s.credentials["lake"] = bucketCredentials
	return s
}

// quick has files written soon.
func quick(e *Engine) { e.timing.flush = time.Nanosecond }

func (s *lakeSite) onRequest(hook *atomic.Pointer[func(*http.Request) bool], f func(*http.Request) bool) {
	if f == nil {
		hook.Store(nil)
		return
	}
	hook.Store(&f)
}

// isWrite says whether a request writes a file.
func isWrite(r *http.Request) bool {
	return r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, ".parquet")
}

// store appends n events with the client id, and returns their positions.
func (s *lakeSite) store(n int, client string) []stream.Position {
	s.t.Helper()
	before, err := s.stream.Bounds(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	amount := event.Amount(95_000)
	for done := 0; done < n; done += 500 {
		var additions []stream.Addition
		for range min(500, n-done) {
			id, err := uuid.NewV7()
			if err != nil {
				s.t.Fatal(err)
			}
			e := event.Event{ID: id.String(), DeliveryID: id, Name: "purchase", Value: &amount, Currency: "EUR", ClientID: client, Platforms: s.property.PlatformNames()}
			additions = append(additions, s.addition(e))
		}
		if _, err := s.appender.Append(s.t.Context(), additions); err != nil {
			s.t.Fatal(err)
		}
	}
	var positions []stream.Position
	for after := before.Newest; ; {
		entries, err := s.stream.ReadEvents(s.t.Context(), after, 1000, 0)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, entry := range entries {
			positions = append(positions, entry.Position)
		}
		if len(entries) == 0 {
			return positions
		}
		after = entries[len(entries)-1].Position
	}
}

// rows returns all rows of all files by the files' keys.
func (s *lakeSite) rows() map[string][]lake.Row {
	s.t.Helper()
	files := map[string][]lake.Row{}
	for key, data := range s.fake.Objects() {
		if !strings.HasSuffix(key, ".parquet") {
			continue
		}
		rows, err := readRows(data)
		if err != nil {
			s.t.Fatalf("%s: %v", key, err)
		}
		files[key] = rows
	}
	return files
}

func readRows(data []byte) ([]lake.Row, error) {
	file, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, err
	}
	reader := parquet.NewGenericReader[lake.Row](file)
	defer reader.Close()
	rows := make([]lake.Row, file.NumRows())
	n, err := reader.Read(rows)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return rows[:n], nil
}

// missing says what the files have that they should not, or lack; "" for nothing.
func (s *lakeSite) missing(want []stream.Position) string {
	s.t.Helper()
	got := map[stream.Position]int{}
	for key, rows := range s.rows() {
		last := int64(0)
		for _, row := range rows {
			got[stream.Position(row.Position)]++
			if row.Position <= last {
				return fmt.Sprintf("%s: rows are not in the order of their positions", key)
			}
			last = row.Position
			if !strings.Contains(key, "/date="+time.UnixMilli(row.ReceivedAt).UTC().Format(time.DateOnly)+"/") {
				return fmt.Sprintf("%s has a row of another day", key)
			}
		}
	}
	for _, p := range want {
		if n := got[p]; n != 1 {
			return fmt.Sprintf("%d rows of %s; %d rows in all, want %d", n, p, len(got), len(want))
		}
	}
	if len(got) != len(want) {
		return fmt.Sprintf("%d rows, want %d", len(got), len(want))
	}
	return ""
}

// eventuallyOnce waits until each event is settled as delivered, and is a row of one file.
func (s *lakeSite) eventuallyOnce(want []stream.Position) {
	s.t.Helper()
	s.awaitFor(time.Minute, "all events", func() string {
		records := s.records("lake")
		for _, p := range want {
			if records[p].Status != "delivered" {
				return fmt.Sprintf("%s is %q; %d have records", p, records[p].Status, len(records))
			}
		}
		return ""
	})
	if problem := s.missing(want); problem != "" {
		s.t.Errorf("%s\n%s", problem, strings.Join(s.keys(), "\n"))
	}
}

func (s *lakeSite) keys() []string {
	var keys []string
	for key := range s.fake.Objects() {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// either returns a, or b where that is empty.
func either(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
