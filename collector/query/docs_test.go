package query

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weir-dev/weir/hack/browser"
)

// openDocs serves the API and opens its documentation, in a tab that is prepared first. It returns when all has been
// rendered, and where from.
func openDocs(t *testing.T, prepare ...chromedp.Action[chromedp.Void]) (p *browser.Tab, site string) {
	t.Helper()
	_, api := serve(t)
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	p = browser.Open(t, browser.Options{Prepare: prepare})
	p.Do(chromedp.Navigate(server.URL+"/docs"), chromedp.WaitVisible(chromedp.CSS("section:last-of-type")))
	return p, server.URL
}

// shownCall is what a reader is shown of a call.
type shownCall struct {
	Title, Target             string
	Parameters, Body, Answers []string
}

// describedCalls is what there is to be shown, by the calls' anchors.
func (d *description) describedCalls() map[string]shownCall {
	calls := map[string]shownCall{}
	for path := range d.object("paths") {
		for method := range d.object("paths", path) {
			anchor, _ := d.at("paths", path, method, "operationId").(string)
			call := shownCall{
				Target:  strings.ToUpper(method) + " " + apiPrefix + path,
				Body:    slices.Sorted(maps.Keys(d.object("paths", path, method, "requestBody", "content", typeJSON, "schema", "properties"))),
				Answers: slices.Sorted(maps.Keys(d.object("paths", path, method, "responses"))),
			}
			call.Title, _ = d.at("paths", path, method, "summary").(string)
			parameters, _ := d.at("paths", path, method, "parameters").([]any)
			for _, parameter := range parameters {
				name, _ := member(d.resolve(parameter), "name").(string)
				call.Parameters = append(call.Parameters, name)
			}
			slices.Sort(call.Parameters)
			calls[anchor] = call
		}
	}
	return calls
}

// shownCalls reads what can be seen of the page's sections.
const shownCalls = `Object.fromEntries([...document.querySelectorAll('section')].map((section) => {
  const texts = (selector) => [...section.querySelectorAll(selector)]
    .filter((node) => node.checkVisibility()).map((node) => node.innerText).sort();
  return [section.id, {
    Title: texts('h2').join(),
    Target: texts('.call').join(),
    Parameters: texts('tbody td:first-child'),
    Body: texts(':scope > .members > div > code, :scope > .members > details > summary > code'),
    Answers: texts(':scope > details > summary > strong'),
  }];
}))`

// faintTexts lists texts whose contrast with what they stand on is below 4.5, the least that WCAG asks for.
const faintTexts = `(() => {
  const channels = (color) => color.match(/[\d.]+/g).map(Number);
  const luminance = (color) => channels(color).slice(0, 3).map((c) => c / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (node) => {
    for (; node; node = node.parentElement) {
      const color = getComputedStyle(node).backgroundColor;
      if (channels(color)[3] !== 0) return color;
    }
    return 'rgb(255, 255, 255)';
  };
  return [...document.querySelectorAll('body *')]
    .filter((node) => node.checkVisibility() && [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim()))
    .filter((node) => {
      const [light, dark] = [luminance(getComputedStyle(node).color), luminance(ground(node))].sort((a, b) => b - a);
      return (light + 0.05) / (dark + 0.05) < 4.5;
    })
    .map((node) => node.innerText);
})()`

// unfold opens everything that unfolds.
const unfold = `document.querySelectorAll('details').forEach((details) => { details.open = true; })`

func TestTheDocsShowEveryCall(t *testing.T) {
	page, _ := openDocs(t)
	want := describedAPI(t).describedCalls()
	if diff := cmp.Diff(want, browser.Look[map[string]shownCall](page, shownCalls), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-described +shown):\n%s", diff)
	}
	for anchor, call := range want {
		link := fmt.Sprintf(`document.querySelector('nav a[href="#%s"]').innerText`, anchor)
		if got := browser.Look[string](page, link); got != call.Title {
			t.Errorf("the contents lead to %s by %q, want %q", anchor, got, call.Title)
		}
	}
}

func TestTheDocsFetchNothingElseAndComplainOfNothing(t *testing.T) {
	page, site := openDocs(t)
	page.Do(chromedp.Evaluate[chromedp.Void](unfold))
	want := []string{site + apiPrefix + "/openapi.json", site + "/docs", site + "/docs/docs.css", site + "/docs/docs.js"}
	requests := page.Requests()
	slices.Sort(requests)
	if diff := cmp.Diff(want, requests); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if complaints := page.Complaints(); len(complaints) > 0 {
		t.Errorf("the console says %q", complaints)
	}
}

func TestTheDocsPolicyHolds(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("another host was asked for %s", r.URL)
	}))
	defer elsewhere.Close()
	page, _ := openDocs(t)
	for name, attempt := range map[string]string{
		"a request to another host is refused": `fetch('ELSEWHERE/data').then(() => true, () => false)`,
		"an image of another host is refused": `new Promise((done) => {
			const image = new Image();
			image.onload = () => done(true);
			image.onerror = () => done(false);
			image.src = 'ELSEWHERE/image';
		})`,
		"a script within the page does not run": `(() => {
			const script = document.createElement('script');
			script.textContent = 'window.ran = true';
			document.body.append(script);
			return window.ran === true;
		})()`,
	} {
		if browser.Look[bool](page, strings.ReplaceAll(attempt, "ELSEWHERE", elsewhere.URL)) {
			t.Errorf("%s: got it through", name)
		}
	}
}

func TestTheDocsFollowTheReadersColours(t *testing.T) {
	for name, want := range map[string]struct{ dark bool }{"light": {false}, "dark": {true}} {
		t.Run(name, func(t *testing.T) {
			page, _ := openDocs(t, browser.Prefer("prefers-color-scheme", name))
			page.Do(chromedp.Evaluate[chromedp.Void](unfold))
			paper := browser.Look[[]int](page, `getComputedStyle(document.documentElement).backgroundColor.match(/\d+/g).map(Number)`)
			if got := max(paper[0], paper[1], paper[2]) < 128; got != want.dark {
				t.Errorf("the paper's colour is %v", paper)
			}
			if faint := browser.Look[[]string](page, faintTexts); len(faint) > 0 {
				t.Errorf("too faint: %q", faint)
			}
		})
	}
}

func TestTheDocsFitAPhone(t *testing.T) {
	const want = 360
	page, _ := openDocs(t, chromedp.EmulateViewport(want, 740, chromedp.EmulateMobile, chromedp.EmulatePortrait))
	page.Do(chromedp.Evaluate[chromedp.Void](unfold))
	if got := browser.Look[int](page, `document.documentElement.scrollWidth`); got != want {
		t.Errorf("the page is %d wide, want %d", got, want)
	}
}

// reachable lists what the keyboard has to reach, in order: what can be seen of the links and of what unfolds.
const reachable = `[...document.querySelectorAll('a[href], summary')].filter((node) => node.checkVisibility()).map((node) => node.innerText)`

// focused is what has the focus, and whether that can be seen; its Text is "" once the focus has left the page. A box that
// scrolls has the focus in between, so that the arrow keys scroll it.
const focused = `(() => {
  const node = document.activeElement, style = getComputedStyle(node);
  return {
    Text: node === document.body ? '' : node.innerText,
    Scrolls: node.tagName === 'PRE',
    Seen: style.outlineStyle !== 'none' && style.outlineWidth !== '0px',
  };
})()`

func TestTheDocsAreReachedByKeyboard(t *testing.T) {
	page, _ := openDocs(t)
	want := browser.Look[[]string](page, reachable)
	type focus struct {
		Text          string
		Scrolls, Seen bool
	}
	var got []string
	for range 10 * len(want) {
		page.Do(chromedp.KeyEvent(kb.Tab))
		at := browser.Look[focus](page, focused)
		if at.Text == "" {
			break
		}
		if !at.Seen {
			t.Errorf("the focus cannot be seen on %q", at.Text)
		}
		if !at.Scrolls {
			got = append(got, at.Text)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-to be reached +reached):\n%s", diff)
	}
}

func TestTheDocsFollowTheEnterKey(t *testing.T) {
	page, _ := openDocs(t)
	page.Do(chromedp.Focus(chromedp.CSS(`nav a[href="#funnel"]`)), chromedp.KeyEvent(kb.Enter))
	const top = `document.getElementById('funnel').getBoundingClientRect().top`
	if got := browser.Look[float64](page, top); got < -1 || got > 100 {
		t.Errorf("the funnel's section begins at %v, want the top", got)
	}
	page.Do(chromedp.Focus(chromedp.CSS(`#funnel > details:not([open]) > summary`)), chromedp.KeyEvent(kb.Enter))
	if !browser.Look[bool](page, `document.activeElement.parentElement.open`) {
		t.Error("the answer stays folded")
	}
}

func TestTheDocsSayWhereTheDescriptionIsMissing(t *testing.T) {
	_, api := serve(t)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == apiPrefix+"/openapi.json" {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		api.ServeHTTP(w, r)
	}))
	defer site.Close()
	page := browser.Open(t, browser.Options{})
	page.Do(chromedp.Navigate(site.URL+"/docs"), chromedp.WaitVisible(chromedp.CSS(".error")))
	want := "The description could not be shown: HTTP 503"
	if got := browser.Look[string](page, `document.querySelector('[role=status]').innerText`); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
