package platform

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-dev/weir/collector/config"
)

// What is not written down cannot be used, and what has no golden pair can change without anybody noticing.
func TestEveryTypeHasItsPageAndGoldenPairs(t *testing.T) {
	for name := range kinds {
		file := strings.ToLower(string(name))
		for _, pattern := range []string{
			"../../../docs/reference/platforms/" + file + ".md", "testdata/" + file + "/requests/*.in.json", "testdata/" + file + "/answers/*.in.json",
		} {
			if found, err := filepath.Glob(pattern); err != nil || len(found) == 0 {
				t.Errorf("%s: nothing is at %s", name, pattern)
			}
		}
	}
}

// A type that only one of the two tables knows could be configured but not delivered to, or the reverse.
func TestEveryTypeHasTraits(t *testing.T) {
	for name, kind := range kinds {
		if _, ok := name.Traits(); !ok {
			t.Errorf("%s has no traits", name)
		}
		if kind.open == nil || kind.limits.Events < 1 {
			t.Errorf("the row of %s is incomplete: %+v", name, kind)
		}
	}
	for _, name := range config.PlatformTypes() {
		if _, ok := kinds[name]; !ok {
			t.Errorf("%s can be configured, but not be delivered to", name)
		}
	}
}
