package personal_test

import (
	"crypto/sha256"
	"strings"
	"testing"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/personal"
)

func TestTheExternalID(t *testing.T) {
	of := func(text string) event.Hash { return sha256.Sum256([]byte(text)) }
	for name, test := range map[string]struct {
		client string
		want   event.Hash
	}{
		"is of the id":                      {"client-1", of("client-1")},
		"in lower case":                     {"Client-1", of("client-1")},
		"without blanks around":             {" client-1\u200b", of("client-1")},
		"with a final sigma":                {"ΚΩΔΙΚΟΣ", of("κωδικος")},
		"is the id where that is a SHA-256": {of("x").String(), of("x")},
		"also in capitals":                  {strings.ToUpper(of("x").String()), of("x")},
		"is none of nobody's":               {"", event.Hash{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := personal.ExternalID(test.client); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
