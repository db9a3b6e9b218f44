package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// person is how somebody is known, and why somebody is not.
type person struct {
	Name   string
	Groups []string
	Err    error
}

// claimsCase is a token's claims, and whom they make.
type claimsCase struct {
	claims string
	want   person
	// stricter says that kube-apiserver lets in whom the console does not.
	stricter bool
}

// Issuers of which kube-apiserver makes users in two ways.
const (
	bySubject = "subject"
	byEmail   = "email"
)

func claimsCases(issuer string) map[string]map[string]claimsCase {
	long := `"` + strings.Repeat("a", maxNameLength) + `"`
	many := `["` + strings.Repeat(`g","`, maxGroups) + `g"]`
	return map[string]map[string]claimsCase{
		bySubject: {
			"a name":                                         {claims: `{"sub":"ada"}`, want: person{Name: issuer + "#ada"}},
			"a name with groups":                             {claims: `{"sub":"ada","groups":["b","a","b"]}`, want: person{Name: issuer + "#ada", Groups: []string{"oidc:b", "oidc:a", "oidc:b"}}},
			"one group that is no list":                      {claims: `{"sub":"ada","groups":"admins"}`, want: person{Name: issuer + "#ada", Groups: []string{"oidc:admins"}}},
			"no groups in a list":                            {claims: `{"sub":"ada","groups":[]}`, want: person{Name: issuer + "#ada"}},
			"null in place of groups":                        {claims: `{"sub":"ada","groups":null}`, want: person{Name: issuer + "#ada"}},
			"the email beside":                               {claims: `{"sub":"ada","email":"a@example.com","email_verified":false}`, want: person{Name: issuer + "#ada"}},
			"letters of other scripts":                       {claims: `{"sub":"ädä 🐟"}`, want: person{Name: issuer + "#ädä 🐟"}},
			"a group of the cluster's, behind a prefix":      {claims: `{"sub":"system:admin","groups":["system:masters"]}`, want: person{Name: issuer + "#system:admin", Groups: []string{"oidc:system:masters"}}},
			"a number in place of groups":                    {claims: `{"sub":"ada","groups":7}`, want: person{Err: errGroups}},
			"an object in place of groups":                   {claims: `{"sub":"ada","groups":{"a":"b"}}`, want: person{Err: errGroups}},
			"a list with a number":                           {claims: `{"sub":"ada","groups":["a",7]}`, want: person{Err: errGroups}},
			"a list of lists":                                {claims: `{"sub":"ada","groups":[["a"]]}`, want: person{Err: errGroups}},
			"a number for a name":                            {claims: `{"sub":7}`, want: person{Err: errNoName}},
			"a newline in the name":                          {claims: `{"sub":"ada\nadmin"}`, want: person{Err: errName}, stricter: true},
			"an escape in the name":                          {claims: `{"sub":"ada\u001b[2J"}`, want: person{Err: errName}, stricter: true},
			"a name that is read backwards":                  {claims: `{"sub":"ada\u202enimda"}`, want: person{Err: errName}, stricter: true},
			"half a character in the name":                   {claims: `{"sub":"ada\ud800"}`, want: person{Err: errName}, stricter: true},
			"a name that is too long with its prefix":        {claims: `{"sub":` + long + `}`, want: person{Err: errName}, stricter: true},
			"more groups than the API server is to be asked": {claims: `{"sub":"ada","groups":` + many + `}`, want: person{Err: errMany}, stricter: true},
			"a group of 32 KiB":                              {claims: `{"sub":"ada","groups":["` + strings.Repeat("g", maxGroupsBytes) + `"]}`, want: person{Err: errMany}, stricter: true},
			"groups that are to be asked for":                {claims: `{"sub":"ada","_claim_names":{"groups":"src1"},"_claim_sources":{"src1":{"endpoint":"https://127.0.0.1:1/groups"}}}`, want: person{Err: errApart}},
		},
		byEmail: {
			"an address that is verified":               {claims: `{"sub":"1","email":"a@example.com","email_verified":true}`, want: person{Name: "a@example.com"}},
			"an address of which nothing is said":       {claims: `{"sub":"1","email":"a@example.com"}`, want: person{Name: "a@example.com"}},
			"an address that is not verified":           {claims: `{"sub":"1","email":"a@example.com","email_verified":false}`, want: person{Err: errEmail}},
			"an address that is verified in a text":     {claims: `{"sub":"1","email":"a@example.com","email_verified":"true"}`, want: person{Err: errEmail}},
			"no address":                                {claims: `{"sub":"1","email_verified":true}`, want: person{Err: errNoName}},
			"groups as they are":                        {claims: `{"sub":"1","email":"a@example.com","groups":["a","system"]}`, want: person{Name: "a@example.com", Groups: []string{"a", "system"}}},
			"a group that begins as the cluster's own":  {claims: `{"sub":"1","email":"a@example.com","groups":["a","system:masters"]}`, want: person{Err: errSystem}, stricter: true},
			"a name that begins as the cluster's own":   {claims: `{"sub":"1","email":"system:admin"}`, want: person{Err: errSystem}, stricter: true},
			"a part of the control plane":               {claims: `{"sub":"1","email":"system:kube-controller-manager","email_verified":true}`, want: person{Err: errSystem}, stricter: true},
			"a group with an end that is not the start": {claims: `{"sub":"1","email":"a@example.com","groups":["my-system:masters"]}`, want: person{Name: "a@example.com", Groups: []string{"my-system:masters"}}},
		},
	}
}

// mappings are how the flags make users, of the console as of kube-apiserver.
func mappings(issuer string) map[string]Claims {
	return map[string]Claims{
		bySubject: {Username: "sub", UsernamePrefix: UsernamePrefix("", "sub", issuer), Groups: "groups", GroupsPrefix: "oidc:"},
		byEmail:   {Username: "email", UsernamePrefix: UsernamePrefix("", "email", issuer), Groups: "groups"},
	}
}

func TestNamesAndGroupsAreMadeOfClaims(t *testing.T) {
	t.Parallel()
	const issuer = "https://login.example.com"
	for mapping, cases := range claimsCases(issuer) {
		for name, test := range cases {
			t.Run(mapping+": "+name, func(t *testing.T) {
				var payload map[string]json.RawMessage
				if err := json.Unmarshal([]byte(test.claims), &payload); err != nil {
					t.Fatal(err)
				}
				var got person
				u, err := mappings(issuer)[mapping].user(payload)
				if got.Err = err; u != nil {
					got.Name, got.Groups = u.name, u.groups
				}
				if !errors.Is(got.Err, test.want.Err) || got.Name != test.want.Name || !slices.Equal(got.Groups, test.want.Groups) {
					t.Errorf("got %+v, want %+v", got, test.want)
				}
			})
		}
	}
}

// TestNamesAndGroupsAreThoseOfTheAPIServer asks a kube-apiserver that takes the same provider's tokens who somebody is. It may let in whom
// the console does not, where that is said, and nobody else, and nobody under another name.
func TestNamesAndGroupsAreThoseOfTheAPIServer(t *testing.T) {
	t.Parallel()
	providers := map[string]*testProvider{bySubject: newTestProvider(t), byEmail: newTestProvider(t)}
	var config strings.Builder
	config.WriteString("apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt:\n")
	for _, mapping := range slices.Sorted(maps.Keys(providers)) {
		issuer := providers[mapping].URL
		claims := mappings(issuer)[mapping]
		authorities, err := json.Marshal(string(providers[mapping].authorities()))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&config, "- issuer: {url: %q, audiences: [%s], certificateAuthority: %s}\n  claimMappings:\n    username: {claim: %s, prefix: %q}\n    groups: {claim: %s, prefix: %q}\n",
			issuer, clientID, authorities, claims.Username, claims.UsernamePrefix, claims.Groups, claims.GroupsPrefix)
	}
	file := filepath.Join(t.TempDir(), "authentication.yaml")
	if err := os.WriteFile(file, []byte(config.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	environment := &envtest.Environment{}
	environment.ControlPlane.GetAPIServer().Configure().Set("authentication-config", file)
	admin, err := environment.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = environment.Stop() })
	ask := func(token string) person {
		as := rest.AnonymousClientConfig(admin)
		as.BearerToken = token
		c, err := client.New(as, client.Options{Scheme: cluster.scheme})
		if err != nil {
			return person{Err: err}
		}
		review := &authenticationv1.SelfSubjectReview{}
		if err := c.Create(context.Background(), review); err != nil {
			return person{Err: err}
		}
		groups := slices.DeleteFunc(review.Status.UserInfo.Groups, func(group string) bool { return group == authenticatedGroup })
		return person{Name: review.Status.UserInfo.Username, Groups: groups}
	}
	for mapping, provider := range providers {
		token := func(text string) string {
			now := time.Now()
			claims := map[string]any{"iss": provider.URL, "aud": clientID, "iat": now.Unix(), "exp": now.Add(5 * time.Minute).Unix()}
			var own map[string]any
			if err := json.Unmarshal([]byte(text), &own); err != nil {
				t.Fatal(err)
			}
			maps.Copy(claims, own)
			return provider.signed(claims)
		}
		eventually(t, "the API server knows the provider", func() bool { return ask(token(`{"sub":"ada","email":"ada@example.com"}`)).Err == nil })
		for name, test := range claimsCases(provider.URL)[mapping] {
			got := ask(token(test.claims))
			switch {
			case test.want.Err == nil:
				if diff := cmp.Diff(test.want.Name, got.Name); diff != "" || !slices.Equal(test.want.Groups, got.Groups) {
					t.Errorf("%s: %s: the API server knows %+v, the console %+v", mapping, name, got, test.want)
				}
			case (got.Err == nil) != test.stricter:
				t.Errorf("%s: %s: the API server says %+v, the console %v", mapping, name, got, test.want.Err)
			}
		}
	}
}

func TestThePrefixOfNamesIsThatOfTheAPIServersFlags(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ flag, claim, want string }{
		{"", "sub", "https://login.example.com#"},
		{"", "preferred_username", "https://login.example.com#"},
		{"", "email", ""},
		{"-", "sub", ""},
		{"-", "email", ""},
		{"oidc:", "sub", "oidc:"},
		{"oidc:", "email", "oidc:"},
	} {
		if got := UsernamePrefix(c.flag, c.claim, "https://login.example.com"); got != c.want {
			t.Errorf("%q of %s: got %q, want %q", c.flag, c.claim, got, c.want)
		}
	}
}

// TestUsersOfOtherNamesOrGroupsAreToldApart holds that what one may do is remembered for nobody else.
func TestUsersOfOtherNamesOrGroupsAreToldApart(t *testing.T) {
	t.Parallel()
	seen := map[[32]byte]string{}
	for _, u := range []struct {
		name   string
		groups []string
	}{
		{"a", nil}, {"a", []string{""}}, {"a", []string{"b"}}, {"a", []string{"b", "c"}}, {"a", []string{"bc"}}, {"ab", nil}, {"ab", []string{"c"}},
		{"a", []string{"c", "b"}}, {"", []string{"a"}}, {"a\x00b", nil},
	} {
		one := newUser(u.name, u.groups)
		if other, found := seen[one.digest]; found {
			t.Errorf("%v is taken for %s", u, other)
		}
		seen[one.digest] = fmt.Sprint(u)
	}
}
