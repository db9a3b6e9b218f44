// Command peer is what end-to-end tests have inside the cluster: the customer's receiver of webhooks, which keeps
// what it gets, and a client that asks from a pod of its own.
//
//	POST   /hook      a webhook's delivery; it is kept, and answered 204
//	GET    /hook      the deliveries, in order: [{"header", "body"}…]
//	POST   /dial      {"address": "host:port"} is dialled over TCP: {"error"}, "" where it went well
//	POST   /request   {"method", "url", "header", "body"} is requested: {"status", "body", "error"}
//	POST   /load      a load.Plan is begun, in place of one that runs
//	DELETE /load      ends it: its load.Result
//
// It listens on port 8080.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/weir-dev/weir/hack/e2e/load"
)

// Delivery is what a webhook delivered.
type Delivery struct {
	Header http.Header `json:"header"`
	Body   string      `json:"body"`
}

type peer struct {
	client http.Client

	mu         sync.Mutex
	deliveries []Delivery
	sender     *load.Sender
}

func main() {
	it := &peer{client: http.Client{Timeout: 10 * time.Second}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /hook", it.receive)
	mux.HandleFunc("GET /hook", it.list)
	mux.HandleFunc("POST /dial", dial)
	mux.HandleFunc("POST /request", it.request)
	mux.HandleFunc("POST /load", it.startLoad)
	mux.HandleFunc("DELETE /load", it.stopLoad)
	server := &http.Server{Addr: ":8080", Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	if err := server.ListenAndServe(); err != nil {
		fmt.Fprintln(os.Stderr, "peer:", err)
		os.Exit(1)
	}
}

func (p *peer) receive(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil {
		http.Error(w, "the body could not be read", http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deliveries = append(p.deliveries, Delivery{Header: r.Header, Body: string(body)})
	w.WriteHeader(http.StatusNoContent)
}

func (p *peer) list(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	answer(w, p.deliveries)
}

func dial(w http.ResponseWriter, r *http.Request) {
	var asked struct{ Address string }
	if !read(w, r, &asked) {
		return
	}
	connection, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(r.Context(), "tcp", asked.Address)
	if err != nil {
		answer(w, map[string]string{"error": err.Error()})
		return
	}
	connection.Close()
	answer(w, map[string]string{"error": ""})
}

func (p *peer) request(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Method, URL, Body string
		Header            map[string]string
	}
	if !read(w, r, &asked) {
		return
	}
	request, err := http.NewRequestWithContext(r.Context(), asked.Method, asked.URL, strings.NewReader(asked.Body))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	for name, value := range asked.Header {
		request.Header.Set(name, value)
	}
	response, err := p.client.Do(request)
	if err != nil {
		if bare := new(url.Error); errors.As(err, &bare) {
			err = bare.Err // the URL may hold a key
		}
		answer(w, map[string]string{"error": err.Error()})
		return
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		answer(w, map[string]string{"error": err.Error()})
		return
	}
	answer(w, map[string]any{"status": response.StatusCode, "body": string(body)})
}

func (p *peer) startLoad(w http.ResponseWriter, r *http.Request) {
	var plan load.Plan
	if !read(w, r, &plan) {
		return
	}
	if plan.Rate <= 0 {
		http.Error(w, "rate must be above 0", http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sender != nil {
		p.sender.Stop()
	}
	p.sender = load.Start(plan)
	w.WriteHeader(http.StatusNoContent)
}

func (p *peer) stopLoad(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	sender := p.sender
	p.sender = nil
	p.mu.Unlock()
	if sender == nil {
		http.Error(w, "nothing is being sent", http.StatusNotFound)
		return
	}
	answer(w, sender.Stop())
}

// read decodes a request's body, and answers 400 where it cannot.
func read(w http.ResponseWriter, r *http.Request, into any) bool {
	if err := json.NewDecoder(r.Body).Decode(into); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return false
	}
	return true
}

func answer(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(value); err != nil {
		fmt.Fprintln(os.Stderr, "peer: answer:", err)
	}
}
