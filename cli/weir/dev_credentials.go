package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/query"
	"github.com/weir-dev/weir/collector/role"
	"github.com/weir-dev/weir/collector/snippet"
	"github.com/weir-dev/weir/controllers/resources"
)

// devCredentials is the content of credentials.json.
type devCredentials struct {
	Properties []devProperty `json:"properties"`
	// Kept are those of properties that earlier runs served and this one does not: their events are still there.
	Kept []devProperty `json:"kept,omitempty"`
}

// devProperty is what a person needs to send to a property and to read from it.
type devProperty struct {
	// Namespace and ID tell Properties apart. The id alone stands in paths of the read API: the token says which is meant.
	Namespace string `json:"namespace"`
	ID        string `json:"id"`
	// CollectURL is the part of the collection endpoint before /collect/.
	CollectURL   string     `json:"collect_url"`
	BaseURL      string     `json:"base_url"`
	APIKeys      []devKey   `json:"api_keys"`
	AccessTokens []devToken `json:"access_tokens"`
}

type devKey struct {
	Name string `json:"name"`
	// Publishable says that the key is for web pages.
	Publishable bool   `json:"publishable,omitempty"`
	Key         string `json:"key"`
	// Brought says that the key is from a Secret of the owner's, and goes when the reference to that does.
	Brought bool `json:"brought,omitempty"`
}

type devToken struct {
	Name  string     `json:"name"`
	Scope auth.Scope `json:"scope"`
	Token string     `json:"token"`
	// Brought says that the token is from a Secret of the owner's, as with keys.
	Brought bool `json:"brought,omitempty"`
}

// renewed returns the keys and tokens of properties served at host: those that the owner brings, those that
// there were before, and new ones for the rest.
func (c devCredentials) renewed(properties []*loadedProperty, host string) devCredentials {
	var all devCredentials
	for _, p := range properties {
		before := c.property(p.id())
		now := devProperty{Namespace: p.Namespace, ID: p.Name, CollectURL: host, BaseURL: host + "/api/v1"}
		for _, key := range p.Spec.APIKeys {
			brought := p.apiKeys[key.Name]
			publishable := key.Type == v1alpha1.APIKeyPublishable
			secret := cmp.Or(brought, before.key(key.Name, publishable))
			switch {
			case secret != "":
			case publishable:
				secret = auth.NewPublishableKey()
			default:
				secret = auth.NewAPIKey()
			}
			now.APIKeys = append(now.APIKeys, devKey{Name: key.Name, Publishable: publishable, Key: secret, Brought: brought != ""})
		}
		for _, token := range p.Spec.AccessTokens {
			brought := p.accessTokens[token.Name]
			secret := cmp.Or(brought, before.token(token.Name))
			if secret == "" {
				secret = auth.NewAccessToken()
			}
			now.AccessTokens = append(now.AccessTokens, devToken{Name: token.Name, Scope: auth.Scope(token.GrantedScope()), Token: secret, Brought: brought != ""})
		}
		all.Properties = append(all.Properties, now)
	}
	for _, p := range slices.Concat(c.Properties, c.Kept) {
		if !slices.ContainsFunc(all.Properties, func(served devProperty) bool { return served.name() == p.name() }) {
			all.Kept = append(all.Kept, p)
		}
	}
	return all
}

// property returns the credentials of one property.
func (c devCredentials) property(name objectName) devProperty {
	for _, p := range slices.Concat(c.Properties, c.Kept) {
		if p.name() == name {
			return p
		}
	}
	return devProperty{Namespace: name.namespace, ID: name.name}
}

func (p devProperty) name() objectName { return objectName{p.Namespace, p.ID} }

// key returns the named key that was made here, or "". One whose type has changed is another.
func (p devProperty) key(name string, publishable bool) string {
	for _, k := range p.APIKeys {
		if k.Name == name && k.Publishable == publishable && !k.Brought {
			return k.Key
		}
	}
	return ""
}

// token returns the named token that was made here, or "".
func (p devProperty) token(name string) string {
	for _, t := range p.AccessTokens {
		if t.Name == name && !t.Brought {
			return t.Token
		}
	}
	return ""
}

// page is where a browser shows the property's numbers.
func (p devProperty) page() string {
	return strings.TrimSuffix(p.BaseURL, "/api/v1") + "/properties/" + p.ID + "/"
}

// curlLines introduces requests to paste: send a purchase, list it, read the numbers; and what goes into a page. It leaves out what the roles
// do not serve, or what the property has no key or token for.
func (p devProperty) curlLines(roles []role.Name) string {
	var b strings.Builder
	if i := slices.IndexFunc(p.APIKeys, func(k devKey) bool { return !k.Publishable }); i >= 0 && slices.Contains(roles, role.Collect) {
		fmt.Fprintf(&b, "curl -sS -w '\\n' %s/collect/%s -H 'Content-Type: application/json' -d '%s'\n", p.CollectURL, p.APIKeys[i].Key,
			`{"event":"purchase","client_id":"1234.5678","user":{"email":"jane@example.com","phone":"+14155550123","first_name":"Jane"},`+
				`"data":{"value":49.90,"currency":"EUR","order_id":"'"$(date +%s)"'"}}`)
		fmt.Fprintf(&b, "# clients of Segment and RudderStack: host %s, write key %s\n", p.CollectURL, p.APIKeys[i].Key)
	}
	if i := slices.IndexFunc(p.APIKeys, func(k devKey) bool { return k.Publishable }); i >= 0 && slices.Contains(roles, role.Collect) {
		fmt.Fprintf(&b, "# pages: %s\n#        <script async src=\"%s/collect/%s/weir.js\"></script>\n", snippet.Stub, p.CollectURL, p.APIKeys[i].Key)
	}
	if slices.Contains(roles, role.Query) && len(p.AccessTokens) > 0 {
		for _, path := range []string{"events", "analytics/summary"} {
			fmt.Fprintf(&b, "curl -sS -w '\\n' -H 'Authorization: Bearer %s' %s/properties/%s/%s\n", p.AccessTokens[0].Token, p.BaseURL, p.ID, path)
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return " Try:\n\n" + b.String()
}

// local is what whoever sits at the machine is shown.
func (c devCredentials) local() *query.Local {
	local := &query.Local{APIKeys: map[string]map[string]string{}}
	for _, p := range c.Properties {
		local.APIKeys[p.name().String()] = p.rendered().APIKeys
	}
	return local
}

// pageLines tells where a browser shows the numbers: the page of each property.
func (c devCredentials) pageLines(roles []role.Name) string {
	if !slices.Contains(roles, role.Query) {
		return ""
	}
	var b strings.Builder
	b.WriteString("The numbers, in a browser on this machine:\n\n")
	for _, p := range c.Properties {
		fmt.Fprintf(&b, "  %s\n", p.page())
	}
	return b.String()
}

// rendered returns the credentials as the rendering takes them.
func (p devProperty) rendered() resources.Credentials {
	c := resources.Credentials{APIKeys: map[string]string{}, AccessTokens: map[string]string{}}
	for _, k := range p.APIKeys {
		c.APIKeys[k.Name] = k.Key
	}
	for _, t := range p.AccessTokens {
		c.AccessTokens[t.Name] = t.Token
	}
	return c
}
