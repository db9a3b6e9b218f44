package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-dev/weir/collector/deliver/fakes"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/server"
	"github.com/weir-dev/weir/controllers/resources"
)

// fakePlatforms are the servers that --fake-platforms puts in place of the platforms' own.
type fakePlatforms struct {
	servers []*http.Server
	fakes   []*fakes.Server
}

// fakePlatforms starts a server for each type of platform that the Properties have, on free ports of the loopback,
// and routes the platforms to them: those with an endpoint of their own by that, webhooks by their URL. A type
// that --platform-endpoint routes elsewhere goes there. Each request is printed to out, its hashes shortened.
func (o *devOptions) fakePlatforms(ctx context.Context, properties []*loadedProperty, out io.Writer, logger *slog.Logger) (*fakePlatforms, error) {
	started := &fakePlatforms{}
	if !o.fakes {
		return started, nil
	}
	accounts, err := o.fakeAccounts(properties)
	if err != nil {
		return nil, err
	}
	printer := &fakePrinter{out: out}
	for _, kind := range slices.Sorted(maps.Keys(accounts)) {
		fake, err := fakes.New(kind, accounts[kind], func(r fakes.Receipt) { printer.print(kind, r) }, time.Now)
		if err != nil {
			started.close()
			return nil, err
		}
		listener, err := server.Listen(ctx, "127.0.0.1:0", "--fake-platforms")
		if err != nil {
			started.close()
			return nil, err
		}
		base := "http://" + listener.Addr().String()
		serving := &http.Server{Handler: fake, ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelWarn)}
		go func() { _ = serving.Serve(listener) }() // until close
		started.servers, started.fakes = append(started.servers, serving), append(started.fakes, fake)
		o.routeToFake(kind, base, properties)
		fmt.Fprintf(out, "fake %s at %s, in place of the platform's own\n", kind, base)
	}
	o.egress = append(o.egress, netip.MustParsePrefix("127.0.0.1/32"))
	return started, nil
}

// fakeAccounts are what the fakes have to know: which ids there are, and who may send to them.
func (o *devOptions) fakeAccounts(properties []*loadedProperty) (map[platforms.Type][]fakes.Account, error) {
	accounts := map[platforms.Type][]fakes.Account{}
	for _, p := range properties {
		rendered, err := resources.PropertyConfig(p.Property, resources.Options{})
		if err != nil {
			return nil, err
		}
		for _, platform := range rendered.Platforms {
			if _, elsewhere := o.endpoints[platform.Type]; elsewhere || !fakes.Has(platform.Type) {
				continue
			}
			keys := p.platformSecrets[platform.Name]
			if platform.Webhook != nil {
				platform.Webhook = &platforms.Webhook{URL: fakeWebhookPath(p, platform.Name)}
			}
			platform.Name = p.id().String() + "/" + platform.Name
			accounts[platform.Type] = append(accounts[platform.Type], fakes.Account{Platform: platform, Credentials: keys})
		}
	}
	return accounts, nil
}

// fakeWebhookPath tells the webhooks of all Properties apart at their one fake.
func fakeWebhookPath(p *loadedProperty, platform string) string {
	return path.Join("/", p.Namespace, p.Name, platform)
}

func (o *devOptions) routeToFake(kind platforms.Type, base string, properties []*loadedProperty) {
	if traits, _ := kind.Traits(); traits.HasEndpoint {
		o.endpoints[kind] = base
		return
	}
	for _, p := range properties {
		for i := range p.Spec.Platforms {
			if webhook := p.Spec.Platforms[i].Webhook; webhook != nil {
				webhook.URL = base + fakeWebhookPath(p, p.Spec.Platforms[i].Name)
			}
		}
	}
}

// close ends the fakes, with what they have not answered.
func (f *fakePlatforms) close() {
	for i := range f.servers {
		f.fakes[i].Close()
		_ = f.servers[i].Close() // nothing of it outlives the process
	}
}

// fakePrinter prints what fakes got, a line per event.
type fakePrinter struct {
	mu  sync.Mutex
	out io.Writer
}

func (p *fakePrinter) print(kind platforms.Type, receipt fakes.Receipt) {
	p.mu.Lock()
	defer p.mu.Unlock()
	prefix := fmt.Sprintf("fake %s: ", kind)
	if receipt.Platform != "" {
		prefix += receipt.Platform + " · "
	}
	if receipt.Test {
		prefix += "a test · "
	}
	if receipt.Complaint != "" {
		fmt.Fprintf(p.out, "%sREFUSED with %d: %s\n", prefix, receipt.Status, receipt.Complaint)
	}
	for _, e := range receipt.Events {
		fmt.Fprintln(p.out, prefix+describeFaked(e))
	}
}

// describeFaked puts an event in one line: its name, id and value, the person's hashes, shortened, and the milder form in which
// it came.
func describeFaked(e fakes.Event) string {
	parts := []string{e.Name, "id " + e.ID}
	if e.Value != "" && e.Currency != "" {
		parts = append(parts, e.Value+" "+e.Currency)
	}
	for _, field := range slices.Sorted(maps.Keys(e.Hashes)) {
		for _, hash := range e.Hashes[field] {
			parts = append(parts, fmt.Sprintf("%s %.8s…", field, hash))
		}
	}
	if e.Limited != "" {
		parts = append(parts, "limited: "+e.Limited)
	}
	if e.Repeat {
		parts = append(parts, "a repeat")
	}
	if e.Refusal != "" {
		parts = append(parts, "REFUSED: "+e.Refusal)
	}
	return strings.Join(parts, " · ")
}
