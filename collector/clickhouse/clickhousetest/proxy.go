package clickhousetest

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// Fault is what happens to a request on its way. At most one of CutBefore, CutAfter, Nonsense and Code is said.
type Fault struct {
	// Matching says which statements it befalls; nil is all. Of an INSERT it sees the text without the rows.
	Matching func(sql string) bool
	// Times is how often it happens; 0 is always.
	Times int
	// Delay passes before anything else.
	Delay time.Duration
	// CutBefore cuts the connection before the server has the request, CutAfter when it has answered: the answer is lost.
	CutBefore, CutAfter bool
	// Nonsense is answered with status 200 instead of what the server says, and it is not asked.
	Nonsense string
	// Code and Message are an exception that is answered, and the server is not asked: 243 NOT_ENOUGH_SPACE, 252 TOO_MANY_PARTS.
	Code    int
	Message string
}

// Proxy stands before a server.
type Proxy struct {
	server *httptest.Server
	target *url.URL
	// way keeps no connection: the server would end it at the moment at which a request is sent on it, and such a one is lost.
	way *http.Transport

	mu       sync.Mutex
	faults   []*Fault
	requests []string
}

// StartProxy starts a proxy before the server of a URL. It ends with the test, and lets everything through at first.
func StartProxy(t testing.TB, address string) *Proxy {
	t.Helper()
	target, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{target: target, way: &http.Transport{DisableKeepAlives: true}}
	p.server = httptest.NewServer(p)
	t.Cleanup(func() {
		p.server.CloseClientConnections()
		p.server.Close()
	})
	return p
}

// URL is the proxy's address, with user, password and database of the server's.
func (p *Proxy) URL() string {
	through := *p.target
	through.Scheme, through.Host = "http", strings.TrimPrefix(p.server.URL, "http://")
	return through.String()
}

// Add has a fault happen; of several that match a request, the first does.
func (p *Proxy) Add(fault Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, &fault)
}

// Heal takes all faults away.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = nil
}

// Requests are the statements that have come, without the rows of INSERTs.
func (p *Proxy) Requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.requests...)
}

// take returns the fault that befalls a statement; the zero fault is none.
func (p *Proxy) take(sql string) Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = append(p.requests, sql)
	for i, fault := range p.faults {
		if fault.Matching != nil && !fault.Matching(sql) {
			continue
		}
		taken := *fault
		if fault.Times--; fault.Times == 0 {
			p.faults = append(p.faults[:i:i], p.faults[i+1:]...)
		}
		return taken
	}
	return Fault{}
}

// statementOf is the text of a request: a field of its URL or of the form in its body, else the body.
func statementOf(r *http.Request, body []byte) string {
	if sql := r.URL.Query().Get("query"); sql != "" {
		return sql
	}
	_, parameters, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || parameters["boundary"] == "" {
		return string(body)
	}
	form := multipart.NewReader(bytes.NewReader(body), parameters["boundary"])
	for {
		field, err := form.NextRawPart()
		if err != nil {
			return string(body)
		}
		if field.FormName() == "query" {
			sql, _ := io.ReadAll(field) // of a body that is here
			return string(sql)
		}
	}
}

// ServeHTTP passes a request on.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	fault := p.take(statementOf(r, body))
	if fault.Delay > 0 {
		timer := time.NewTimer(fault.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
			return
		}
	}
	switch {
	case fault.CutBefore:
		panic(http.ErrAbortHandler) // cuts the connection
	case fault.Nonsense != "":
		_, _ = io.WriteString(w, fault.Nonsense)
		return
	case fault.Code != 0:
		w.Header().Set("X-ClickHouse-Exception-Code", fmt.Sprint(fault.Code))
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprintf(w, "Code: %d. DB::Exception: %s\n", fault.Code, fault.Message)
		return
	}
	p.pass(w, r, body, fault.CutAfter)
}

func (p *Proxy) pass(w http.ResponseWriter, r *http.Request, body []byte, cut bool) {
	to := *r.URL
	to.Scheme, to.Host = p.target.Scheme, p.target.Host
	request, err := http.NewRequestWithContext(r.Context(), r.Method, to.String(), bytes.NewReader(body))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	request.Header = r.Header.Clone()
	answer, err := p.way.RoundTrip(request)
	if err != nil {
		panic(http.ErrAbortHandler) // as the server does not answer, nor does the proxy
	}
	defer answer.Body.Close()
	if cut {
		_, _ = io.Copy(io.Discard, answer.Body)
		panic(http.ErrAbortHandler)
	}
	maps.Copy(w.Header(), answer.Header)
	w.WriteHeader(answer.StatusCode)
	_, _ = io.Copy(w, answer.Body)
}
