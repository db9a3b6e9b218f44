package operator

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/weir-dev/weir/collector/redisserver"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
)

func TestCheck(t *testing.T) {
	redis := redistest.Start(t, redisserver.Options{})
	evicting := redistest.Start(t, redisserver.Options{Extra: []string{"maxmemory-policy allkeys-lru"}})
	var asked atomic.Int64
	operator := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" || asked.Add(1) == 1 { // it has just started
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	t.Cleanup(operator.Close)
	folder := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(folder, name)
		writeFile(t, path, content)
		return path
	}
	fit := file("fit", redis.URL()+"\n")

	tests := map[string]struct {
		args []string
		code int
		want string
	}{
		"an operator that becomes ready and a Redis that is fit pass": {
			[]string{"--operator", operator.URL, "--redis-url-file", fit}, 0,
			"the operator is ready\nthe operator's Redis answers, is new enough and evicts nothing\n",
		},
		"an operator that answers otherwise fails": {
			[]string{"--operator", operator.URL + "/elsewhere", "--timeout", "2s"}, 1, "the operator is not ready: " + operator.URL + "/elsewhere/readyz answers 500",
		},
		"an operator that is not there fails": {
			[]string{"--operator", "http://127.0.0.1:1", "--timeout", "2s"}, 1, "connection refused",
		},
		"a Redis that evicts fails": {
			[]string{"--redis-url-file", file("evicting", evicting.URL()), "--timeout", "2s"}, 1, "the operator's Redis is not fit: redis must run with maxmemory-policy noeviction",
		},
		"a Redis that is not there fails, and its password stays secret": {
			[]string{"--redis-url-file", file("away", "redis://weir:hunter2@127.0.0.1:1"), "--timeout", "2s"}, 1, "the operator's Redis is not fit",
		},
		"nothing to look at is refused": {nil, 2, "give --operator, --redis-url-file or both"},
		"an unknown flag is refused":    {[]string{"--redis", "x"}, 2, `"weir-operator check -h" lists the flags`},
		"an argument is refused":        {[]string{"now"}, 2, `"now" is no flag`},
		"help is given":                 {[]string{"-h"}, 0, "Usage: weir-operator check FLAG"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var output bytes.Buffer
			code := Run(t.Context(), "v0.0.0", append([]string{"check"}, tt.args...), &output, &output)
			if code != tt.code || !strings.Contains(output.String(), tt.want) || strings.Contains(output.String(), "hunter2") {
				t.Errorf("exit code %d, %q; want %d and %q", code, output.String(), tt.code, tt.want)
			}
		})
	}
}
