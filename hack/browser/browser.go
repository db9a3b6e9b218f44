// Package browser opens pages in a real Chromium, for tests: that of the PATH, else Debian's, which hack/package.sh fetches.
package browser

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// timeout bounds each thing that is done in a tab.
const timeout = 60 * time.Second

// Options are how a browser differs from others.
type Options struct {
	// Hosts are the hosts that there are beside 127.0.0.1, as "www.shop.test:443", and what answers for each, as
	// "127.0.0.1:4711". Their certificates are not checked.
	Hosts map[string]string
	// AnyCertificate says that no certificates are checked.
	AnyCertificate bool
	// Prepare is done in the first tab before anything is opened.
	Prepare []chromedp.Action[chromedp.Void]
}

// Tab is a page in a browser, and what it has asked for and complained about.
type Tab struct {
	t   *testing.T
	ctx context.Context // chromedp's handle of a tab

	mu         sync.Mutex
	requests   []string
	complaints []string
}

// Open opens a tab in a Chromium of its own. Both end with the test.
func Open(t *testing.T, o Options) *Tab {
	t.Helper()
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOMOD").Output()
	if err != nil {
		t.Fatalf("go env GOMOD: %v", err)
	}
	var words strings.Builder
	find := exec.CommandContext(t.Context(), filepath.Join(filepath.Dir(string(root)), "hack", "package.sh"), "chromium")
	find.Stderr = &words
	path, err := find.Output()
	if err != nil {
		t.Fatalf("hack/package.sh chromium: %v: %s", err, words.String())
	}
	// No other name resolves, so that a mistake reaches nobody.
	rules := []string{"MAP * ~NOTFOUND", "EXCLUDE 127.0.0.1"}
	for host, address := range o.Hosts {
		rules = slices.Insert(rules, 0, "MAP "+host+" "+address)
	}
	// The pages are our own, so they need no sandbox, which root and containers do not have.
	allocator, end := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(strings.TrimSpace(string(path))), chromedp.UserDataDir(t.TempDir()),
		chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("accept-lang", "en-US"),
		chromedp.Flag("ignore-certificate-errors", o.AnyCertificate || len(o.Hosts) > 0),
		chromedp.Flag("host-resolver-rules", strings.Join(rules, ", ")))...)
	t.Cleanup(end)
	opened := open(allocator, t)
	opened.Do(o.Prepare...)
	return opened
}

// Beside opens another tab in the same browser: it has the same cookies and storage.
func (p *Tab) Beside() *Tab {
	p.t.Helper()
	return open(p.ctx, p.t)
}

func open(parent context.Context, t *testing.T) *Tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(parent)
	t.Cleanup(cancel)
	opened := &Tab{t: t, ctx: ctx}
	if err := chromedp.Listen(ctx, opened.note); err != nil {
		t.Fatal(err)
	}
	opened.Do()
	return opened
}

// note keeps what the tests want to know of what happens in the tab.
func (p *Tab) note(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch event := event.(type) {
	case *network.EventRequestWillBeSent:
		p.requests = append(p.requests, event.Request.URL)
	case *log.EventEntryAdded:
		p.complaints = append(p.complaints, event.Entry.Text)
	case *runtime.EventExceptionThrown:
		said := event.ExceptionDetails.Text
		if thrown := event.ExceptionDetails.Exception; thrown != nil {
			said += ": " + thrown.Description
		}
		p.complaints = append(p.complaints, said)
	case *runtime.EventConsoleAPICalled:
		p.complaints = append(p.complaints, fmt.Sprintf("console.%s", event.Type))
	}
}

// Prefer lets pages think that their reader prefers that of a media feature, as "more" of "prefers-contrast".
func Prefer(feature, value string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: feature, Value: value}},
		})
		return err
	})
}

// Requests are the addresses that the tab has asked for, in order.
func (p *Tab) Requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.requests)
}

// Complaints are what the console says, in order.
func (p *Tab) Complaints() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.complaints)
}

// Close closes the tab.
func (p *Tab) Close() {
	p.t.Helper()
	if err := chromedp.Cancel(p.ctx); err != nil {
		p.t.Fatal(err)
	}
}

// Do does things in the tab, one after the other.
func (p *Tab) Do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, timeout)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		p.t.Fatal(err)
	}
}

// Look evaluates an expression in the tab's page, waiting for it where it is a promise.
func Look[T any](p *Tab, expression string) T {
	p.t.Helper()
	seen, err := look[T](p, expression)
	if err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
	return seen
}

func look[T any](p *Tab, expression string) (T, error) {
	ctx, cancel := context.WithTimeout(p.ctx, timeout)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// left are what Chromium says where the page that was asked has been left for another.
var left = []string{"Inspected target navigated or closed", "Execution context was destroyed", "Cannot find context"}

// Await waits until a condition holds in the tab's page, or in those that it leads to by itself, and fails the test with what the page
// shows where it does not.
func (p *Tab) Await(what, condition string) {
	p.t.Helper()
	for end := time.Now().Add(timeout - 10*time.Second); ; {
		shown, err := look[*string](p, fmt.Sprintf(`new Promise((done) => {
	const end = performance.now() + %d;
	const look = () => {
		if (%s) done(null);
		else if (performance.now() > end) done(document.body.innerText);
		else setTimeout(look, 20);
	};
	look();
})`, max(0, time.Until(end).Milliseconds()), condition))
		switch {
		case err != nil && time.Now().Before(end) && slices.ContainsFunc(left, func(said string) bool { return strings.Contains(err.Error(), said) }):
			continue
		case err != nil:
			p.t.Fatalf("%s: %v", what, err)
		case shown != nil:
			p.t.Fatalf("not in time: %s; the page shows:\n%s", what, *shown)
		}
		return
	}
}

// Picture is what can be seen of the tab's page, as PNG.
func (p *Tab) Picture() []byte {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, timeout)
	defer cancel()
	picture, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		p.t.Fatal(err)
	}
	return picture
}
