package event_test

import (
	"testing"

	"github.com/weir-dev/weir/collector/event"
)

func TestClickIDsAreTakenOutOfURLs(t *testing.T) {
	tests := map[string]struct{ url, want string }{
		"no URL":                  {"", ""},
		"no query":                {"https://a.example/p", "https://a.example/p"},
		"no click id":             {"https://a.example/p?a=1&b", "https://a.example/p?a=1&b"},
		"an empty query":          {"https://a.example/p?", "https://a.example/p?"},
		"a click id alone":        {"https://a.example/p?gclid=x", "https://a.example/p"},
		"a click id among others": {"https://a.example/?a=1&fbclid=x&b=2", "https://a.example/?a=1&b=2"},
		"several":                 {"https://a.example/?gclid=x&wbraid=y&b=2", "https://a.example/?b=2"},
		"Snapchat's, in any case": {"https://a.example/?ScCid=x&b=2#f", "https://a.example/?b=2#f"},
		"the fragment stays":      {"https://a.example/?gclid=x#gclid=y", "https://a.example/#gclid=y"},
		"a parameter with a click id in its name": {"https://a.example/?my_gclid=x", "https://a.example/?my_gclid=x"},
		"what is no URL": {"?ttclid=1&&x", "?&x"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := event.WithoutClickIDs(tt.url); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
