// Package bots tells programs from browsers by their user agents: crawlers, monitors, previews, libraries that fetch. It
// knows those that say what they are; one that passes itself off as a browser is taken for one.
package bots

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"regexp"
	"strings"
	"sync/atomic"

	"github.com/dlclark/regexp2/v2"
)

var (
	// release is the list of isbot, as hack/isbot.sh takes it from its package.
	//
	//go:embed isbot.json
	release []byte
	// additions are patterns of programs that isbot does not know yet, one a line; "#" begins a comment.
	//
	//go:embed additions.txt
	additions string
)

// A [Detector] remembers this many sets of so many user agents; a user agent's hash says in which set it may be. A shop's
// visitors have a few hundred at a time, of which hardly ever more than a set's fall into the same one.
const (
	sets    = 1 << 12
	setSize = 4
)

// Detector tells bots. It is safe for concurrent use and takes 128 KiB beside its patterns.
type Detector struct {
	// words and beginnings are the patterns that are plain text; what they leave is up to the patterns, which cost more.
	words, beginnings []string
	patterns          []*regexp2.Regexp

	seed maphash.Seed
	// verdicts hold the upper 63 bits of a user agent's hash and in the lowest whether it is a bot's; 0 stands for nothing.
	// The texts themselves are not kept.
	verdicts [sets][setSize]atomic.Uint64
}

// New returns a detector. It fails where the lists that are compiled in cannot be read.
func New() (*Detector, error) {
	var list struct{ Patterns []string }
	if err := json.Unmarshal(release, &list); err != nil {
		return nil, fmt.Errorf("the list of bots: %w", err)
	}
	for line := range strings.Lines(additions) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			list.Patterns = append(list.Patterns, line)
		}
	}
	d := &Detector{seed: maphash.MakeSeed()}
	for _, pattern := range list.Patterns {
		beginning, anchored := strings.CutPrefix(pattern, "^")
		switch {
		case anchored && isPlain(beginning):
			d.beginnings = append(d.beginnings, beginning)
		case isPlain(pattern):
			d.words = append(d.words, pattern)
		default:
			// The list is written for JavaScript and looks behind and ahead, which Go's own package cannot.
			compiled, err := regexp2.Compile(pattern, regexp2.ECMAScript)
			if err != nil {
				return nil, fmt.Errorf("the list of bots: %w", err)
			}
			d.patterns = append(d.patterns, compiled)
		}
	}
	return d, nil
}

func isPlain(pattern string) bool { return regexp.QuoteMeta(pattern) == pattern }

// IsBot says whether a user agent is that of a program. An empty one says nothing, and is not.
func (d *Detector) IsBot(userAgent string) bool {
	if userAgent == "" {
		return false
	}
	hash := maphash.String(d.seed, userAgent)
	set, bots, others := &d.verdicts[hash>>1%sets], hash|1, hash&^1
	into := hash >> 60 % setSize // as good as any: the hash is random
	for i := range set {
		switch set[i].Load() {
		case 0: // nothing, whatever the hash is
			into = uint64(i)
		case bots:
			return true
		case others:
			return false
		}
	}
	verdict, bot := others, d.matches(strings.ToLower(userAgent))
	if bot {
		verdict = bots
	}
	set[into].Store(verdict)
	return bot
}

// matches says whether a user agent in lower case, as the patterns are, is a bot's.
func (d *Detector) matches(userAgent string) bool {
	for _, beginning := range d.beginnings {
		if strings.HasPrefix(userAgent, beginning) {
			return true
		}
	}
	for _, word := range d.words {
		if strings.Contains(userAgent, word) {
			return true
		}
	}
	for _, pattern := range d.patterns {
		if found, err := pattern.MatchString(userAgent); err == nil && found { // it fails by a time limit alone, and has none
			return true
		}
	}
	return false
}
