package deliver

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"golang.org/x/oauth2"

	"github.com/weir-dev/weir/collector/deliver/adapter"
)

// tokens has the token that a platform's requests carry, where its adapter is an [adapter.Authorizer]: fetched by the guarded client
// when it is first needed, kept until shortly before its end, and thrown away when the platform refuses it.
type tokens struct {
	grant  adapter.Grant
	client *http.Client

	mu     sync.Mutex
	source oauth2.TokenSource
	// current is the token that was handed out last.
	current string
	// fetching has what the last fetch failed by, which the library only words.
	fetching *fetching
}

// newTokens returns nil for an adapter whose requests need none.
func newTokens(platform adapter.Adapter, client *http.Client) *tokens {
	authorizer, ok := platform.(adapter.Authorizer)
	if !ok {
		return nil
	}
	return &tokens{grant: authorizer.Grant(), client: client}
}

// fetching makes the requests of a token source, for as long as the request that waits for it may.
type fetching struct {
	next http.RoundTripper
	// bound gives a request the context of what waits for it.
	bound func(*http.Request) *http.Request
	err   error
}

// RoundTrip makes one request.
func (f *fetching) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := f.next.RoundTrip(f.bound(r))
	f.err = err
	return response, err
}

// authorize puts a token into a request. Where there is none it returns the verdict on its events.
func (t *tokens) authorize(ctx context.Context, request *adapter.Request) (token string, failure *adapter.Verdict) {
	if t == nil {
		return "", nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.source == nil {
		client := *t.client
		t.fetching = &fetching{next: client.Transport}
		client.Transport = t.fetching
		t.source = t.grant.TokenSource(context.WithValue(context.WithoutCancel(ctx), oauth2.HTTPClient, &client))
	}
	bounded, cancel := context.WithTimeout(ctx, t.client.Timeout)
	defer cancel()
	t.fetching.bound, t.fetching.err = func(r *http.Request) *http.Request { return r.WithContext(bounded) }, nil
	granted, err := t.source.Token()
	if err != nil {
		return "", grantFailure(ctx, err, t.fetching.err)
	}
	if granted.AccessToken == "" {
		return "", &adapter.Verdict{Class: adapter.Retry, Reason: "token_unreadable"}
	}
	t.current = granted.AccessToken
	request.Header.Set("Authorization", "Bearer "+granted.AccessToken)
	return granted.AccessToken, nil
}

// discard throws a token away that the platform has refused, unless there is a newer one.
func (t *tokens) discard(token string) {
	if t == nil || token == "" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current == token {
		t.source = nil
	}
}

// grantFailure says what it means that there is no token. No error of it is shown: it may repeat what was sent.
func grantFailure(ctx context.Context, err, transport error) *adapter.Verdict {
	var refused *oauth2.RetrieveError
	switch {
	case transport != nil:
		return &adapter.Verdict{Class: adapter.Retry, Reason: failureReason(ctx, transport)}
	case !errors.As(err, &refused) || refused.Response == nil:
		return &adapter.Verdict{Class: adapter.Retry, Reason: "token_unreadable"}
	}
	switch status := refused.Response.StatusCode; {
	case status == http.StatusTooManyRequests || status == http.StatusRequestTimeout || status >= http.StatusInternalServerError:
		return &adapter.Verdict{Class: adapter.Retry, Reason: "token_server_failed"}
	case status >= http.StatusBadRequest:
		return &adapter.Verdict{Class: adapter.Auth, Reason: "grant_refused"}
	default:
		return &adapter.Verdict{Class: adapter.Retry, Reason: "token_unreadable"}
	}
}
