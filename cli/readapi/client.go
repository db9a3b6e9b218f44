package readapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/weir-dev/weir/cli/cluster"
	"github.com/weir-dev/weir/cli/terminal"
	"github.com/weir-dev/weir/collector/auth"
)

const (
	// answerWithin bounds an answer that is no stream.
	answerWithin = time.Minute
	// knownWithin is how long pods may take until they know a token that was just made, lookAgain how often they are asked.
	knownWithin = time.Minute
	lookAgain   = time.Second
	// maxAnswerBytes bounds what is read of an answer that is no stream.
	maxAnswerBytes = 64 << 20
)

// Client asks one Property's read API.
type Client struct {
	// Property is the Property's name.
	Property string
	base     string
	token    held
	renew    func(context.Context) (held, error)
	stop     func()
	http     *http.Client
}

// Wish is what a command needs of the read API.
type Wish struct {
	Property string
	Scope    auth.Scope
	// Lasts is how long the command may take: so long does a token live that is made for it.
	Lasts time.Duration
}

// Open finds the way to a Property's read API and a token for it. connect is asked for the cluster where it takes one. The caller closes
// the client.
func Open(ctx context.Context, f Flags, around Surroundings, connect func() (*cluster.Cluster, error), wish Wish) (*Client, error) {
	var reached *cluster.Cluster
	if f.needsCluster(around.Getenv) {
		var err error
		if reached, err = connect(); err != nil {
			return nil, err
		}
	}
	base, stop, err := f.base(ctx, reached, wish.Property, around.Forward)
	if err != nil {
		return nil, err
	}
	renew := func(ctx context.Context) (held, error) {
		return f.obtain(ctx, around.Getenv, reached, wish.Property, wish.Scope, wish.Lasts)
	}
	token, err := renew(ctx)
	if err != nil {
		stop()
		return nil, err
	}
	return &Client{Property: wish.Property, base: base, token: token, renew: renew, stop: stop, http: &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // a token goes nowhere else
	}}, nil
}

// Close gives back the way and a token that was made.
func (c *Client) Close() error {
	err := c.token.release()
	c.stop()
	return err
}

// Problem is an answer that is an error.
type Problem struct {
	Status  int
	Message string
	// Errors are what is wrong, by the parameter's name.
	Errors map[string][]string
}

// Error says what is wrong in one line, without anything that could take a terminal over.
func (p *Problem) Error() string {
	var details []string
	for _, messages := range p.Errors {
		details = append(details, messages...)
	}
	slices.Sort(details)
	switch {
	case len(details) > 0:
		return terminal.Clean(strings.Join(details, " "))
	case p.Status == http.StatusUnauthorized:
		return "the read API does not take the token: it is unknown, expired or another Property's"
	case p.Status == http.StatusForbidden:
		return "the token's scope does not allow this: it takes one of scope write to deliver again, admin for what is in Shadow"
	case p.Status == http.StatusNotFound && strings.HasPrefix(p.Message, "Property"):
		return "the read API knows no such Property, or the token is another one's"
	}
	return terminal.Clean(fmt.Sprintf("the read API answers %d: %s", p.Status, p.Message))
}

// Get asks for JSON.
func (c *Client) Get(ctx context.Context, path string, query url.Values, into any) (http.Header, error) {
	return c.exchange(ctx, http.MethodGet, path, query, nil, into)
}

// Post sends JSON.
func (c *Client) Post(ctx context.Context, path string, body, into any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	_, err = c.exchange(ctx, http.MethodPost, path, nil, text, into)
	return err
}

func (c *Client) exchange(ctx context.Context, method, path string, query url.Values, body []byte, into any) (http.Header, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin+knownWithin)
	defer cancel()
	response, err := c.ask(ctx, method, path, query, body, "application/json")
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if err := json.NewDecoder(io.LimitReader(response.Body, maxAnswerBytes)).Decode(into); err != nil {
		return nil, fmt.Errorf("the read API's answer cannot be read: %w", err)
	}
	return response.Header, nil
}

// Stream asks for another type of answer, whose end says that it is whole. The caller closes it.
func (c *Client) Stream(ctx context.Context, path string, query url.Values, accept string) (io.ReadCloser, error) {
	response, err := c.ask(ctx, http.MethodGet, path, query, nil, accept)
	if err != nil {
		return nil, err
	}
	return response.Body, nil
}

// ask sends a request and returns an answer that is no error. A token that pods do not know yet is shown again until they do; one that was
// known and has expired is replaced, once.
func (c *Client) ask(ctx context.Context, method, path string, query url.Values, body []byte, accept string) (*http.Response, error) {
	deadline := time.Now().Add(knownWithin)
	renewed := false
	for {
		response, err := c.send(ctx, method, path, query, body, accept)
		problem := &Problem{}
		switch {
		case err == nil:
			c.token.unknown = false
			return response, nil
		case !errors.As(err, &problem):
			return nil, err
		case c.token.unknown && problem.refusesToken() && time.Now().Before(deadline):
		case problem.Status == http.StatusUnauthorized && !renewed && c.token.made:
			if c.token, err = c.replaced(ctx); err != nil {
				return nil, err
			}
			renewed, deadline = true, time.Now().Add(knownWithin)
			continue
		default:
			return nil, err
		}
		timer := time.NewTimer(lookAgain)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		case <-timer.C:
		}
	}
}

// refusesToken says whether an answer may be one to a token that is not known yet.
func (p *Problem) refusesToken() bool {
	return p.Status == http.StatusUnauthorized || p.Status == http.StatusTooManyRequests
}

// replaced makes another token in the place of one that has ended.
func (c *Client) replaced(ctx context.Context) (held, error) {
	_ = c.token.release() // it has expired, or somebody has deleted it
	c.token.release = kept
	return c.renew(ctx)
}

func (c *Client) send(ctx context.Context, method, path string, query url.Values, body []byte, accept string) (*http.Response, error) {
	address := c.base + "/api/v1/properties/" + url.PathEscape(c.Property) + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+c.token.token)
	request.Header.Set("Accept", accept)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := c.http.Do(request)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err
		}
		return nil, fmt.Errorf("the read API cannot be reached: %w", err)
	}
	if response.StatusCode < http.StatusMultipleChoices {
		return response, nil
	}
	defer response.Body.Close()
	problem := &Problem{Status: response.StatusCode, Message: http.StatusText(response.StatusCode)}
	var told struct {
		Message string
		Errors  map[string][]string
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, 1<<20)).Decode(&told); err == nil && told.Message != "" {
		problem.Message, problem.Errors = told.Message, told.Errors
	}
	return nil, problem
}
