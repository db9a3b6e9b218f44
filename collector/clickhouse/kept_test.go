package clickhouse_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"

	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/clickhouse/clickhousetest"
)

// forgetful stands before a server, and answers on each connection once: then it is one that the server has ended, and what was
// sent on it meanwhile is lost. It counts what was.
type forgetful struct {
	to *httputil.ReverseProxy

	mu   sync.Mutex
	used map[string]bool
	lost int
}

func startForgetful(t *testing.T, address string) (proxy *forgetful, through string) {
	t.Helper()
	target, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	server := *target
	server.Path = ""
	f := &forgetful{to: httputil.NewSingleHostReverseProxy(&server), used: map[string]bool{}}
	f.to.Transport = &http.Transport{DisableKeepAlives: true}
	front := httptest.NewServer(f)
	t.Cleanup(front.Close)
	target.Host = front.Listener.Addr().String()
	return f, target.String()
}

func (f *forgetful) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f.ends(r.RemoteAddr) {
		panic(http.ErrAbortHandler) // cuts the connection
	}
	f.to.ServeHTTP(w, r)
}

func (f *forgetful) ends(connection string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.used[connection]
	f.used[connection] = true
	if before {
		f.lost++
	}
	return before
}

func (f *forgetful) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lost
}

// TestWhatOnlyReadsSurvivesAConnectionThatTheServerHasEnded: what changes something is not sent again, for nobody knows whether it was done.
func TestWhatOnlyReadsSurvivesAConnectionThatTheServerHasEnded(t *testing.T) {
	for name, test := range map[string]struct {
		do   func(*clickhouse.Client) error
		want error
	}{
		"a question": {do: func(client *clickhouse.Client) error {
			_, err := clickhouse.Select[uint8](t.Context(), client, clickhouse.Query{SQL: "SELECT 1"})
			return err
		}},
		"a question with parameters": {do: func(client *clickhouse.Client) error {
			_, err := clickhouse.One[uint8](t.Context(), client, clickhouse.Query{SQL: "SELECT {n:UInt8}", Parameters: map[string]any{"n": 1}})
			return err
		}},
		"a statement": {
			do: func(client *clickhouse.Client) error {
				return client.Exec(t.Context(), clickhouse.Query{SQL: "ALTER TABLE t DELETE WHERE number = 1"})
			},
			want: clickhouse.Unreachable,
		},
		"rows": {
			do: func(client *clickhouse.Client) error {
				return clickhouse.Insert(t.Context(), client, "t", []row{{Number: 1}}, "token")
			},
			want: clickhouse.Unreachable,
		},
	} {
		t.Run(name, func(t *testing.T) {
			address := clickhousetest.Shared(t)
			exec(t, dial(t, address), table)
			server, through := startForgetful(t, address)
			client := dial(t, through)
			if err := client.Ping(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := test.do(client); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
			if lost := server.count(); lost != 1 {
				t.Errorf("on a connection that had ended there came %d requests, want one", lost)
			}
		})
	}
}
