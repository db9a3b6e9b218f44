// Package fakes has a server in place of each platform's own, for trying Weir out and for tests. They check what
// they get as the real ones do, refuse what those refuse and word success, partial failure and refusal as those
// word them; what the real ones do only now and then can be asked of them ([Server.Fail]). Beyond the real ones,
// they complain of anything of a person that is not hashed.
package fakes

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/weir-dev/weir/collector/platforms"
)

// Account is a platform of a Property, as its provider knows it: who may send to which id.
type Account struct {
	Platform    platforms.Platform
	Credentials map[string]string
}

// Event is one event that a platform was sent.
type Event struct {
	// Name is the platform's, ID what the platform tells a repeat by.
	Name, ID string
	// Value and Currency are "" where there was none.
	Value, Currency string
	// Hashes are the person's, by the platform's names for them.
	Hashes map[string][]string
	// Limited is the milder form in which the event came, in the platform's words; "" where it came in none.
	Limited string
	// Refusal says why the platform does not take the event; "" where it does.
	Refusal string
	// Repeat says that the platform has taken it before.
	Repeat bool
}

// Erasure is whom a platform was asked to erase, in one request.
type Erasure struct {
	// ID is what the platform tells a repeat by; "" where it needs nothing of the kind.
	ID string
	// Persons are the persons' ids and hashes, by the platform's names for them, sorted.
	Persons map[string][]string
}

// Receipt is what became of a request.
type Receipt struct {
	// Platform is the account's name for the platform, "" where the request was not allowed in.
	Platform string
	Status   int
	// Complaint says what is wrong with the request as a whole, "" where nothing is. It repeats nothing of a person.
	Complaint string
	// Test says that it came in the platform's test mode: none of its events is among those that were taken.
	Test   bool
	Events []Event
	// Erasure is what was asked for and taken; nil for any other request.
	Erasure *Erasure
}

// Failure is what a fake does to a request in place of judging it. The zero Error does nothing.
type Failure struct {
	// Status is answered, with the body that the platform has for it.
	Status int
	// RetryAfter is told in the header, in whole seconds; 0 for none.
	RetryAfter time.Duration
	// Page answers with a web page in place of the platform's own body.
	Page bool
	// Location is where a redirect leads to.
	Location string
	// Body replaces the platform's own one, where it is not "".
	Body string
	// Silent never answers; Reset breaks the connection off.
	Silent, Reset bool
	// After judges the request first and takes its events, so that the sender does not learn of it.
	After bool
}

// Server is a platform's server. It is an [http.Handler].
type Server struct {
	kind     kind
	accounts []Account
	report   func(Receipt)
	now      func() time.Time

	mu        sync.Mutex
	failures  []Failure
	grants    []Failure
	lasting   *Failure
	refused   map[string]bool
	forbidden map[string]bool
	taken     map[string]int
	receipts  []Receipt
	objects   bucket
	closed    chan struct{}
	google    *googleMemory
}

// kind is what the table knows of a platform type.
type kind struct {
	// judge checks a request and answers it.
	judge func(q *request) answer
	// failure words an HTTP status, which is an error's, the way the platform does.
	failure func(status int) answer
}

// kinds has a row for every platform type that is spoken to by HTTP.
var kinds = map[platforms.Type]kind{
	platforms.TypeMeta:      {judgeMeta, failMeta},
	platforms.TypeGA4:       {judgeGA4, failGA4},
	platforms.TypeTikTok:    {judgeTikTok, failTikTok},
	platforms.TypePinterest: {judgePinterest, failPinterest},
	platforms.TypeMixpanel:  {judgeMixpanel, failMixpanel},
	platforms.TypeWebhook:   {judgeWebhook, failWebhook},
	platforms.TypeSnapchat:  {judgeSnapchat, failSnapchat},
	platforms.TypeReddit:    {judgeReddit, failReddit},
	platforms.TypeMicrosoft: {judgeMicrosoft, failMicrosoft},
	platforms.TypeLinkedIn:  {judgeLinkedIn, failLinkedIn},
	platforms.TypeKlaviyo:   {judgeKlaviyo, failKlaviyo},
	platforms.TypeAmplitude: {judgeAmplitude, failAmplitude},
	platforms.TypePostHog:   {judgePostHog, failPostHog},
	platforms.TypeSegment:   {judgeSegment, failSegment},
	platforms.TypeOpenAI:    {judgeOpenAI, failOpenAI},
	platforms.TypeGoogle:    {judgeGoogle, failGoogle},
	platforms.TypeS3:        {judgeS3, failS3},
}

// Has says whether there is a fake for the type. There is none for Log, which is spoken to by no protocol.
func Has(platform platforms.Type) bool {
	_, ok := kinds[platform]
	return ok
}

// New makes a platform's server for these accounts. report is told of every request that was judged, and may be
// nil. It fails for a type that there is no fake for.
func New(platform platforms.Type, accounts []Account, report func(Receipt), now func() time.Time) (*Server, error) {
	row, ok := kinds[platform]
	if !ok {
		return nil, fmt.Errorf("there is no fake %s", platform)
	}
	if report == nil {
		report = func(Receipt) {}
	}
	return &Server{
		kind: row, accounts: accounts, report: report, now: now,
		refused: map[string]bool{}, forbidden: map[string]bool{}, taken: map[string]int{}, closed: make(chan struct{}),
		google: newGoogleMemory(), objects: bucket{objects: map[string]object{}},
	}, nil
}

// Fail meets each of the next requests with one of the failures, in their order.
func (s *Server) Fail(failures ...Failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures = append(s.failures, failures...)
}

// FailGrants meets each of the next requests for a token with one of the failures, in their order: the others meet none of these.
func (s *Server) FailGrants(failures ...Failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.grants = append(s.grants, failures...)
}

// FailAlways meets every request with the failure, until [Server.Heal].
func (s *Server) FailAlways(failure Failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lasting = &failure
}

// Heal ends all failures.
func (s *Server) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures, s.lasting = nil, nil
}

// Refuse has the events with these ids refused as the platform refuses one that it finds invalid.
func (s *Server) Refuse(ids ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		s.refused[id] = true
	}
}

// Forbid has these hashes refused, wherever they stand: they are of what was not normalised as the platform asks.
func (s *Server) Forbid(hashes ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, hash := range hashes {
		s.forbidden[hash] = true
	}
}

// Close ends the requests that are left without an answer.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.closed:
	default:
		close(s.closed)
	}
}

// Taken returns how often each event was taken, by its id.
func (s *Server) Taken() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.taken)
}

// Receipts returns what became of the requests that were judged.
func (s *Server) Receipts() []Receipt {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.receipts)
}

// maxBody bounds a request's body; each platform's own bound is below it.
const maxBody = 16 << 20

// ServeHTTP takes one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, "the body could not be read", http.StatusRequestEntityTooLarge)
		return
	}
	failure := s.nextFailure(r)
	if failure != nil && !failure.After {
		s.suffer(w, r, *failure)
		return
	}
	given := s.judge(r, body)
	if failure != nil {
		s.suffer(w, r, *failure)
		return
	}
	given.write(w)
}

// judge checks a request, keeps what it brought and reports it.
func (s *Server) judge(r *http.Request, body []byte) answer {
	s.mu.Lock()
	q := &request{
		Request: r, body: body, now: s.now(), accounts: s.accounts,
		refused: maps.Clone(s.refused), forbidden: maps.Clone(s.forbidden), google: s.google, objects: &s.objects,
	}
	s.mu.Unlock()
	given := s.kind.judge(q)
	if where := rawPersonIn(body); where != "" {
		given = s.kind.failure(http.StatusBadRequest)
		given.complaint = "raw personal data in " + where
	}
	receipt := Receipt{
		Platform: q.platform, Status: given.status, Complaint: given.complaint, Test: given.test, Events: given.events, Erasure: given.erasure,
	}
	s.mu.Lock()
	for i := range receipt.Events {
		e := &receipt.Events[i]
		if e.Refusal == "" && !receipt.Test {
			e.Repeat = s.taken[e.ID] > 0
			s.taken[e.ID]++
		}
	}
	s.receipts = append(s.receipts, receipt)
	if excess := len(s.receipts) - keptReceipts; excess > 0 {
		s.receipts = slices.Delete(s.receipts, 0, excess)
	}
	s.mu.Unlock()
	s.report(receipt)
	return given
}

// keptReceipts bounds what a fake remembers of its requests.
const keptReceipts = 1000

// grantPath is where a platform grants tokens that has its own servers for that.
const grantPath = "/token"

func (s *Server) nextFailure(r *http.Request) *Failure {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.URL.Path == grantPath {
		if len(s.grants) == 0 {
			return nil
		}
		failure := s.grants[0]
		s.grants = s.grants[1:]
		return &failure
	}
	if len(s.failures) > 0 {
		failure := s.failures[0]
		s.failures = s.failures[1:]
		return &failure
	}
	return s.lasting
}

// suffer has a request fail.
func (s *Server) suffer(w http.ResponseWriter, r *http.Request, failure Failure) {
	switch {
	case failure.Silent:
		select {
		case <-r.Context().Done():
		case <-s.closed:
		}
		panic(http.ErrAbortHandler)
	case failure.Reset:
		panic(http.ErrAbortHandler) // the server breaks the connection off
	}
	given := s.kind.failure(failure.Status)
	if failure.Page {
		given = answer{status: failure.Status, contentType: "text/html", body: "<!DOCTYPE html><html><body><h1>Bad Gateway</h1></body></html>"}
	}
	if failure.Body != "" {
		given.body = failure.Body
	}
	if failure.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.FormatInt(int64(failure.RetryAfter/time.Second), 10))
	}
	if failure.Location != "" {
		w.Header().Set("Location", failure.Location)
	}
	given.write(w)
}
