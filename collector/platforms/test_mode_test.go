package platforms_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/platforms"
)

// Each page says how its type is tried with a made-up event, in the table's words.
func TestThePagesSayHowATestEventIsSent(t *testing.T) {
	for _, kind := range platforms.Types() {
		t.Run(string(kind), func(t *testing.T) {
			traits, _ := kind.Traits()
			_, after, _ := strings.Cut(read(t, strings.ToLower(string(kind))+".md"), "\n## Test event\n")
			section, _, before := strings.Cut(after, "\n## Proof\n")
			if !before {
				t.Fatal("its page has no section Test event before the section Proof")
			}
			if text := strings.Join(strings.Fields(section), " "); traits.TestMode.Text == "" || !strings.HasPrefix(text, traits.TestMode.Text) {
				t.Errorf("its section Test event begins with %.80q, want %q", text, traits.TestMode.Text)
			}
		})
	}
}

func TestSettingsInTestMode(t *testing.T) {
	for sentence, test := range map[string]struct {
		kind platforms.Type
		have platforms.Settings
		code string
		want platforms.Settings
	}{
		"a code that is given": {
			platforms.TypeMeta, platforms.Settings{Meta: &platforms.Meta{PixelID: "1"}}, "TEST1",
			platforms.Settings{Meta: &platforms.Meta{PixelID: "1", TestEventCode: "TEST1"}},
		},
		"a code that is given rather than the settings' own": {
			platforms.TypeTikTok, platforms.Settings{TikTok: &platforms.TikTok{TestEventCode: "OWN"}}, "TEST1",
			platforms.Settings{TikTok: &platforms.TikTok{TestEventCode: "TEST1"}},
		},
		"the settings' own code": {
			platforms.TypeReddit, platforms.Settings{Reddit: &platforms.Reddit{TestID: "t2_a"}}, "",
			platforms.Settings{Reddit: &platforms.Reddit{TestID: "t2_a"}},
		},
		"a switch": {
			platforms.TypeSnapchat, platforms.Settings{Snapchat: &platforms.Snapchat{}}, "",
			platforms.Settings{Snapchat: &platforms.Snapchat{Test: true}},
		},
		"nothing where there is no mode": {
			platforms.TypeAmplitude, platforms.Settings{Amplitude: &platforms.Amplitude{}}, "",
			platforms.Settings{Amplitude: &platforms.Amplitude{}},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			before := *test.have.DeepCopy()
			if diff := cmp.Diff(test.want, test.kind.InTestMode(&test.have, test.code)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, test.have); diff != "" {
				t.Errorf("the settings themselves have changed (-before +after):\n%s", diff)
			}
		})
	}
}

// A code that nobody has to give would be asked for in vain, and one that nobody reads would make a test count.
func TestATypeThatNeedsACodeTakesOne(t *testing.T) {
	for _, kind := range platforms.Types() {
		traits, _ := kind.Traits()
		settings := map[platforms.Type]platforms.Settings{
			platforms.TypeMeta:   {Meta: &platforms.Meta{TestEventCode: "a"}},
			platforms.TypeTikTok: {TikTok: &platforms.TikTok{TestEventCode: "a"}},
			platforms.TypeReddit: {Reddit: &platforms.Reddit{TestID: "a"}},
		}[kind]
		if got, want := kind.HasTestCode(&settings), traits.TestMode.Code != ""; got != want {
			t.Errorf("%s: settings with a code are taken to have one: %v, want %v", kind, got, want)
		}
	}
}
