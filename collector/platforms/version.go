package platforms

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// maxVersionLength is how many characters [Platform.APIVersion] may have.
const maxVersionLength = 20

// Version is a version of a platform's interface.
type Version struct {
	// Name is as the platform's documentation writes it; "" where its interface has no versions.
	Name string
	// Ends is when the platform stops taking it, at the beginning of a day in UTC; zero where it has announced no end, or
	// nobody here knows of one.
	Ends time.Time
}

// Version is the version that is spoken to a platform of the type: the one that its owner has chosen, or the type's own where
// chosen is "".
func (t Type) Version(chosen string) Version {
	traits := table[t]
	if chosen == "" || chosen == traits.APIVersion {
		return Version{traits.APIVersion, traits.APIVersionEnds}
	}
	return Version{chosen, traits.OtherVersionsEnd[chosen]}
}

// VersionedTypes returns the types whose version the owner may choose, sorted.
func VersionedTypes() []Type {
	return slices.DeleteFunc(Types(), func(t Type) bool { return table[t].APIVersionPattern == "" })
}

// VersionRule says what a version of the type's may be, in the Property's definition as in the pods.
func (t Type) VersionRule() string {
	if table[t].APIVersionPattern == "" {
		return "must be absent: the types that let one choose a version are " + listed(VersionedTypes())
	}
	return fmt.Sprintf("must be a version as %s writes it, such as %s", t, table[t].APIVersion)
}

// TakesVersion says whether the owner of a platform of the type may choose the version; none may always be chosen.
func (t Type) TakesVersion(version string) bool {
	pattern := table[t].APIVersionPattern
	return version == "" ||
		pattern != "" && utf8.RuneCountInString(version) <= maxVersionLength && regexp.MustCompile(pattern).MatchString(version)
}

// listed writes types as a text lists them.
func listed(types []Type) string {
	words := make([]string, len(types))
	for i, t := range types {
		words[i] = string(t)
	}
	return strings.Join(words, ", ")
}

// day is the beginning of a day in UTC.
func day(year int, month time.Month, number int) time.Time {
	return time.Date(year, month, number, 0, 0, 0, 0, time.UTC)
}
