package platforms_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-dev/weir/collector/platforms"
)

func TestTheVersionThatIsSpokenIsTheOwnersOrElseTheTypes(t *testing.T) {
	meta, _ := platforms.TypeMeta.Traits()
	for sentence, test := range map[string]struct {
		kind   platforms.Type
		chosen string
		want   platforms.Version
	}{
		"the type's where its owner chooses none":          {platforms.TypeMeta, "", platforms.Version{Name: meta.APIVersion, Ends: meta.APIVersionEnds}},
		"the type's where its owner chooses the same":      {platforms.TypeMeta, meta.APIVersion, platforms.Version{Name: meta.APIVersion, Ends: meta.APIVersionEnds}},
		"an older one, whose end Meta has announced":       {platforms.TypeMeta, "v21.0", platforms.Version{Name: "v21.0", Ends: time.Date(2027, 1, 21, 0, 0, 0, 0, time.UTC)}},
		"a newer one, of whose end nobody knows":           {platforms.TypeMeta, "v99.0", platforms.Version{Name: "v99.0"}},
		"none of an interface that has no versions":        {platforms.TypeLog, "", platforms.Version{}},
		"the only one where the platform lets none choose": {platforms.TypeTikTok, "", platforms.Version{Name: "v1.3"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := test.kind.Version(test.chosen); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestAVersionIsTakenInTheFormThatItsPlatformWrites(t *testing.T) {
	for version, want := range map[string]bool{
		"": true, "v26.0": true, "v9.0": true, "v100.12": true,
		"26.0": false, "v26": false, "v26.0/../me": false, "v26.0 v25.0": false, "V26.0": false, "v26.0\n": false,
		"v" + strings.Repeat("1", 17) + ".0": true, "v" + strings.Repeat("1", 18) + ".0": false,
	} {
		if got := platforms.TypeMeta.TakesVersion(version); got != want {
			t.Errorf("Meta takes %q: %t, want %t", version, got, want)
		}
	}
	if platforms.TypeLog.TakesVersion("v1") || !platforms.TypeLog.TakesVersion("") {
		t.Error("a type without versions takes none alone")
	}
}

// What the table says of versions fits together, for each type that has one.
func TestTheTableOfVersionsIsSound(t *testing.T) {
	for _, kind := range platforms.Types() {
		traits, _ := kind.Traits()
		if traits.APIVersionPattern != "" && !regexp.MustCompile(traits.APIVersionPattern).MatchString(traits.APIVersion) {
			t.Errorf("%s: its own version %q is none that its owner could choose: %s", kind, traits.APIVersion, traits.APIVersionPattern)
		}
		if traits.APIVersionPattern != "" && (!strings.HasPrefix(traits.APIVersionPattern, "^") || !strings.HasSuffix(traits.APIVersionPattern, "$")) {
			t.Errorf("%s: the pattern %s has to be of the whole text: it becomes part of an address or a header", kind, traits.APIVersionPattern)
		}
		ends := []time.Time{traits.APIVersionEnds}
		for version, end := range traits.OtherVersionsEnd {
			ends = append(ends, end)
			if version == traits.APIVersion || !kind.TakesVersion(version) || end.IsZero() {
				t.Errorf("%s: %s is its own version, or none that can be chosen, or its end is not said", kind, version)
			}
		}
		if slices.ContainsFunc(ends, func(end time.Time) bool { return !end.Equal(end.UTC().Truncate(24 * time.Hour)) }) {
			t.Errorf("%s: a version ends at the beginning of a day in UTC; the table has %v", kind, ends)
		}
	}
}

// The page of a type that lets its owner choose says so, and which of the other versions end when.
func TestThePagesSayWhichVersionsEnd(t *testing.T) {
	for _, kind := range platforms.VersionedTypes() {
		t.Run(string(kind), func(t *testing.T) {
			traits, _ := kind.Traits()
			page := read(t, strings.ToLower(string(kind))+".md")
			if !strings.Contains(page, "apiVersion") {
				t.Error("its page does not name apiVersion")
			}
			for version, end := range traits.OtherVersionsEnd {
				if row := fmt.Sprintf("| %#q | %s |\n", version, end.Format(time.DateOnly)); !strings.Contains(page, row) {
					t.Errorf("its page lacks the row %s", row)
				}
			}
		})
	}
}
