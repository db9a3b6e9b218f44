package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/connect"
)

func TestAHistoryIsReadAsItWasWritten(t *testing.T) {
	const address = "http://weir_shops_shop_query:pa55@clickhouse:8123/weir_shops_shop"
	tests := map[string]struct {
		history config.ClickHouse
		files   map[string]string
		absent  bool
		err     string
	}{
		"an address alone":       {history: config.ClickHouse{URL: address}},
		"no file":                {absent: true},
		"no database":            {history: config.ClickHouse{URL: "http://a:pa55@clickhouse:8123/"}, err: "history/url: must be a URL such as https://"},
		"no user":                {history: config.ClickHouse{URL: "http://clickhouse:8123/weir_shops_shop"}, err: "history/url: must be a URL"},
		"parameters":             {history: config.ClickHouse{URL: address + "?database=pa55"}, err: "history/url: must be a URL"},
		"another scheme":         {history: config.ClickHouse{URL: "clickhouse://a:pa55@clickhouse:9000/d"}, err: "history/url: must be a URL"},
		"an authority over HTTP": {history: config.ClickHouse{URL: address, TLS: connect.TLS{CA: "pa55"}}, err: "history/ca.crt: "},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write := func(file, content string) {
				path := filepath.Join(dir, filepath.FromSlash(file))
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if !test.absent {
				for file, content := range test.history.Files() {
					write(file, string(content))
				}
			}
			for file, content := range test.files {
				write(file, content)
			}
			got, found, err := config.LoadClickHouse(dir)
			if test.err != "" {
				if err == nil || !strings.HasPrefix(err.Error(), test.err) || strings.Contains(err.Error(), "pa55") {
					t.Errorf("got %v, want an error that begins with %q and repeats nothing", err, test.err)
				}
				return
			}
			if err != nil || found == test.absent || got != test.history {
				t.Errorf("got %+v, %v, %v", got, found, err)
			}
		})
	}
}
