// Package load sends events to a collector at a steady rate and remembers what became of every one of them.
package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// maxFailures bounds how many failures a [Result] describes; it counts them all.
const maxFailures = 20

// Plan says what a [Sender] sends.
type Plan struct {
	// URL is where an event is POSTed to: the collector's, with /collect/ and the API key.
	URL string `json:"url"`
	// Host is the name that the request is for, where that is not the URL's.
	Host string `json:"host"`
	// Rate is how many events are sent in a second, whether answers are slow or not.
	Rate int `json:"rate"`
	// Prefix begins every event's id; a number follows.
	Prefix string `json:"prefix"`
	// Event is their name.
	Event string `json:"event"`
}

// Failure is a request that was not answered with 202.
type Failure struct {
	// ID is the event's.
	ID string `json:"id"`
	// At is when the request began.
	At time.Time `json:"at"`
	// Seconds passed until the answer, or until there was none to be had.
	Seconds float64 `json:"seconds"`
	// What is the status with the beginning of the body, or the error.
	What string `json:"what"`
}

// Result is what became of the events.
type Result struct {
	// Sent is how many requests were made. Every one of them has ended.
	Sent int `json:"sent"`
	// Accepted are the ids of the events that were answered 202.
	Accepted []string `json:"accepted"`
	// Answers counts the requests by status, "202" for instance; those without an answer are "no answer".
	Answers map[string]int `json:"answers"`
	// Failures are the first ones that were not accepted.
	Failures []Failure `json:"failures"`
	// Slowest is the longest time, in seconds, that an accepted event took.
	Slowest float64 `json:"slowest"`
}

// Sender sends until it is stopped.
type Sender struct {
	client *http.Client
	stop   context.CancelFunc
	ended  chan struct{}

	mu     sync.Mutex
	plan   Plan
	result Result
}

// Start begins to send.
func Start(plan Plan) *Sender {
	ctx, stop := context.WithCancel(context.Background())
	s := &Sender{
		client: &http.Client{
			Timeout: 15 * time.Second,
			Transport: &http.Transport{
				DialContext:         (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
				MaxIdleConnsPerHost: 64,
			},
		},
		stop:   stop,
		ended:  make(chan struct{}),
		plan:   plan,
		result: Result{Answers: map[string]int{}},
	}
	go s.run(ctx)
	return s
}

// Use has the requests that are begun from now on go to another URL, such as that of another key.
func (s *Sender) Use(collectURL string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plan.URL = collectURL
}

// Accepted is how many events have been answered 202 so far.
func (s *Sender) Accepted() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.result.Accepted)
}

// Stop ends the sending, waits for the answers that are due, and returns what became of all. It may be called again.
func (s *Sender) Stop() Result {
	s.stop()
	<-s.ended
	return s.result
}

func (s *Sender) run(ctx context.Context) {
	var requests sync.WaitGroup
	tick := time.NewTicker(time.Second / time.Duration(s.plan.Rate))
	defer tick.Stop()
	for number := 0; ; number++ {
		select {
		case <-ctx.Done():
			requests.Wait()
			s.client.CloseIdleConnections()
			close(s.ended)
			return
		case <-tick.C:
			requests.Go(func() { s.send(number) })
		}
	}
}

// send sends one event and notes the answer. A request that has begun is seen to its end.
func (s *Sender) send(number int) {
	s.mu.Lock()
	plan := s.plan
	s.result.Sent++
	s.mu.Unlock()
	id := fmt.Sprintf("%s-%d", plan.Prefix, number)
	begin := time.Now()
	answer, failure := s.post(plan, id)
	seconds := time.Since(begin).Seconds()

	s.mu.Lock()
	defer s.mu.Unlock()
	s.result.Answers[answer]++
	if failure == "" {
		s.result.Accepted = append(s.result.Accepted, id)
		s.result.Slowest = max(s.result.Slowest, seconds)
	} else if len(s.result.Failures) < maxFailures {
		s.result.Failures = append(s.result.Failures, Failure{ID: id, At: begin, Seconds: seconds, What: failure})
	}
}

// post returns the status, and where that is not 202 what there is to say about it: never the URL, which holds the key.
func (s *Sender) post(plan Plan, id string) (answer, failure string) {
	body := fmt.Sprintf(`{"event": %q, "event_id": %q, "client_id": %q}`, plan.Event, id, id)
	request, err := http.NewRequestWithContext(context.Background(), http.MethodPost, plan.URL, bytes.NewReader([]byte(body)))
	if err != nil {
		return "no answer", "the URL cannot be used"
	}
	request.Host = plan.Host
	request.Header.Set("Content-Type", "application/json")
	response, err := s.client.Do(request)
	if err != nil {
		if bare := new(url.Error); errors.As(err, &bare) {
			err = bare.Err
		}
		return "no answer", err.Error()
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 4096))
	answer = fmt.Sprint(response.StatusCode)
	switch {
	case response.StatusCode != http.StatusAccepted:
		return answer, fmt.Sprintf("%s %.200s", answer, text)
	case err != nil:
		return "no answer", err.Error()
	}
	return answer, ""
}
