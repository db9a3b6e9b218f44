package judges_test

import (
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/deliver/adapter"
	"github.com/weir-dev/weir/collector/platforms"
)

// Meta's pages show the token in the address. Weir puts it into a header, as Segment's destination does.
func TestMetaGetsTheTokenWhereSegmentPutsIt(t *testing.T) {
	const token = "a-token"
	theirs := judge[struct {
		URL     string            `json:"url"`
		Headers map[string]string `json:"headers"`
	}](t, "token.mjs", []byte(token))

	cfg := platforms.Platform{Name: "meta", Type: platforms.TypeMeta, Settings: platforms.Settings{Meta: &platforms.Meta{PixelID: "1"}}}
	opened, err := adapter.Open(cfg, map[string]string{"accessToken": token}, new(config.Consent).Rule(&cfg))
	if err != nil {
		t.Fatal(err)
	}
	ours := opened.Build([]adapter.Payload{{Body: []byte("{}")}}, time.Now())
	version := regexp.MustCompile(`/v[0-9]+\.[0-9]+/`)
	want := []string{version.ReplaceAllString(theirs.URL, "/VERSION/"), theirs.Headers["authorization"]}
	got := []string{version.ReplaceAllString(ours.URL, "/VERSION/"), ours.Header.Get("Authorization")}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the address and the header (-Segment +Weir):\n%s", diff)
	}
}
