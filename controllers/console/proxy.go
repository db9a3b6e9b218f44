package console

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/weir-dev/weir/collector/server"
)

// call is one of the read API's that are handed on. Nothing else is: a new one is added here.
type call struct {
	method, pattern string
	// parameter is the one that stands in the pattern, "" for none.
	parameter string
}

// calls are what can be asked of a Property, as collector/query has them.
var calls = []call{
	{http.MethodGet, "/events", ""},
	{http.MethodGet, "/events/stats", ""},
	{http.MethodGet, "/events/{event}", "event"},
	{http.MethodGet, "/deliveries", ""},
	{http.MethodGet, "/rejections", ""},
	{http.MethodGet, "/quality", ""},
	{http.MethodGet, "/settings", ""},
	{http.MethodGet, "/analytics/summary", ""},
	{http.MethodGet, "/analytics/daily", ""},
	{http.MethodGet, "/analytics/series", ""},
	{http.MethodGet, "/analytics/breakdown", ""},
	{http.MethodGet, "/analytics/realtime", ""},
	{http.MethodGet, "/analytics/funnel", ""},
	{http.MethodGet, "/analytics/attribution", ""},
	{http.MethodGet, "/platforms", ""},
	{http.MethodGet, "/platforms/{platform}/shadow", "platform"},
	{http.MethodGet, "/erasures/{erasure}", "erasure"},
	{http.MethodPost, "/platforms/{platform}/test", "platform"},
	{http.MethodPost, "/deliveries/replay", ""},
	{http.MethodPost, "/erasures", ""},
}

// maxForwardedBytes bounds a body that is handed on; the pods have bounds of their own.
const maxForwardedBytes = 1 << 20

// handedOn are the headers of requests that pods are told; handedBack those of answers that are told as they are, where they are as
// the read API writes them.
var (
	handedOn   = []string{"Accept", "If-None-Match"}
	handedBack = map[string]*regexp.Regexp{
		"Content-Encoding":    regexp.MustCompile(`^gzip$`),
		"Content-Disposition": regexp.MustCompile(`^attachment; filename="?[A-Za-z0-9_-][A-Za-z0-9._-]{0,100}\.(csv|ndjson|json)"?$`),
		"Etag":                regexp.MustCompile(`^(W/)?"[A-Za-z0-9_+/=.-]{0,128}"$`),
		"Retry-After":         regexp.MustCompile(`^[0-9]{1,6}$`),
		"Vary":                regexp.MustCompile(`^[A-Za-z, -]{1,100}$`),
		"Weir-As-Of":          regexp.MustCompile(`^[0-9TZ:.+-]{1,40}$`),
		"Weir-Complete-From":  regexp.MustCompile(`^[0-9TZ:.+-]{1,40}$`),
	}
)

// answerTypes are the media types that answers may have: nothing that a browser would run, or show as a page of the console's.
var answerTypes = []string{jsonType, "application/x-ndjson", "text/csv"}

// proxied hands a call on to the Property's query pods, in the user's name and with the user's scope.
func (c *Console) proxied(to call) func(http.ResponseWriter, *http.Request, *visit) {
	return func(w http.ResponseWriter, r *http.Request, v *visit) {
		if v.scope == "" {
			server.Message(w, http.StatusForbidden, "You may not read this Property's events: RBAC's verb get on properties/events is missing.")
			return
		}
		path := to.pattern
		if to.parameter != "" {
			value, ok := segment(server.PathParameter(r, to.parameter))
			if !ok {
				server.NotFound(w, r)
				return
			}
			path = strings.Replace(path, "{"+to.parameter+"}", value, 1)
		}
		var body []byte
		if to.method == http.MethodPost {
			var ok bool
			if body, ok = readJSON(w, r, maxForwardedBytes); !ok {
				return
			}
		}
		c.forward(w, r, v, path, body)
	}
}

// readJSON reads a body that says it is JSON, which no form of another site's can. Where it is false the request has been answered.
func readJSON(w http.ResponseWriter, r *http.Request, most int64) ([]byte, bool) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != jsonType {
		server.Message(w, http.StatusUnsupportedMediaType, "The body must be JSON, and Content-Type say so: application/json.")
		return nil, false
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		server.Message(w, http.StatusRequestEntityTooLarge, "The body is too long.")
		return nil, false
	}
	if err != nil {
		server.Message(w, http.StatusBadRequest, "The body cannot be read.")
		return nil, false
	}
	return body, true
}

// forward asks the pods and streams what they answer.
func (c *Console) forward(w http.ResponseWriter, r *http.Request, v *visit, path string, body []byte) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	request, err := c.pods.request(ctx, r.Method, v.property, path, r.URL.RawQuery, body, v.user, v.scope)
	if err != nil {
		if !errors.Is(err, errNoKeys) {
			c.logger.ErrorContext(ctx, "a request to query pods cannot be made", "error", err)
		}
		server.Unavailable(w, "The console cannot show the Property's query pods who asks yet.", unavailableAfter)
		return
	}
	for _, name := range handedOn {
		if values := r.Header.Values(name); len(values) > 0 {
			request.Header[name] = values
		}
	}
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		request.Header.Set("Accept-Encoding", "gzip")
	}
	answer, err := c.pods.transport.RoundTrip(request) // which follows no redirect and keeps no cookie
	if err != nil {
		server.Unavailable(w, "The Property's query pods do not answer.", unavailableAfter)
		return
	}
	defer answer.Body.Close()
	kind, problem := judge(answer)
	switch {
	case answer.StatusCode == http.StatusUnauthorized: // the user is signed in: it is the console that is not known there
		server.Unavailable(w, "The Property's query pods do not take the console's word for who asks yet.", unavailableAfter)
		return
	case problem != "":
		c.logger.WarnContext(ctx, "an answer of query pods is not handed on", "property", v.property.Namespace+"/"+v.property.Name, "error", problem)
		server.Message(w, http.StatusBadGateway, "The Property's query pods answer what is none of the read API's answers.")
		return
	}
	handBack(w.Header(), answer.Header, kind, baseOf(v))
	w.WriteHeader(answer.StatusCode)
	if r.Method != http.MethodHead {
		relay(w, answer.Body, c.pods.stall, cancel, c.holding(ctx, v))
	}
}

// holding returns what says whether somebody who is being answered may have the rest: signed in still, and still with a right to the
// Property's events. It looks as often as decisions are asked for anew.
func (c *Console) holding(ctx context.Context, v *visit) func() bool {
	looked := c.now()
	return func() bool {
		if c.now().Sub(looked) < decisionAge {
			return true
		}
		looked = c.now()
		if !c.sessions.holds(v.session) {
			return false
		}
		allowed, err := c.authoriser.may(ctx, v.user, mayRead(v.property.Namespace, v.property.Name))
		return allowed && err == nil
	}
}

// baseOf is below which a Property's page asks, without a slash at the end.
func baseOf(v *visit) string {
	return "/namespaces/" + v.property.Namespace + "/properties/" + v.property.Name
}

// judge returns the media type of an answer, "" where it has no body, and what is wrong with an answer that is none of the read API's.
func judge(answer *http.Response) (kind, problem string) {
	switch status := answer.StatusCode; {
	case status == http.StatusNoContent, status == http.StatusNotModified:
		return "", ""
	case status < 200 || status > 599 || status/100 == 3:
		return "", "status"
	}
	kind, _, err := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	if err != nil || len(answer.Header.Values("Content-Type")) != 1 || !slices.Contains(answerTypes, kind) {
		return "", "media type"
	}
	if encodings := answer.Header.Values("Content-Encoding"); len(encodings) > 1 || len(encodings) == 1 && encodings[0] != "gzip" {
		return "", "encoding"
	}
	return kind, ""
}

// nextPage is the header by which a listing names its next page.
var nextPage = regexp.MustCompile(`^</api/v1/properties/([a-z0-9-]+)(/[a-z/]+\?[A-Za-z0-9_.~%&=+*,:;@!$'()/?-]*)>; rel="next"$`)

// handBack writes those headers of an answer that are the read API's.
func handBack(to, from http.Header, kind, base string) {
	for name, pattern := range handedBack {
		if values := from.Values(name); len(values) == 1 && pattern.MatchString(values[0]) {
			to.Set(name, values[0])
		}
	}
	if found := nextPage.FindStringSubmatch(from.Get("Link")); len(found) == 3 && strings.HasSuffix(base, "/"+found[1]) {
		to.Set("Link", "<"+base+"/api"+found[2]+`>; rel="next"`)
	}
	if kind == "" {
		return
	}
	if strings.HasPrefix(kind, "text/") {
		kind += "; charset=utf-8"
	}
	to.Set("Content-Type", kind)
}

// relay copies an answer's body as it comes. It cuts the connection where the body ends too early or does not go on, or where whoever
// asked may not have the rest, so that nobody takes what there is for whole.
func relay(w http.ResponseWriter, body io.Reader, stall time.Duration, cancel context.CancelFunc, holds func() bool) {
	response := http.NewResponseController(w)
	stalled := time.AfterFunc(stall, cancel)
	defer stalled.Stop()
	buffer := make([]byte, 32<<10)
	for {
		n, err := body.Read(buffer)
		stalled.Reset(stall)
		if n > 0 && !holds() {
			panic(http.ErrAbortHandler)
		}
		if n > 0 {
			_ = response.SetWriteDeadline(time.Now().Add(stall)) // tests' writers have none
			if _, failed := w.Write(buffer[:n]); failed != nil {
				return // the caller has gone
			}
			_ = response.Flush()
		}
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			panic(http.ErrAbortHandler)
		}
	}
}
