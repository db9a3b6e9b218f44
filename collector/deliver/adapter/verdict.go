package adapter

import (
	"bytes"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Class is what shall happen to an event after an attempt, or instead of one.
type Class uint8

// The classes of a [Verdict].
const (
	// Undecided: the event is to be sent.
	Undecided Class = iota
	// Delivered: the platform has the event.
	Delivered
	// Retry: try again after a backoff that grows with the attempts.
	Retry
	// Throttle: the platform wants a pause. All its events wait, and the attempt does not count.
	Throttle
	// Auth: the credential is refused. All the platform's events wait for another.
	Auth
	// Config: the platform is misconfigured or gone. All its events wait.
	Config
	// Isolate: the platform refused a batch without saying for which event's sake; each is sent alone, once.
	Isolate
	// Split: the request was too large; it is sent again in halves.
	Split
	// Permanent: the platform refuses this event for good.
	Permanent
	// Expired: the platform no longer takes the event because of its age.
	Expired
	// Skipped: the event is none that this platform gets.
	Skipped
	// Queued: the platform has taken the event and has not done with it yet. Ticket is by what it is asked after After.
	Queued
	// Waiting: the event cannot be sent before After has passed. That is no attempt.
	Waiting
)

// Verdict is what an attempt, or the mapping before it, decided for one event.
type Verdict struct {
	Class Class
	// Reason is a short snake_case code, the same as in delivery records; "" for Delivered.
	Reason string
	// After is how long the platform asked to wait; 0 where it did not say. Only for Throttle, Queued and Waiting.
	After time.Duration
	// Ticket is by what the platform is asked what has become of the event; only for Queued. It has no white space.
	Ticket string
}

// Skip is the verdict on an event that the platform does not get.
func Skip(reason string) Verdict { return Verdict{Class: Skipped, Reason: reason} }

// forAll gives n events the same verdict.
func forAll(n int, v Verdict) []Verdict { return slices.Repeat([]Verdict{v}, n) }

// maxRetryAfter caps what a platform may ask for, so that a wrong header cannot stop deliveries for ever.
const maxRetryAfter = time.Hour

// classifyStatus reads an answer by its HTTP status alone, for all n events alike. It is what adapters fall
// back to where the body says nothing more.
func classifyStatus(r Response, n int) Verdict {
	reason := "http_" + strconv.Itoa(r.Status)
	after, asked := retryAfter(r.Header, r.At)
	switch status := r.Status; {
	case status >= 200 && status < 300:
		return Verdict{Class: Delivered}
	case status >= 300 && status < 400:
		return Verdict{Class: Config, Reason: "redirected"}
	case status == http.StatusUnauthorized:
		return Verdict{Class: Auth, Reason: "unauthorized"}
	case status == http.StatusForbidden, status == http.StatusNotFound, status == http.StatusMethodNotAllowed,
		status == http.StatusGone, status == http.StatusUpgradeRequired:
		return Verdict{Class: Config, Reason: reason}
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable && asked:
		return Verdict{Class: Throttle, Reason: "throttled", After: after}
	case status == http.StatusRequestTimeout, status == http.StatusTooEarly, status >= 500, status < 200:
		return Verdict{Class: Retry, Reason: reason}
	case status == http.StatusRequestEntityTooLarge && n > 1:
		return Verdict{Class: Split, Reason: "too_large"}
	case status == http.StatusRequestEntityTooLarge:
		return Verdict{Class: Permanent, Reason: "too_large"}
	default:
		return refused(n, reason)
	}
}

// classifyError is [classifyStatus] for platforms that answer JSON: an error that is a web page is of what stands before the platform.
func classifyError(r Response, n int) Verdict {
	if isHTML(r) && r.Status >= 400 {
		return Verdict{Class: Retry, Reason: "http_" + strconv.Itoa(r.Status)}
	}
	return classifyStatus(r, n)
}

// classifyBare reads an answer of a platform whose successes say nothing but that they are one, which no web page is.
func classifyBare(r Response, n int) []Verdict {
	if isHTML(r) && r.Status >= 200 && r.Status < 300 {
		return forAll(n, Verdict{Class: Retry, Reason: "answer_unreadable"})
	}
	return forAll(n, classifyError(r, n))
}

// refused is the verdict on a request that will never be taken as it is: a single event is to blame itself,
// of several one may be.
func refused(n int, reason string) Verdict {
	if n > 1 {
		return Verdict{Class: Isolate, Reason: reason}
	}
	return Verdict{Class: Permanent, Reason: reason}
}

// retryAfter reads the Retry-After header, which holds seconds or a date, and says whether there was one that
// could be read. It is at least 0 and at most [maxRetryAfter].
func retryAfter(header http.Header, now time.Time) (time.Duration, bool) {
	text := strings.TrimSpace(header.Get("Retry-After"))
	if text == "" {
		return 0, false
	}
	if seconds, err := strconv.ParseUint(text, 10, 32); err == nil {
		return min(time.Duration(seconds)*time.Second, maxRetryAfter), true
	}
	if date, err := http.ParseTime(text); err == nil {
		return min(max(date.Sub(now), 0), maxRetryAfter), true
	}
	return 0, false
}

// Classify says what the answer to a request with n events means for each of them. Where some were taken, none of the verdicts is
// about the batch or the platform: those are never sent again, and each of the others is tried again by itself.
func (p *Platform) Classify(r Response, n int) []Verdict {
	verdicts := p.Adapter.Classify(r, n)
	if !slices.ContainsFunc(verdicts, func(v Verdict) bool { return v.Class == Delivered }) {
		return verdicts
	}
	for i, v := range verdicts {
		switch v.Class {
		case Isolate, Split, Throttle, Auth, Config:
			verdicts[i] = Verdict{Class: Retry, Reason: v.Reason}
		}
	}
	return verdicts
}

// isHTML says whether the body is a web page, which no platform's own servers answer but what stands in front of them does when
// they are out of order. Of a body that begins with a "<" it says so whatever follows: JSON or nothing is what they answer.
func isHTML(r Response) bool {
	kind := strings.ToLower(r.Header.Get("Content-Type"))
	return strings.Contains(kind, "text/html") || strings.Contains(kind, "application/xhtml+xml") ||
		bytes.HasPrefix(bytes.TrimLeft(r.Body, " \t\r\n\v\f\ufeff"), []byte("<"))
}
