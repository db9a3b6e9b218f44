package console

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
	"golang.org/x/sync/singleflight"
)

const (
	// providerTimeout is how long the provider may take for each of its answers, maxProviderBytes how long one may be.
	providerTimeout  = 10 * time.Second
	maxProviderBytes = 1 << 20
	// discoveryAge is for how long the provider's description is taken as it is.
	discoveryAge = 10 * time.Minute
	// clockSkew is by how much the provider's clock may be behind.
	clockSkew = time.Minute
	// maxExchanges is how many sign-ins are taken to the provider at a time: whoever begins many holds so many connections at most.
	maxExchanges = 64
)

// Provider says who signs people in.
type Provider struct {
	// Issuer is the provider's URL, as it stands in its tokens.
	Issuer, ClientID string
	// ClientSecretFile has the client's secret, "" for a public client. It is read for each sign-in.
	ClientSecretFile string
	Scopes           []string
	Claims           Claims
	// Authorities are whom the provider's certificate may come from beside those of the system, in PEM.
	Authorities []byte
}

// provider asks the provider. It is safe for concurrent use.
type provider struct {
	Provider
	redirect string
	client   *http.Client
	now      func() time.Time
	logger   *slog.Logger
	// free has an element for each sign-in that is being taken to the provider.
	free chan struct{}

	asking singleflight.Group
	mu     sync.Mutex
	known  *discovered
	failed bool
}

// discovered is what a provider says of itself.
type discovered struct {
	*oidc.Provider
	at time.Time
	metadata
}

type metadata struct {
	Issuer        string   `json:"issuer"`
	Authorization string   `json:"authorization_endpoint"`
	Token         string   `json:"token_endpoint"`
	Keys          string   `json:"jwks_uri"`
	EndSession    string   `json:"end_session_endpoint"`
	AuthMethods   []string `json:"token_endpoint_auth_methods_supported"`
	// NamesIssuer says that each answer to a browser names its issuer (RFC 9207).
	NamesIssuer bool `json:"authorization_response_iss_parameter_supported"`
}

func newProvider(p Provider, redirect string, now func() time.Time, logger *slog.Logger) (*provider, error) {
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: providerTimeout}).DialContext,
		MaxIdleConnsPerHost: 2, IdleConnTimeout: 30 * time.Second, MaxResponseHeaderBytes: 64 << 10,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
	}
	if len(p.Authorities) > 0 {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM(p.Authorities) {
			return nil, errors.New("no certificate in PEM")
		}
		transport.TLSClientConfig.RootCAs = pool
	}
	return &provider{Provider: p, redirect: redirect, now: now, logger: logger, free: make(chan struct{}, maxExchanges), client: &http.Client{
		Transport: bounded{transport}, Timeout: providerTimeout,
		// The client's secret and what comes back for it are the provider's alone.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// bounded cuts answers that are too long.
type bounded struct{ http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		answer.Body = http.MaxBytesReader(nil, answer.Body, maxProviderBytes)
	}
	return answer, err
}

// IsSecureURL says whether a URL is one by which passwords and sessions may go: https, or http on the machine itself.
func IsSecureURL(text string) bool {
	parsed, err := url.Parse(text)
	return err == nil && parsed.Host != "" && parsed.User == nil && (parsed.Scheme == "https" || parsed.Scheme == "http" && isLoopback(parsed.Hostname()))
}

func isLoopback(host string) bool {
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

// errProvider is that the provider cannot be asked, or answers nonsense.
var errProvider = errors.New("the provider does not answer as it has to")

// discover returns what the provider says of itself, from memory where that is not too old. The error is [errProvider].
func (p *provider) discover(ctx context.Context) (*discovered, error) {
	p.mu.Lock()
	known := p.known
	p.mu.Unlock()
	if known != nil && p.now().Sub(known.at) < discoveryAge {
		return known, nil
	}
	answer := p.asking.DoChan("", func() (any, error) {
		found, err := p.ask(oidc.ClientContext(context.WithoutCancel(ctx), p.client))
		p.note(err)
		p.mu.Lock()
		defer p.mu.Unlock()
		if err == nil {
			p.known = found
		}
		return found, err
	})
	select {
	case <-ctx.Done():
		return nil, errors.Join(errProvider, ctx.Err())
	case result := <-answer:
		if result.Err != nil {
			return nil, errors.Join(errProvider, result.Err)
		}
		found, _ := result.Val.(*discovered)
		return found, nil
	}
}

// note logs when the provider ceases to answer, and when it does again.
func (p *provider) note(err error) {
	p.mu.Lock()
	changed := p.failed != (err != nil) || p.known == nil && err == nil
	p.failed = err != nil
	p.mu.Unlock()
	switch {
	case changed && err != nil:
		p.logger.Warn("the provider cannot be asked; nobody can sign in", "issuer", p.Issuer, "error", outline(err))
	case changed:
		p.logger.Info("the provider answers", "issuer", p.Issuer)
	}
}

func (p *provider) ask(ctx context.Context) (*discovered, error) {
	described, err := oidc.NewProvider(ctx, p.Issuer)
	if err != nil {
		return nil, err
	}
	found := &discovered{Provider: described, at: p.now()}
	if err := described.Claims(&found.metadata); err != nil {
		return nil, err
	}
	for name, address := range map[string]string{"authorization_endpoint": found.Authorization, "token_endpoint": found.Token, "jwks_uri": found.Keys} {
		if !IsSecureURL(address) {
			return nil, malformed("the " + name + " of its description must be an https URL")
		}
	}
	if !IsSecureURL(found.EndSession) {
		found.EndSession = ""
	}
	return found, nil
}

// malformed is something that a provider says, in our words.
type malformed string

func (m malformed) Error() string { return string(m) }

// statusLine begins the library's errors of answers that are none.
func statusLine(text string) string {
	if len(text) >= 4 && strings.Trim(text[:3], "0123456789") == "" && text[3] == ' ' {
		return "status " + text[:3]
	}
	return ""
}

// oauthCodes are the codes of errors at the token endpoint; others are a stranger's text.
var oauthCodes = []string{"invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "unsupported_grant_type", "invalid_scope"}

// outline says what went wrong without what somebody has sent: an answer of the provider's may hold anything, tokens as well.
func outline(err error) string {
	if mismatch, ok := errors.AsType[*oidc.IssuerMismatchError](err); ok {
		return fmt.Sprintf("its description is that of the issuer %.200q", mismatch.Discovered)
	}
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		text := "the token endpoint answers"
		if refused.Response != nil {
			text = fmt.Sprintf("the token endpoint answers %d", refused.Response.StatusCode)
		}
		if slices.Contains(oauthCodes, refused.ErrorCode) {
			text += " " + refused.ErrorCode
		}
		return text
	}
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return failed.Err.Error() // without the URL
	}
	if own, ok := errors.AsType[malformed](err); ok {
		return string(own)
	}
	for line := range strings.Lines(err.Error()) {
		if status := statusLine(line); status != "" {
			return status
		}
	}
	return "its answer is not what it has to be"
}

// config is the client as the provider knows it.
func (p *provider) config(at *discovered) (*oauth2.Config, error) {
	config := &oauth2.Config{ClientID: p.ClientID, Endpoint: at.Endpoint(), RedirectURL: p.redirect, Scopes: p.Scopes}
	config.Endpoint.AuthStyle = oauth2.AuthStyleInHeader // the one that there is where the provider says nothing
	if len(at.AuthMethods) > 0 && !slices.Contains(at.AuthMethods, "client_secret_basic") {
		config.Endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	if p.ClientSecretFile == "" {
		config.Endpoint.AuthStyle = oauth2.AuthStyleInParams
		return config, nil
	}
	secret, err := os.ReadFile(p.ClientSecretFile)
	if err != nil {
		return nil, malformed("the client's secret cannot be read")
	}
	config.ClientSecret = strings.TrimSpace(string(secret))
	return config, nil
}

// redirectURL is where a browser is sent to sign in.
func (p *provider) redirectURL(at *discovered, f *flow) (string, error) {
	config, err := p.config(at)
	if err != nil {
		return "", err
	}
	return config.AuthCodeURL(f.State, oidc.Nonce(f.Nonce), oauth2.S256ChallengeOption(f.Verifier)), nil
}

// endSessionURL is where a browser ends its session at the provider, "" where the provider has no such place or is not known.
func (p *provider) endSessionURL(after string) string {
	p.mu.Lock()
	known := p.known
	p.mu.Unlock()
	if known == nil || known.EndSession == "" {
		return ""
	}
	address, err := url.Parse(known.EndSession)
	if err != nil {
		return ""
	}
	query := address.Query()
	query.Set("client_id", p.ClientID)
	query.Set("post_logout_redirect_uri", after)
	address.RawQuery = query.Encode()
	return address.String()
}

// errToken is that the provider's ID token is not one for this sign-in.
var errToken = errors.New("the provider's ID token is not valid")

// errCode is that the provider does not take the code: it is too old, has been used, or is that of another sign-in.
var errCode = errors.New("the provider does not take the code")

// exchange takes the code of a sign-in to the provider, and returns whom that is for. The provider's keys are asked for each time, so
// that one that it has given up is of no more use. The error is [errProvider], [errCode], [errToken] or one of those
// of [Claims.user].
func (p *provider) exchange(ctx context.Context, at *discovered, f *flow, code string) (*user, error) {
	ctx, cancel := context.WithTimeout(oidc.ClientContext(ctx, p.client), 2*providerTimeout)
	defer cancel()
	select {
	case <-ctx.Done():
		return nil, errors.Join(errProvider, malformed("too many sign-ins are under way"))
	case p.free <- struct{}{}:
		defer func() { <-p.free }()
	}
	config, err := p.config(at)
	if err != nil {
		return nil, errors.Join(errProvider, err)
	}
	answer, err := config.Exchange(ctx, code, oauth2.VerifierOption(f.Verifier))
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok && refused.ErrorCode == "invalid_grant" {
		return nil, errCode
	}
	if err != nil {
		return nil, errors.Join(errProvider, err)
	}
	raw, ok := answer.Extra("id_token").(string)
	if !ok {
		return nil, errors.Join(errToken, malformed("there is no ID token in the answer"))
	}
	verifier := at.VerifierContext(ctx, &oidc.Config{ClientID: p.ClientID, Now: func() time.Time { return p.now().Add(-clockSkew) }})
	token, err := verifier.Verify(ctx, raw)
	if err != nil {
		return nil, errors.Join(errToken, tokenProblem(err))
	}
	var payload map[string]json.RawMessage
	if err := token.Claims(&payload); err != nil {
		return nil, errors.Join(errToken, malformed("its claims cannot be read"))
	}
	if err := p.check(token, payload, f); err != nil {
		return nil, errors.Join(errToken, err)
	}
	return p.Claims.user(payload)
}

// tokenProblem says in our words what the library found; its own may repeat the token's claims.
func tokenProblem(err error) error {
	if _, ok := errors.AsType[*oidc.TokenExpiredError](err); ok {
		return malformed("the ID token has expired; the clocks may differ")
	}
	for _, known := range []string{"fetching keys", "failed to verify", "malformed jwt", "different provider", "audience", "not before", "distributed", "claims"} {
		if strings.Contains(err.Error(), known) {
			return malformed("the ID token cannot be verified: " + known)
		}
	}
	return malformed("the ID token cannot be verified")
}

// check looks at what the library leaves to its callers.
func (p *provider) check(token *oidc.IDToken, payload map[string]json.RawMessage, f *flow) error {
	party := p.ClientID
	if claim, found := payload["azp"]; found && (json.Unmarshal(claim, &party) != nil || party != p.ClientID) {
		return malformed("the ID token is made for another client")
	}
	switch {
	case token.Nonce != f.Nonce:
		return malformed("the ID token is that of another sign-in")
	case token.Subject == "":
		return malformed("the ID token names no subject")
	case token.IssuedAt.After(p.now().Add(10 * time.Minute)):
		return malformed("the ID token is from the future; the clocks differ")
	}
	return nil
}
