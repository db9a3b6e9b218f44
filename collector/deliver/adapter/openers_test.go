package adapter

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-dev/weir/collector/platforms"
)

// What is not written down cannot be used, and what has no golden pair can change without anybody noticing.
func TestEveryTypeHasItsPageAndGoldenPairs(t *testing.T) {
	for _, name := range platforms.Types() {
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
func TestEveryTypeHasAnAdapter(t *testing.T) {
	for _, name := range platforms.Types() {
		if openers[name] == nil {
			t.Errorf("%s can be configured, but not be delivered to", name)
		}
		if traits, _ := name.Traits(); traits.Limits.Events < 1 {
			t.Errorf("no event may be in a request to %s", name)
		}
	}
	if got, want := len(openers), len(platforms.Types()); got != want {
		t.Errorf("there are adapters of %d types, want %d", got, want)
	}
}
