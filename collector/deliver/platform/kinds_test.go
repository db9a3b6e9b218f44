package platform

import "testing"

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
}
