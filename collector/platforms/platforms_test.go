package platforms_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/platforms"
)

const pages = "../../docs/reference/platforms/"

// row is what the list of pages says of a type.
type row struct{ events, age string }

func TestThePagesSayWhatTheTableSays(t *testing.T) {
	listed := rows(t)
	for _, platform := range platforms.Types() {
		t.Run(string(platform), func(t *testing.T) {
			traits, _ := platform.Traits()
			want := row{fmt.Sprint(traits.Limits.Events), "any age"}
			if traits.MaxAge > 0 {
				want.age = fmt.Sprintf("%d days", traits.MaxAge/(24*time.Hour))
			}
			if diff := cmp.Diff(want, listed[string(platform)], cmp.AllowUnexported(row{})); diff != "" {
				t.Errorf("its row in the list (-table +page):\n%s", diff)
			}
			page := read(t, strings.ToLower(string(platform))+".md")
			for _, text := range slices.Concat(traits.Credentials, []string{traits.APIVersion}) {
				if !strings.Contains(page, text) {
					t.Errorf("its page does not name %s", text)
				}
			}
		})
	}
}

func TestEveryTypeSaysHowAPersonIsErasedThere(t *testing.T) {
	for _, platform := range platforms.Types() {
		t.Run(string(platform), func(t *testing.T) {
			traits, _ := platform.Traits()
			page := strings.Join(strings.Fields(read(t, strings.ToLower(string(platform))+".md")), " ")
			if traits.Erasure.Instruction == "" || !strings.Contains(page, traits.Erasure.Instruction) || !strings.Contains(page, traits.Erasure.URL) {
				t.Errorf("its page does not say %q and %q", traits.Erasure.Instruction, traits.Erasure.URL)
			}
		})
	}
}

// rows reads the list of pages: | [Type](page) | what it is | events a request | … | takes events of up to | … |.
func rows(t *testing.T) map[string]row {
	t.Helper()
	found := map[string]row{}
	for line := range strings.Lines(read(t, "README.md")) {
		cells := strings.Split(line, "|")
		if name, _, isLink := strings.Cut(cells[min(1, len(cells)-1)], "]("); isLink && len(cells) == 8 {
			found[strings.TrimPrefix(name, " [")] = row{strings.TrimSpace(cells[3]), strings.TrimSpace(cells[5])}
		}
	}
	return found
}

func read(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(pages + page)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestCheckSettingsNamesTheMemberAndWhatWouldBeRight(t *testing.T) {
	meta := func(pixel, code string) platforms.Settings {
		return platforms.Settings{Meta: &platforms.Meta{PixelID: pixel, TestEventCode: code}}
	}
	webhook := func(url string) platforms.Settings {
		return platforms.Settings{Webhook: &platforms.Webhook{URL: url}}
	}
	for name, test := range map[string]struct {
		platform platforms.Type
		settings platforms.Settings
		want     []string
	}{
		"what the type takes":             {platforms.TypeMeta, meta("1", "TEST1"), nil},
		"an optional text that is absent": {platforms.TypeMeta, meta("1", ""), nil},
		"a required text that is absent":  {platforms.TypeMeta, meta("", ""), []string{"meta.pixelID: must be the digits of a pixel's or dataset's id, in quotes"}},
		"every wrong text is named": {platforms.TypeMeta, meta("p", "a b"), []string{
			"meta.pixelID: must be the digits of a pixel's or dataset's id, in quotes",
			"meta.testEventCode: must be a code of Meta's Events Manager, such as TEST12345, or absent",
		}},
		"a text that is too long": {platforms.TypeMeta, meta(strings.Repeat("1", 33), ""), []string{
			"meta.pixelID: must be the digits of a pixel's or dataset's id, in quotes",
		}},
		"none of the values": {platforms.TypeMixpanel, platforms.Settings{Mixpanel: &platforms.Mixpanel{ProjectID: "1", Region: "MARS"}}, []string{
			"mixpanel.region: must be one of US, EU, IN, or absent",
		}},
		"no settings":                  {platforms.TypeGA4, platforms.Settings{}, []string{"ga4: must be set for a platform of type GA4"}},
		"the settings of another type": {platforms.TypeLog, meta("1", ""), []string{"meta: must be absent for a platform of type Log"}},
		"a URL with a password in it": {platforms.TypeWebhook, webhook("https://weir:hush@crm.example.com/hook"), []string{
			"webhook.url: must be an http or https URL with a host, such as https://crm.example.com/hook",
		}},
		"a URL without a host": {platforms.TypeWebhook, webhook("https:///hook"), []string{
			"webhook.url: must be an http or https URL with a host, such as https://crm.example.com/hook",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			test.platform.CheckSettings(&test.settings, func(member, rule string) { got = append(got, member+": "+rule) })
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}
