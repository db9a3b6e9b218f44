package columns

import (
	"iter"
	"strings"
)

// PlatformList is the names of an event's platforms, in the Property's order.
type PlatformList string

// platformSeparator stands between the names; no name contains it.
const platformSeparator = "\x00"

// ListPlatforms returns the names as a list.
func ListPlatforms(names []string) PlatformList {
	return PlatformList(strings.Join(names, platformSeparator))
}

// Count returns how many names the list has.
func (l PlatformList) Count() int {
	if l == "" {
		return 0
	}
	return strings.Count(string(l), platformSeparator) + 1
}

// All returns the names with their places in the list.
func (l PlatformList) All() iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		for place := 0; l != ""; place++ {
			name, rest, _ := strings.Cut(string(l), platformSeparator)
			if !yield(place, name) {
				return
			}
			l = PlatformList(rest)
		}
	}
}

// placeOf returns a platform's place in the list, -1 where it is not in it.
func (l PlatformList) placeOf(platform string) int {
	for place, name := range l.All() {
		if name == platform {
			return place
		}
	}
	return -1
}
