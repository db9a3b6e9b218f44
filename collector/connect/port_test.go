package connect_test

import (
	"net/url"
	"testing"

	"github.com/weir-dev/weir/collector/connect"
)

func TestAPortIsTheSchemesWhereNoneIsNamed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]uint16{
		"http://host":          80,
		"https://host":         443,
		"https://host:":        443,
		"https://host:8443":    8443,
		"http://[::1]:3128/":   3128,
		"http://user:pw@[::1]": 80,
		"http://host:70000":    0,
		"http://host:0":        0,
		"redis://host":         0,
	} {
		parsed, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := connect.Port(parsed); got != want {
			t.Errorf("%s leads to port %d, want %d", text, got, want)
		}
	}
}
