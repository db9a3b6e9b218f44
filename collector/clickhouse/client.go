// Package clickhouse is a client of ClickHouse's HTTP interface: statements with named parameters, answers and blocks of rows
// in the Native format.
package clickhouse

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"time"

	"github.com/weir-dev/weir/collector/connect"
)

const (
	// connectTimeout is how long a connection may take to be made, and TLS as long again.
	connectTimeout = 5 * time.Second
	// mostConnections is how many connections a client has at most. Each is a query that the server works on.
	mostConnections = 32
	// longestError is how many bytes of an error are read.
	longestError = 64 << 10
)

// keepAlive is when the kernel looks whether the other end is still there, also while a long query is silent.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 30 * time.Second, Interval: 5 * time.Second, Count: 3}

// Options say how a client reaches its server. The zero value is for one that whoever runs the process has chosen.
type Options struct {
	// TLS is what the client trusts and shows beside what its URL says.
	TLS connect.TLS
	// Control may refuse an address before it is connected to: it is a [net.Dialer]'s Control. Nil refuses none.
	Control func(network, address string, connection syscall.RawConn) error
	// Settings are ClickHouse's for all statements, such as max_memory_usage.
	Settings Settings
	// LongestAnswer is how many bytes of an answer are read; 0 for all. What is longer is [Nonsense]: it bounds what a server that
	// somebody else has brought takes of memory.
	LongestAnswer int64
}

// Settings are ClickHouse's settings by name. Values are texts, numbers and booleans.
type Settings map[string]any

// Query is a statement and what it is run with.
type Query struct {
	// SQL is the text. Nothing that users have chosen belongs into it: that is what parameters are for.
	SQL string
	// Parameters are the values of {name:Type} in the text: texts, booleans, numbers, UUIDs, times, and slices of these. A nil
	// pointer is NULL. With parameters neither the text nor one of them may have more than 128 KiB as it is sent.
	Parameters map[string]any
	// Settings are for this statement alone, and count before those of [Options].
	Settings Settings
}

// Client speaks to one server, or to whatever stands before several. It is safe for concurrent use. When a password or
// certificate changes, its owner dials another.
type Client struct {
	address  *url.URL // with neither user nor path
	user     string
	password string
	database string
	settings Settings
	longest  int64
	http     *http.Client
}

// Dial prepares a client for a URL, http(s)://USER:PASSWORD@HOST:PORT/DATABASE; it connects at the first statement. Behind
// the question mark of https:// there may be skip_verify=true, and nothing else. The error is [ErrURL], [connect.ErrCA] or
// [connect.ErrClientCertificate], and repeats nothing of what it is about.
func Dial(address string, how Options) (*Client, error) {
	parsed, err := parseURL(address)
	if err != nil {
		return nil, err
	}
	settings, err := tlsFor(parsed, how.TLS)
	if err != nil {
		return nil, err
	}
	client := &Client{
		address:  &url.URL{Scheme: parsed.Scheme, Host: net.JoinHostPort(parsed.Hostname(), port(parsed)), Path: "/"},
		user:     parsed.User.Username(),
		database: database(parsed),
		settings: how.Settings,
		longest:  how.LongestAnswer,
	}
	client.password, _ = parsed.User.Password()
	dialer := &net.Dialer{Timeout: connectTimeout, KeepAliveConfig: keepAlive, Control: control(how.Control)}
	client.http = &http.Client{
		Transport: &http.Transport{
			DialContext:         dialer.DialContext,
			TLSClientConfig:     settings,
			TLSHandshakeTimeout: connectTimeout,
			MaxConnsPerHost:     mostConnections,
			MaxIdleConnsPerHost: mostConnections,
			// Shorter than any server's: ClickHouse ends idle connections after 10 seconds (3 in old versions).
			IdleConnTimeout:    2 * time.Second,
			DisableCompression: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return client, nil
}

// Database is the database that the URL names.
func (c *Client) Database() string { return c.database }

// Close ends the idle connections; running statements go on.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Ping says whether the server answers, takes user and password, and is new enough.
func (c *Client) Ping(ctx context.Context) error {
	_, err := c.Version(ctx)
	return err
}

// Version is the server's, as in 24.8.14.39. The error of one before [MinimumVersion] is [TooOld].
func (c *Client) Version(ctx context.Context) (string, error) {
	version, err := One[string](ctx, c, Query{SQL: "SELECT version()"})
	if err != nil {
		return "", err
	}
	return version, checkVersion(version)
}

// Exec runs a statement that answers nothing. All errors of it and of the other methods are [Problem], but for those of a
// context that has ended before the statement has.
func (c *Client) Exec(ctx context.Context, query Query) error {
	answer, err := c.run(ctx, query)
	if err != nil {
		return err
	}
	defer answer.Close()
	rest, err := io.ReadAll(io.LimitReader(answer, longestError))
	if err != nil {
		return explain(ctx, err)
	}
	// ON CLUSTER answers a row for each host; an error that comes after the first of the answer stands in it.
	if found := exceptionIn(rest); found != nil {
		return found
	}
	return nil
}

// run runs a statement that inserts no rows of ours.
func (c *Client) run(ctx context.Context, query Query) (io.ReadCloser, error) {
	request, err := c.statement(ctx, query)
	if err != nil {
		return nil, err
	}
	return c.send(ctx, request)
}

// ask runs a statement that only reads, which may be run twice. A server may end a connection that it kept at the moment at which a
// statement is sent on it, and then nobody knows whether it has it: so net/http sends it again on another, which it does where there is
// such a key. One without a value is not sent along.
func (c *Client) ask(ctx context.Context, query Query) (io.ReadCloser, error) {
	request, err := c.statement(ctx, query)
	if err != nil {
		return nil, err
	}
	request.Header["Idempotency-Key"] = nil
	return c.send(ctx, request)
}

// insert runs an INSERT of rows, in the format that its text ends with.
func (c *Client) insert(ctx context.Context, query Query, rows io.Reader) (io.ReadCloser, error) {
	values, err := c.values(query)
	if err != nil {
		return nil, err
	}
	values.Set("query", query.SQL)
	request, err := c.request(ctx, values, rows)
	if err != nil {
		return nil, err
	}
	return c.send(ctx, request)
}

// send sends a request and returns an answer that is good at its beginning.
func (c *Client) send(ctx context.Context, request *http.Request) (io.ReadCloser, error) {
	answer, err := c.http.Do(request)
	if err != nil {
		return nil, explain(ctx, err)
	}
	if answer.StatusCode == http.StatusOK && answer.Header.Get("X-ClickHouse-Query-Id") == "" && answer.Header.Get("X-ClickHouse-Summary") == "" &&
		answer.Header.Get("X-ClickHouse-Format") == "" {
		answer.Body.Close()
		return nil, &Problem{Kind: Nonsense, Message: "what answers is no ClickHouse"}
	}
	if answer.StatusCode != http.StatusOK {
		defer answer.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(answer.Body, longestError))
		return nil, refusal(answer, text)
	}
	if c.longest > 0 {
		return &bounded{answer.Body, c.longest}, nil
	}
	return answer.Body, nil
}

// bounded is an answer of which so much is read at most.
type bounded struct {
	io.ReadCloser
	left int64
}

// Read implements io.Reader.
func (b *bounded) Read(into []byte) (int, error) {
	if b.left <= 0 {
		return 0, &Problem{Kind: Nonsense, Message: "it does not end where an answer would"}
	}
	n, err := b.ReadCloser.Read(into[:min(int64(len(into)), b.left)])
	b.left -= int64(n)
	return n, err
}

// control asks what was given whether an address may be connected to, and tells a refusal from all that may happen there.
func control(given func(network, address string, connection syscall.RawConn) error) func(string, string, syscall.RawConn) error {
	if given == nil {
		return nil
	}
	return func(network, address string, connection syscall.RawConn) error {
		if given(network, address, connection) != nil {
			return errAddress
		}
		return nil
	}
}
