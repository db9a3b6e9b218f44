package main

import (
	"fmt"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/weir-dev/weir/collector/stream"
)

// formats is the page that describes Redis's keys, and security the one that says who may do what with them.
const formats = "docs/internals/formats.md"

// holds says what each key has of persons. It begins with "nothing" where that is nothing.
var holds = map[string]string{
	"events":                  "the members above, in the form above",
	"deliveries":              "what became of events, which it names by their positions; nothing by itself",
	"seal:device":             "keys of what is sealed of devices in `events`: without them nobody can read that",
	"seal:identity":           "keys of what is sealed of persons in `events`: without them nobody can read that",
	"seal:dropped":            "nothing",
	"dedup":                   "nothing",
	"dedup:SLOT":              "digests of 10 bytes of event and order ids; beside an order's the id of its first event",
	"join":                    "nothing",
	"join:SLOT":               "digests of 8 bytes of user and client ids, e-mail addresses and phone numbers, and whom they stand for",
	"clock":                   "nothing",
	"batches:PERIOD:SHARD":    "event ids, in answers",
	"rate":                    "nothing",
	"rate:KEY":                "nothing",
	"import:events":           "as `events`",
	"import:deliveries":       "as `deliveries`",
	"restoring":               "nothing",
	"restore:KEY":             "as the key",
	"rejections":              "event ids, and the names of events",
	"retry:PLATFORM:due":      "positions of events; nothing by itself",
	"retry:PLATFORM:open":     "positions of events; nothing by itself",
	"retry:PLATFORM:attempts": "positions of events, and a platform's ids of requests; nothing by itself",
	"order:PLATFORM:DIGEST":   "a digest of 10 bytes of an order's id; what was paid and refunded, and when",
	"shadow:PLATFORM":         "IP addresses, user agents, ids and hashes of persons, as a platform would get them",
	"writer:PLATFORM":         "who writes files to a bucket; nothing of persons",
	"replay:request":          "nothing",
	"replay:answers":          "nothing",
	"test:request":            "nothing",
	"test:answers":            "nothing: the event is made up",
	"test:busy":               "nothing",
	"platforms":               "nothing",
	"erasure:requests":        "digests of 8 bytes of whom somebody wants to be erased",
	"erasure:ledger":          "digests of who was erased, keyed with a salt that lies elsewhere",
	"erasure:state:ID":        "times and counts; where there is a history, for seconds, digests of 8 bytes of what was seen with the subject",
	"erasure:open":            "nothing",
	"erasure:hidden":          "nothing",
	"erasure:lock":            "nothing",
	"audit:keys":              "nothing: digests of API keys",
	"audit:tokens":            "nothing: digests of access tokens",
	"paused:PLATFORM":         "nothing",
	"paused:source/NAME":      "nothing",
	"paused:history/archive":  "nothing",
	"archive":                 "positions in the streams; nothing by itself",
	"source:NAME":             "nothing",
	"counts:slot:SLOT":        "nothing: counts, and the names of events",
	"counts:hour:HOUR":        "nothing: counts, and the names of events",
	"compared:NAME":           "order ids, and what was paid",
}

const keysIntro = `
## Keys in Redis

Behind ` + "`weir:{NAMESPACE/NAME}:`" + `, with what [formats.md](../internals/formats.md#keys) says of them. Who reads and writes
follows from the rules of the roles' users: each pod has the user of its role and nothing else. The deliverer of a
Property with a source that has an ` + "`apiSecretRef`" + ` has the collector's rights beside its own. The operator is Redis's
administrator and may do everything. Reading may be bounded to asking whether something that one knows is there:
[security.md](../operate/security.md#redis) has the commands.

| Key | Of persons | Lives | Read by | Written by |
|---|---|---|---|---|
`

// documentedKey is a row of the table of keys in formats.md.
type documentedKey struct{ name, lives string }

// keyRows writes who may read and write each key.
func keyRows() (string, error) {
	keys, err := documentedKeys()
	if err != nil {
		return "", err
	}
	var rows strings.Builder
	rows.WriteString(keysIntro)
	for _, key := range keys {
		has, known := holds[key.name]
		if !known {
			return "", fmt.Errorf("%s has the key %s, and nobody says what it has of persons: add it to holds", formats, key.name)
		}
		readers, writers := accessors(key.name)
		fmt.Fprintf(&rows, "| `%s` | %s | %s | %s | %s |\n", key.name, has, key.lives, strings.Join(readers, ", "), strings.Join(writers, ", "))
	}
	return rows.String(), nil
}

var (
	keyRow = regexp.MustCompile("(?m)^\\| ((?:`[^`]+`(?:, )?)+) \\| [^|]* \\| [^|]* \\| ([^|]*) \\|$")
	named  = regexp.MustCompile("`([^`]+)`")
	linked = regexp.MustCompile(`\]\(([^)]*)\)`)
)

// documentedKeys reads the table of keys in formats.md, whose links lead from there.
func documentedKeys() ([]documentedKey, error) {
	text, err := os.ReadFile(formats)
	if err != nil {
		return nil, err
	}
	_, section, found := strings.Cut(string(text), "\n## Keys\n")
	if !found {
		return nil, fmt.Errorf("%s has no section Keys", formats)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var keys []documentedKey
	for _, row := range keyRow.FindAllStringSubmatch(section, -1) {
		for _, name := range named.FindAllStringSubmatch(row[1], -1) {
			keys = append(keys, documentedKey{name[1], linked.ReplaceAllString(row[2], "](../internals/formats.md$1)")})
		}
	}
	if len(keys) < 20 {
		return nil, fmt.Errorf("%s: %d keys are found, and there are more", formats, len(keys))
	}
	return keys, nil
}

// user is a role's in Redis.
type user struct {
	role   string
	access stream.Access
}

// users are the roles'; fetcher is the deliverer's where it reads a shop's orders, and has keys that it has otherwise not.
var (
	users   = []user{{"collector", stream.AppendAccess}, {"deliverer", stream.DeliverAccess}, {"query", stream.ReadAccess}, {"archive", stream.ArchiveAccess}}
	fetcher = user{"deliverer", stream.FetchAccess}
)

// examples stand for what a key's name leaves open.
var examples = strings.NewReplacer("slot:SLOT", "slot:42", "HOUR", "420", "PERIOD:SHARD", "4:ff", "PLATFORM", "meta", "SLOT", "7", "KEY", "16", "NAME", "shop", "ID", "1", "/", "_")

// accessors says which roles' users may read a key, and which may write it. A function of the library has its caller's rights,
// so what a user may call functions on says nothing.
func accessors(name string) (readers, writers []string) {
	const namespace, property = "default", "shop"
	key := examples.Replace(name)
	among := users
	if strings.HasPrefix(key, "source:") {
		among = []user{fetcher}
	}
	if strings.HasPrefix(key, "compared:") {
		among = append([]user{fetcher}, users...)
	}
	for _, row := range among {
		for _, rule := range row.access.Rules(namespace, property, 0) {
			words := strings.Fields(strings.Trim(rule, "()"))
			if slices.Contains(words, "+fcall") {
				continue
			}
			for _, word := range words {
				rights, pattern, isKey := strings.Cut(word, "weir:{"+namespace+"/"+property+"}:")
				if matches, err := path.Match(strings.ReplaceAll(pattern, "/", "_"), key); !isKey || err != nil || !matches {
					continue
				}
				if rights != "%W~" && !slices.Contains(readers, row.role) {
					readers = append(readers, row.role)
				}
				if rights != "%R~" && !slices.Contains(writers, row.role) {
					writers = append(writers, row.role)
				}
			}
		}
	}
	return readers, writers
}
