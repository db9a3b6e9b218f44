package snippet_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/ingest"
	"github.com/weir-dev/weir/collector/redisserver"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/collector/server"
	"github.com/weir-dev/weir/collector/snippet"
	"github.com/weir-dev/weir/collector/stream"
	"github.com/weir-dev/weir/hack/browser"
)

// The shop and its collector are hosts of their own, as the visitor's browser sees them; evil.test is somebody else's.
const (
	webKey    = "wp_0123456789ABCDEFGHIJKLMNOPQxxxxxx"
	secretKey = "wk_0123456789ABCDEFGHIJKLMNOPQ2WYluI"
	shopHost  = "https://www.shop.test"
	collector = "https://collect.shop.test"
	foreign   = "https://www.evil.test"
)

// install is what a shop puts into its pages.
const install = snippet.Stub + `
<script async src="` + collector + `/collect/` + webKey + `/weir.js"></script>`

// shop is a shop with a collector in front of a Redis.
type shop struct {
	t     *testing.T
	redis *redisserver.Server
	// events is the shop's stream, opened the same with what is sealed in it.
	events, opened *stream.Stream
	hosts          map[string]string

	// cut lets the network to the collector be down, refuse lets an ingress answer in its place.
	cut, refuse atomic.Bool
	// policy is the Content-Security-Policy of the shop's pages, "" for none.
	policy string
	// onPage is told of each page that is asked for, before it is answered.
	onPage func(address string)

	mu sync.Mutex
	// scripts are the shop's own, by their paths.
	scripts map[string]string
	// pages are the bodies of the shop's pages by their paths.
	pages map[string]string
	// asked counts what came to the collector, by method.
	asked map[string]int
	// bodies are what was posted.
	bodies []string
}

func openShop(t *testing.T) *shop {
	t.Helper()
	s := &shop{t: t, scripts: map[string]string{}, pages: map[string]string{}, asked: map[string]int{}}
	s.redis = redistest.Start(t, redisserver.Options{Persist: true})
	client, err := stream.Dial(s.redis.URL(), stream.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	if err := client.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.events = client.Stream("default", "shop")
	s.opened = s.events.Opening(wire.Device, wire.Identity)
	appender := stream.NewAppender(s.events, stream.AppenderOptions{Window: 168 * time.Hour})
	t.Cleanup(func() { _ = appender.Close(context.Background()) })

	registry := prometheus.NewRegistry()
	handler := ingest.New(ingest.Options{Now: time.Now, Registerer: registry})
	handler.Serve([]ingest.Tenant{{
		Property: config.Property{
			Namespace: "default", Name: "shop", Currency: "EUR", TimeZone: "UTC", DeduplicationWindowHours: 168,
			Limits:  config.Limits{MaxBodyBytes: 64 << 10},
			Proxies: config.Proxies{TrustedCIDRs: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
		},
		Keys: []auth.Credential{
			{Name: "server", Hash: auth.HashOf(secretKey)},
			{Name: "web", Hash: auth.HashOf(webKey), Publishable: &auth.Publishable{
				AllowedOrigins: []string{shopHost, "https://*.shop.test"}, EventsPerSecond: 10_000, EventsPerSecondPerAddress: 1000,
			}},
		},
		Appender: appender, Limiter: s.events,
	}})
	router := server.NewRouter(server.NewObserver(slog.New(slog.DiscardHandler), registry))
	handler.Routes(router)
	inside := httptest.NewServer(router)
	t.Cleanup(inside.Close)

	front := httptest.NewUnstartedServer(s.front(inside.URL))
	front.EnableHTTP2 = true
	front.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo) // connections that a browser gives up
	front.StartTLS()
	t.Cleanup(front.Close)
	s.hosts = map[string]string{}
	for _, host := range []string{"www.shop.test", "de.shop.test", "shop.test", "collect.shop.test", "www.evil.test"} {
		s.hosts[host+":443"] = strings.TrimPrefix(front.URL, "https://")
	}
	return s
}

// front is the ingress: it has the certificates, and leads to the shop's pages or to the collector.
func (s *shop) front(inside string) http.Handler {
	target, err := url.Parse(inside)
	if err != nil {
		s.t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host
			r.Out.Header.Set("X-Forwarded-For", "8.8.4.4")
		},
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo), // visitors who have gone
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host != "collect.shop.test" {
			s.page(w, r)
			return
		}
		if s.cut.Load() {
			panic(http.ErrAbortHandler)
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the visitor has gone
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		s.mu.Lock()
		s.asked[r.Method]++
		if r.Method == http.MethodPost {
			s.bodies = append(s.bodies, string(body))
		}
		s.mu.Unlock()
		if s.refuse.Load() && r.Method != http.MethodGet {
			http.Error(w, "no backend", http.StatusServiceUnavailable)
			return
		}
		proxy.ServeHTTP(w, r)
	})
}

// page answers with a page of the shop's: one of its own, or the one for all other paths.
func (s *shop) page(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/favicon.ico" {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if s.onPage != nil {
		s.onPage(r.URL.String())
	}
	s.mu.Lock()
	body, own := s.pages[r.URL.Path]
	script, isScript := s.scripts[r.URL.Path]
	s.mu.Unlock()
	if isScript {
		w.Header().Set("Content-Type", "text/javascript")
		w.Header().Set("Cache-Control", "max-age=3600")
		_, _ = io.WriteString(w, script) // the visitor has gone: there is nobody left to tell
		return
	}
	if !own {
		body = install
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if s.policy != "" {
		w.Header().Set("Content-Security-Policy", s.policy)
	}
	fmt.Fprintf(w, `<!doctype html><html lang="de"><title>Shop %s</title>%s`, r.URL.Path, body)
}

// has gives the shop a page.
func (s *shop) has(path, body string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pages[path] = body
}

// posts is how often something was posted to the collector.
func (s *shop) posts() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[http.MethodPost]
}

// stored are the events that have been stored, in order.
func (s *shop) stored() []event.Event {
	s.t.Helper()
	events, err := s.read()
	if err != nil {
		s.t.Fatal(err)
	}
	return events
}

func (s *shop) read() ([]event.Event, error) {
	var events []event.Event
	var after stream.Position
	for {
		entries, err := s.opened.ReadEvents(s.t.Context(), after, 1000, 0)
		if err != nil || len(entries) == 0 {
			return events, err
		}
		for _, entry := range entries {
			e, err := wire.Decode(entry.Data)
			if err != nil {
				return nil, err
			}
			events, after = append(events, e), entry.Position
		}
	}
}

// await returns the stored events once there are as many.
func (s *shop) await(n int) []event.Event {
	s.t.Helper()
	var events []event.Event
	s.until(fmt.Sprintf("%d events", n), func() bool {
		var err error
		events, err = s.read() // fails while Redis is away
		return err == nil && len(events) >= n
	})
	if len(events) > n {
		s.t.Fatalf("%d events are stored, want %d", len(events), n)
	}
	return events
}

// until polls until something holds.
func (s *shop) until(what string, holds func() bool) {
	s.t.Helper()
	deadline := time.NewTimer(2 * time.Minute)
	defer deadline.Stop()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for !holds() {
		select {
		case <-ticker.C:
		case <-deadline.C:
			events, err := s.read()
			s.t.Fatalf("%s: not in time; %d are stored, %v", what, len(events), err)
		}
	}
}

func (s *shop) visitor() *browser.Tab {
	s.t.Helper()
	return browser.Open(s.t, browser.Options{Hosts: s.hosts})
}

// consented is a visitor who is on the shop's first page, has consented, and whose first pageview has arrived.
func (s *shop) consented() *browser.Tab {
	s.t.Helper()
	tab := s.visitor()
	open(tab, shopHost+"/")
	does(tab, `weir('consent', 'granted')`)
	s.await(1)
	return tab
}

// failed waits until the network has been tried in vain.
func (s *shop) failed(tab *browser.Tab) {
	s.t.Helper()
	s.until("the network is tried", func() bool {
		return slices.ContainsFunc(tab.Complaints(), func(text string) bool { return strings.Contains(text, "net::ERR_") })
	})
}
