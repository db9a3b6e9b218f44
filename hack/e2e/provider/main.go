// Command provider is the OpenID provider of end-to-end tests: that of github.com/zitadel/oidc, which is certified, with its form for a
// name and a password, two people, and their groups as a claim.
//
// It listens on port 8443, with the certificate of /etc/provider/tls.crt and tls.key. The environment's ISSUER is its address,
// CLIENT_SECRET what the client "weir" shows, and REDIRECT_URI where that is sent back to.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// groupsScope is both the scope by which groups are asked for and the claim that has them.
const groupsScope = "groups"

// groups are people's, by the ids that are their names, too. Everybody's password is "password of" and the name.
var groups = map[string][]string{"alice": {"analysts", "everybody"}, "bob": {"everybody"}}

type people struct{}

func (people) GetUserByID(id string) *storage.User {
	if groups[id] == nil {
		return nil
	}
	return &storage.User{ID: id, Username: id, Password: "password of " + id, FirstName: id, Email: id + "@example.com", EmailVerified: true}
}

func (p people) GetUserByUsername(name string) *storage.User { return p.GetUserByID(name) }

func (people) ExampleClientID() string { return storage.ServiceUserID }

// provider adds groups to what the library's storage says of somebody.
type provider struct{ *storage.Storage }

// SetUserinfoFromRequest is called for ID tokens.
func (p provider) SetUserinfoFromRequest(ctx context.Context, info *oidc.UserInfo, request op.IDTokenRequest, scopes []string) error {
	if err := p.Storage.SetUserinfoFromRequest(ctx, info, request, scopes); err != nil {
		return err
	}
	if slices.Contains(scopes, groupsScope) {
		info.AppendClaims(groupsScope, groups[request.GetSubject()])
	}
	return nil
}

func (p provider) GetClientByClientID(ctx context.Context, id string) (op.Client, error) {
	found, err := p.Storage.GetClientByClientID(ctx, id)
	if err != nil {
		return nil, err
	}
	return client{found}, nil
}

// client may ask for groups, and has all that it asks for in the ID token.
type client struct{ op.Client }

func (client) IsScopeAllowed(scope string) bool { return scope == groupsScope }

func (client) IDTokenUserinfoClaimsAssertion() bool { return true }

func (client) DevMode() bool { return false }

func main() {
	storage.RegisterClients(storage.WebClient("weir", os.Getenv("CLIENT_SECRET"), os.Getenv("REDIRECT_URI")))
	router := exampleop.SetupServer(os.Getenv("ISSUER"), provider{storage.NewStorage(people{})}, slog.New(slog.NewTextHandler(os.Stderr, nil)), false)
	server := &http.Server{Addr: ":8443", Handler: router, ReadHeaderTimeout: 5 * time.Second}
	if err := server.ListenAndServeTLS("/etc/provider/tls.crt", "/etc/provider/tls.key"); err != nil {
		fmt.Fprintln(os.Stderr, "provider:", err)
		os.Exit(1)
	}
}
