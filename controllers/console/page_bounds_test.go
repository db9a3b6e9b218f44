package console

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	chromium "github.com/weir-dev/weir/hack/browser"
)

// maxFirstLoad bounds what a first visit fetches, in bytes as they travel.
const maxFirstLoad = 100_000

// desk is a console with a user who may do most of what there is, and two Properties, of which one has numbers.
func desk(t *testing.T) (c *running, p *v1alpha1.Property, user string) {
	t.Helper()
	c = start(t)
	namespace := newNamespace(t)
	p, user = newProperty(t, namespace, "shop"), "user of "+namespace
	grant(t, "User", user, namespace, editor...)
	c.startPods(t, p).sell("EUR", "49.90", "10")
	ready(t, newProperty(t, namespace, "outlet"), metav1.ConditionFalse, "RedisUnavailable", "Redis does not answer; it is tried again by itself.")
	create(t, &v1alpha1.APIKey{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "server"}, Spec: v1alpha1.APIKeySpec{
		PropertyRef: v1alpha1.PropertyReference{Name: "shop"}, SHA256: strings.Repeat("0", 64), CreatedBy: user,
	}})
	return c, p, user
}

// windows are what can be opened in the view of keys and tokens, each by itself.
func windows(s *seat, p *v1alpha1.Property, name string) map[string]func() {
	access := below(p) + "?view=access"
	return map[string]func(){
		"the list":            func() { s.show("/") },
		"the list of nothing": func() { s.show("/?q=nothing") },
		"a wrong address":     func() { s.show("/?period=forever&perod=1") },
		"keys and tokens":     func() { s.show(access) },
		"the form": func() {
			s.show(access)
			s.Press(tokensPanel, "New")
			s.Await("the form is there", `document.querySelector('.make')`)
		},
		"a name that is taken": func() {
			s.show(access)
			s.fillIn(keysPanel, "server", "never")
			s.Press(keysPanel, "Make the API key")
			s.Await("it is said", `document.querySelector('[aria-invalid=true]')`)
		},
		"a secret": func() {
			s.show(access)
			s.fillIn(keysPanel, name)
			s.Press(keysPanel, "Make the API key")
			s.shown()
		},
		"whether to revoke": func() {
			s.show(access)
			s.Press(keysPanel, "Revoke")
			s.Await("it is asked back", `document.querySelector('dialog[open]')`)
		},
	}
}

// leave closes what keeps the browser from leaving.
func (s *seat) leave() {
	if chromium.Look[bool](s.Tab, `document.querySelector('[data-secret]') !== null`) {
		s.Press("dialog", "I have kept it")
		s.Await("the secret is gone", `!document.querySelector('dialog')`)
	}
}

// TestNothingInTheConsoleIsABarrier holds in light and in dark, as axe sees it, and on a telephone's screen.
func TestNothingInTheConsoleIsABarrier(t *testing.T) {
	t.Parallel()
	c, p, user := desk(t)
	for _, scheme := range []string{"light", "dark"} {
		s := c.seat(t, user, "/", chromium.Prefer("prefers-color-scheme", scheme))
		for name, open := range windows(s, p, "key-of-"+scheme) {
			open()
			if barriers := s.Barriers(); len(barriers) > 0 {
				t.Errorf("%s, %s: %s", name, scheme, strings.Join(barriers, "\n"))
			}
			s.leave()
		}
	}
	s := c.seat(t, user, "/", chromedp.EmulateViewport(360, 740))
	for name, open := range windows(s, p, "key-of-a-telephone") {
		open()
		if wide := s.Overflow(); len(wide) > 0 {
			t.Errorf("%s is wider than a telephone: %s", name, strings.Join(wide, "\n"))
		}
		if wide := chromium.Look[int](s.Tab, `document.querySelector('dialog')?.scrollWidth ?? 0`); wide > 360 {
			t.Errorf("%s: the window is %d wide", name, wide)
		}
		small := chromium.Look[[]string](s.Tab, `[...document.querySelectorAll('button')].filter((node) => node.checkVisibility())
			.map((node) => [node.getBoundingClientRect(), node.outerHTML.slice(0, 100)]).filter(([{width, height}]) => width < 24 || height < 24).map(([, text]) => text)`)
		if len(small) > 0 {
			t.Errorf("%s: smaller than 24 × 24: %q", name, small)
		}
		s.leave()
	}
}

// TestTheKeyboardIsEnoughForTheConsole goes from the list to a key, and revokes it, without a pointer.
func TestTheKeyboardIsEnoughForTheConsole(t *testing.T) {
	t.Parallel()
	c, p, user := desk(t)
	s := c.seat(t, user, "/")
	for _, path := range []string{"/", below(p) + "?view=access"} {
		s.show(path)
		if left := s.Unreached(); len(left) > 0 {
			t.Errorf("%s: not reached:\n%s", path, strings.Join(left, "\n"))
		}
	}
	tabTo := func(what, condition string) {
		t.Helper()
		for range 100 {
			if chromium.Look[bool](s.Tab, condition) {
				return
			}
			s.Do(chromedp.KeyEvent(kb.Tab))
		}
		t.Fatalf("Tab does not reach %s", what)
	}
	s.show("/")
	tabTo("the Property", `document.activeElement.innerText === 'shop'`)
	s.Do(chromedp.KeyEvent(kb.Enter))
	s.settle()
	tabTo("the view", `document.activeElement.innerText === 'Keys and tokens'`)
	s.Do(chromedp.KeyEvent(kb.Enter))
	s.Await("the heading has the focus", `document.activeElement.innerText === 'Keys and tokens' && document.activeElement.tagName === 'H1'`)
	s.settle()
	tabTo("the button that makes a key", `document.activeElement.innerText === 'New API key…'`)
	s.Do(chromedp.KeyEvent(kb.Enter))
	s.Await("the form has the focus", `document.activeElement.matches('.make input')`)
	s.Do(chromedp.KeyEvent("by-keyboard" + kb.Enter))
	s.shown()
	tabTo("the button that closes it", `document.activeElement.innerText === 'I have kept it'`)
	s.Do(chromedp.KeyEvent(kb.Enter))
	s.Await("the button that makes a key has the focus again", `document.activeElement.innerText === 'New API key…'`)
	s.Await("the key is listed", `[...document.querySelectorAll('tbody th')].some((cell) => cell.innerText === 'by-keyboard')`)
	tabTo("the button that revokes it", `document.activeElement.matches('tr button') && document.activeElement.closest('tr').innerText.includes('by-keyboard')`)
	s.Do(chromedp.KeyEvent(kb.Enter))
	s.Await("the name can be typed", `document.activeElement.matches('dialog[open] input')`)
	s.Do(chromedp.KeyEvent("by-keyboard" + kb.Enter))
	s.Await("the key is gone", `![...document.querySelectorAll('tbody th')].some((cell) => cell.innerText === 'by-keyboard')`)
}

// TestTheConsolesPagesAskNobodyElse holds but for the provider, which browsers are led to, and for what the policy refuses.
func TestTheConsolesPagesAskNobodyElse(t *testing.T) {
	t.Parallel()
	c, p, user := desk(t)
	s := &seat{c.seat(t, user, "/").Beside(), c} // whoever has not come in yet is told so by a 401, which the console notes
	s.show("/")
	first := chromium.Look[int](s.Tab, `[performance.getEntriesByType('navigation')[0], ...performance.getEntriesByType('resource')]
		.filter(({name}) => !/session$|\/api\//.test(name)).reduce((sum, {encodedBodySize}) => sum + encodedBodySize, 0)`)
	t.Logf("the list's files have %d bytes", first)
	if first > maxFirstLoad/2 || first < 10_000 {
		t.Errorf("a first load of the list fetches %d bytes, want at most %d", first, maxFirstLoad/2)
	}
	s.show(below(p))
	views := chromium.Look[[]string](s.Tab, `[...document.querySelectorAll('nav a')].map((link) => link.search)`)
	if len(views) != 8 || views[7] != "?view=access" {
		t.Errorf("the views are %q, want keys and tokens as the eighth", views)
	}
	for _, view := range views {
		s.show(below(p) + view)
	}
	s.fillIn(tokensPanel, "asks-nobody")
	for _, request := range s.Requests() {
		if asked, err := url.Parse(request); err != nil || asked.Scheme != "data" && !strings.HasPrefix(request, c.url+"/") {
			t.Errorf("the page asks for %s", request)
		}
	}
	if complaints := s.Complaints(); len(complaints) > 0 {
		t.Errorf("the console says %q", complaints)
	}
	for _, path := range []string{"/", below(p)} {
		s.show(path)
		for name, attempt := range map[string]string{
			"a script in the page is run": `new Promise((done) => {
				document.addEventListener('securitypolicyviolation', () => done(false), {once: true});
				const script = document.createElement('script');
				script.textContent = 'document.title = "run"';
				document.head.append(script);
				setTimeout(() => done(true), 2000);
			})`,
			"another host is asked": `fetch('https://elsewhere.test/').then(() => true, () => false)`,
		} {
			if chromium.Look[bool](s.Tab, attempt) {
				t.Errorf("%s: %s", path, name)
			}
		}
	}
}

// hostile are texts that somebody may have as a name, or pods may say.
var hostile = []string{
	`<img src=x onerror="window.owned=1">`,
	`"><script>window.owned=1</script>`,
	`javascript:window.owned=1`,
	`{{constructor.constructor("window.owned=1")()}}${window.owned=1}`,
	"\u202eesrever \u2066inside",
	strings.Repeat("wide", 100),
	`__proto__`,
	`'; rm -rf / #`,
}

// TestWhatOthersSayIsTextInTheConsole holds for users' names, for what conditions say and for what hostile pods answer.
func TestWhatOthersSayIsTextInTheConsole(t *testing.T) {
	t.Parallel()
	c := start(t)
	namespace := newNamespace(t)
	p := newProperty(t, namespace, "shop")
	all := strings.Join(hostile, " ")
	ready(t, p, metav1.ConditionFalse, "Hostile", all)
	for i, text := range hostile {
		key := &v1alpha1.APIKey{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("key-%d", i)}, Spec: v1alpha1.APIKeySpec{
			PropertyRef: v1alpha1.PropertyReference{Name: "shop"}, SHA256: fmt.Sprintf("%064x", i), CreatedBy: text,
		}}
		create(t, key)
		report(t, key, &key.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: "Duplicate", Message: text})
	}
	pods := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(r.URL.Path, "/settings") {
			fmt.Fprintf(w, `{"data": {"property": %s, "namespace": %[1]s, "currency": %[1]s, "time_zone": %[1]s, "collect_url": %[2]s, "api_url": %[2]s,
				"retention_days": 1, "api_keys": [{"name": %[1]s, "type": %[1]s}], "access_tokens": [], "platforms": [], "sources": []}}`,
				chromium.Quote(all), chromium.Quote("https://x.example.com/'; rm -rf / #"))
			return
		}
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, `{"message": %s, "sign_in": "https://elsewhere.test/", "errors": {%[1]s: [%[1]s]}}`, chromium.Quote(all))
	}))
	t.Cleanup(pods.Close)
	c.serve(p, pods.Listener.Addr().String())
	for i, user := range hostile[:4] {
		grant(t, "User", user, namespace, editor...)
		s := c.seat(t, user, "/")
		if got := s.Texts(".who bdi"); len(got) != 1 || got[0] != strings.TrimSpace(user) {
			t.Errorf("the user %q is shown as %q", user, got)
		}
		for _, path := range []string{"/", "/?q=" + url.QueryEscape(user) + "&sort=" + url.QueryEscape(user) + "&" + url.QueryEscape(user) + "=1", below(p) + "?view=settings", below(p) + "?view=access"} {
			s.show(path)
			if found := s.Injected(); len(found) > 0 {
				t.Errorf("%s as %s: %q", path, user, found)
			}
		}
		s.Await("what conditions say is there", `document.querySelector('`+keysPanel+` tbody').innerText.includes('onerror')`)
		if i > 0 {
			continue
		}
		s.fillIn(keysPanel, "pasted")
		s.Press(keysPanel, "Make the API key")
		secret := s.shown()
		if said := s.Texts("dialog pre"); strings.Contains(strings.Join(said, ""), "rm -rf") || !strings.HasPrefix(said[1], "curl -sS 'https://COLLECT_HOST/collect/"+secret+"' ") {
			t.Errorf("hostile pods have somebody paste %q", said)
		}
		s.leave()
	}
}
