package charts_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTheBundledRedisIsConfiguredAsThoseOfProperties compares the chart's copies with what the operator embeds.
func TestTheBundledRedisIsConfiguredAsThoseOfProperties(t *testing.T) {
	for _, name := range []string{"redis.conf", "redis-tls.conf"} {
		want, err := os.ReadFile(filepath.Join("..", "controllers", "resources", name))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(chart, "files", name))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s (-the operator's +the chart's), which make generate copies:\n%s", name, diff)
		}
	}
}
