package console

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// systemPrefix begins the names and groups that are the cluster's own. A provider that could make them would make the cluster's
// administrators, and parts of its control plane.
const systemPrefix = "system:"

// Bounds of what a provider says of a person. The API server is told of all groups with each question.
const (
	maxNameLength  = 512 // characters, as spec.createdBy has
	maxGroups      = 1000
	maxGroupsBytes = 32 << 10
)

// Claims say which claims of an ID token make a person's name and groups, as kube-apiserver's --oidc-username-claim and its
// neighbours do.
type Claims struct {
	Username, UsernamePrefix string
	// Groups is "" where nobody has groups.
	Groups, GroupsPrefix string
}

// noPrefix is the value of a prefix's flag that asks for none.
const noPrefix = "-"

// UsernamePrefix is what stands before names where the flag says so: what kube-apiserver makes of --oidc-username-prefix.
func UsernamePrefix(flag, claim, issuer string) string {
	switch {
	case flag == noPrefix:
		return ""
	case flag == "" && claim != "email":
		return issuer + "#"
	}
	return flag
}

// user is a person as the API server knows them.
type user struct {
	name   string
	groups []string
	// digest tells users of other names or groups apart.
	digest [sha256.Size]byte
}

// newUser is somebody of a name and groups.
func newUser(name string, groups []string) *user {
	u := &user{name: name, groups: groups}
	sum := sha256.New()
	for _, text := range slices.Concat([]string{name}, groups) {
		var length [8]byte // so that no two lists are written alike
		binary.BigEndian.PutUint64(length[:], uint64(len(text)))
		sum.Write(length[:])
		sum.Write([]byte(text))
	}
	sum.Sum(u.digest[:0])
	return u
}

// Reasons for which somebody may not sign in whom the provider has let in. They are shown to that person.
var (
	errNoName = errors.New("the provider does not send the claim that makes the user name")
	errName   = errors.New("the user name must be text of 1 to 512 characters without control characters")
	errEmail  = errors.New("the provider has not verified the e-mail address")
	errSystem = errors.New("names and groups that begin with system: are the cluster's own")
	errGroups = errors.New("the claim with the groups must be a list of texts, or one text")
	errApart  = errors.New("the provider does not send the groups with the ID token, as it does where they are too many")
	errMany   = fmt.Errorf("the groups must be at most %d, of %d KiB together", maxGroups, maxGroupsBytes>>10)
)

// user reads the name and the groups out of an ID token's payload.
func (c Claims) user(payload map[string]json.RawMessage) (*user, error) {
	name, err := c.name(payload)
	if err != nil {
		return nil, err
	}
	groups, err := c.groupsIn(payload)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(name, systemPrefix) || slices.ContainsFunc(groups, func(group string) bool { return strings.HasPrefix(group, systemPrefix) }) {
		return nil, errSystem
	}
	return newUser(name, groups), nil
}

func (c Claims) name(payload map[string]json.RawMessage) (string, error) {
	var name string
	if claim, found := payload[c.Username]; !found || json.Unmarshal(claim, &name) != nil || name == "" {
		return "", errNoName
	}
	if verified, said := payload["email_verified"]; said && c.Username == "email" {
		if yes := false; json.Unmarshal(verified, &yes) != nil || !yes {
			return "", errEmail
		}
	}
	name = c.UsernamePrefix + name
	if !utf8.ValidString(name) || utf8.RuneCountInString(name) > maxNameLength || strings.ContainsFunc(name, unprintable) {
		return "", errName
	}
	return name, nil
}

// unprintable says whether a character changes how a line reads in which a name stands, or ends it.
func unprintable(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Zl, unicode.Zp, unicode.Bidi_Control) || r == utf8.RuneError
}

func (c Claims) groupsIn(payload map[string]json.RawMessage) ([]string, error) {
	if c.Groups == "" {
		return nil, nil
	}
	var apart map[string]json.RawMessage
	if names, found := payload["_claim_names"]; found && json.Unmarshal(names, &apart) != nil {
		return nil, errGroups
	}
	if _, found := apart[c.Groups]; found {
		return nil, errApart
	}
	claim, found := payload[c.Groups]
	if !found {
		return nil, nil
	}
	var groups []string
	if json.Unmarshal(claim, &groups) != nil {
		var one string
		if json.Unmarshal(claim, &one) != nil {
			return nil, errGroups
		}
		groups = []string{one}
	}
	size := 0
	for i := range groups {
		groups[i] = c.GroupsPrefix + groups[i]
		size += len(groups[i])
	}
	if len(groups) > maxGroups || size > maxGroupsBytes {
		return nil, errMany
	}
	return groups, nil
}
