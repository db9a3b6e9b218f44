package console

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/auth"
	chromium "github.com/weir-dev/weir/hack/browser"
)

// The panels of tokens and keys.
const (
	tokensPanel = "[data-kind=tokens]"
	keysPanel   = "[data-kind=keys]"
)

// listen keeps what the page sends from now on.
const listen = `(() => {
	const sent = fetch;
	window.sent = [];
	window.fetch = (...request) => { window.sent.push(JSON.stringify(request)); return sent(...request); };
})()`

// fillIn fills in the form of a panel, and sends it.
func (s *seat) fillIn(panel, name string, choices ...string) {
	s.Press(panel, "New")
	s.Await("the form has the focus", `document.activeElement.matches('.make input')`)
	s.Do(chromedp.KeyEvent(name))
	for _, choice := range choices {
		s.Do(chromedp.Evaluate[chromedp.Void](`(() => {
	const select = [...document.querySelectorAll('.make select')].find((each) => [...each.options].some(({value}) => value === ` + chromium.Quote(choice) + `));
	select.value = ` + chromium.Quote(choice) + `;
	select.dispatchEvent(new Event('change', {bubbles: true}));
})()`))
	}
}

// shown is the secret that the page shows.
func (s *seat) shown() string {
	s.Await("the secret is shown", `document.querySelector('dialog[open] [data-secret]')`)
	return chromium.Look[string](s.Tab, `document.querySelector('[data-secret]').innerText`)
}

// object reads one of the cluster.
func object[T client.Object](t *testing.T, empty T, namespace, name string) T {
	t.Helper()
	if err := cluster.admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, empty); err != nil {
		t.Fatal(err)
	}
	return empty
}

// hashOf is what an object has of a secret.
func hashOf(t *testing.T, secret string) string {
	t.Helper()
	text, err := auth.HashOf(secret).MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// accepted reports that the pods have been told of a key or token.
func accepted(t *testing.T, of client.Object, status *v1alpha1.CredentialStatus) {
	t.Helper()
	report(t, of, &status.Conditions, metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Ready", Message: "The pods know it."})
}

// TestSomebodyMakesAKeyAndSendsWithIt is the life of an API key: made in the browser, known by its hash, used, revoked.
func TestSomebodyMakesAKeyAndSendsWithIt(t *testing.T) {
	t.Parallel()
	c := start(t)
	p := newProperty(t, newNamespace(t), "shop")
	user := "maker in " + p.Namespace
	grant(t, "User", user, p.Namespace, editor...)
	pods := c.startPods(t, p)
	s := c.seat(t, user, below(p)+"?view=overview")
	s.Press("nav", "Keys and tokens")
	s.settle()
	if got := s.rows("API keys"); len(got) != 1 || got[0][0] != "default" || got[0][5] != "in the Property" {
		t.Errorf("at first there is %q", got)
	}
	s.Do(chromedp.Evaluate[chromedp.Void](listen))
	s.fillIn(keysPanel, "server")
	s.Press(keysPanel, "Make the API key")
	secret := s.shown()
	if !auth.WellFormed(secret) || !strings.HasPrefix(secret, auth.APIKeyPrefix) {
		t.Errorf("the key is %q, which is not well-formed", secret)
	}
	made := object(t, &v1alpha1.APIKey{}, p.Namespace, "server")
	if made.Spec.SHA256 != hashOf(t, secret) || made.Spec.CreatedBy != user || made.Spec.PropertyRef.Name != p.Name {
		t.Errorf("the object is %+v", made.Spec)
	}
	if days := time.Until(made.Spec.ExpirationTime.Time).Hours() / 24; days < 89.9 || days > 90 {
		t.Errorf("it is valid for %v days, want 90", days)
	}
	s.Appears("dialog .tag", "Almost ready")
	s.Appears("dialog pre", "curl -sS 'https://in.example.com/collect/"+secret+"'")

	pods.know(firstKey, secret)
	accepted(t, made, &made.Status)
	s.Appears("dialog .tag", "Ready")
	eventually(t, "the pods take what is sent with it", func() bool {
		return pods.send(secret, `{"event": "lead", "event_id": "by-the-new-key"}`) == http.StatusAccepted
	})

	s.Press("dialog", "I have kept it")
	s.Await("the secret is gone", `!document.querySelector('dialog')`)
	if s.holds(secret) || s.holds(secret[3:20]) {
		t.Error("the page still has the secret")
	}
	if sent := chromium.Look[[]string](s.Tab, `window.sent`); len(sent) == 0 || strings.Contains(strings.Join(sent, ""), secret) {
		t.Errorf("the page has sent %q, want some, without the secret", sent)
	}
	if strings.Contains(c.log.String()+c.acts.String(), secret) {
		t.Error("the console has written the secret down")
	}
	s.Await("the key is listed as ready", `[...document.querySelectorAll('`+keysPanel+` tbody tr')].some((row) => row.innerText.includes('server') && row.innerText.includes('ready'))`)
	if got := s.column("API keys", 3); !slices.Equal(got, []string{"–", user}) {
		t.Errorf("the keys are made by %q, want the second by %q", got, user)
	}
	s.revoke(t, keysPanel, "server")
	if err := cluster.admin.Get(t.Context(), client.ObjectKeyFromObject(made), made); !apierrors.IsNotFound(err) {
		t.Errorf("after it is revoked the object is there: %v", err)
	}
}

// revoke revokes a key or token, whose name is typed.
func (s *seat) revoke(t *testing.T, panel, name string) {
	t.Helper()
	s.Press(panel, "Revoke")
	s.Await("it is asked back", `document.activeElement.matches('dialog[open] input')`)
	s.Do(chromedp.KeyEvent("other" + kb.Enter))
	if chromium.Look[bool](s.Tab, `document.querySelector('dialog') === null || !document.querySelector('dialog button.main').disabled`) {
		t.Error("another name is enough to revoke")
	}
	s.Do(chromedp.Evaluate[chromedp.Void](`document.activeElement.select()`), chromedp.KeyEvent(name+kb.Enter))
	s.Await("it is gone", `!document.querySelector('dialog') && ![...document.querySelectorAll('`+panel+` tbody th')].some((cell) => cell.innerText === '`+name+`')`)
	if got := chromium.Look[string](s.Tab, `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(document.activeElement.tagName))))`); got != "BUTTON" {
		t.Errorf("afterwards the focus is on %s, want the button that makes another", got)
	}
}

// TestSomebodyMakesTokensWithinTheirScope holds what may be chosen, and what comes of it.
func TestSomebodyMakesTokensWithinTheirScope(t *testing.T) {
	t.Parallel()
	c := start(t)
	p := newProperty(t, newNamespace(t), "shop", func(p *v1alpha1.Property) {
		p.Spec.AccessTokens = []v1alpha1.PropertyAccessToken{{Name: "in-the-manifest", Scope: v1alpha1.AccessTokenScope(auth.ScopeAdmin)}}
	})
	user := "maker in " + p.Namespace
	grant(t, "User", user, p.Namespace, editor...)
	s := c.seat(t, user, below(p)+"?view=access") // there are no pods: keys and tokens come before
	if got := s.rows("Access tokens"); len(got) != 1 || got[0][0] != "in-the-manifest" || got[0][6] != "in the Property" {
		t.Errorf("at first there is %q", got)
	}
	s.fillIn(tokensPanel, "bi", "write", "never")
	s.Appears(".make .warn", "Whoever finds it can use it until somebody revokes it.")
	if got := chromium.Look[[]string](s.Tab, `[...document.querySelectorAll('.make select')[0].options].map(({value}) => value)`); !slices.Equal(got, []string{"read", "write"}) {
		t.Errorf("the scopes are %q, want those of the user", got)
	}
	s.Press(tokensPanel, "Make the access token")
	secret := s.shown()
	made := object(t, &v1alpha1.AccessToken{}, p.Namespace, "bi")
	want := v1alpha1.AccessTokenSpec{PropertyRef: v1alpha1.PropertyReference{Name: "shop"}, SHA256: hashOf(t, secret), Scope: v1alpha1.AccessTokenScope(auth.ScopeWrite), CreatedBy: user}
	if diff := cmp.Diff(want, made.Spec); diff != "" || !auth.WellFormed(secret) || !strings.HasPrefix(secret, auth.AccessTokenPrefix) {
		t.Errorf("of %q there is (-want +got):\n%s", secret, diff)
	}
	s.Appears("dialog pre", "/api/v1/properties/shop/analytics/summary?period=7d' \\\n  -H 'Authorization: Bearer "+secret+"'")
	report(t, made, &made.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: "Duplicate", Message: "An older token has this hash."})
	s.Appears("dialog", "An older token has this hash.")
	s.Press("dialog", "I have kept it")
	s.Appears(tokensPanel+" tbody", "Duplicate")

	t.Run("a name that is taken is said at the name", func(t *testing.T) {
		s.fillIn(tokensPanel, "bi")
		s.Press(tokensPanel, "Make the access token")
		s.Await("the name is wrong", `document.activeElement.matches('.make input[aria-invalid=true]')`)
		s.Appears(".make [role=alert]", "There is an access token of that name")
		s.Press(tokensPanel, "Cancel")
	})
	t.Run("a name that is none is not sent", func(t *testing.T) {
		s.Do(chromedp.Evaluate[chromedp.Void](listen))
		s.fillIn(tokensPanel, "Not A Name")
		s.Press(tokensPanel, "Make the access token")
		if chromium.Look[bool](s.Tab, `document.querySelector('.make input').validity.valid || window.sent.length > 0`) {
			t.Error("it is sent")
		}
		s.Press(tokensPanel, "Cancel")
	})
	t.Run("a day is chosen as the last", func(t *testing.T) {
		s.fillIn(tokensPanel, "until", "date")
		s.Do(chromedp.Evaluate[chromedp.Void](`(() => {
	const field = document.querySelector('.make input[type=date]');
	field.value = '2090-12-31';
	field.dispatchEvent(new Event('input', {bubbles: true}));
})()`))
		s.Press(tokensPanel, "Make the access token")
		s.shown()
		if got := object(t, &v1alpha1.AccessToken{}, p.Namespace, "until").Spec.ExpirationTime; got == nil || got.UTC().Format(time.DateOnly) != "2091-01-01" && got.UTC().Format(time.DateOnly) != "2090-12-31" {
			t.Errorf("it expires %v, want the end of 2090", got)
		}
		s.Press("dialog", "I have kept it")
	})
}

// TestWhoMayNotMakeOneIsOfferedNone holds for those who may see, and for those who may not even do that.
func TestWhoMayNotMakeOneIsOfferedNone(t *testing.T) {
	t.Parallel()
	c := start(t)
	p := newProperty(t, newNamespace(t), "shop")
	create(t, &v1alpha1.APIKey{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: "server"}, Spec: v1alpha1.APIKeySpec{
		PropertyRef: v1alpha1.PropertyReference{Name: "shop"}, SHA256: strings.Repeat("0", 64), CreatedBy: "ada",
	}})
	onlooker, guest := "onlooker in "+p.Namespace, "guest in "+p.Namespace
	grant(t, "User", onlooker, p.Namespace, viewer...)
	grant(t, "User", guest, p.Namespace, "get properties")
	s := c.seat(t, onlooker, below(p)+"?view=access")
	s.Await("the key is listed", `document.querySelector('`+keysPanel+` tbody th')`)
	if got := s.Texts("main button:not(.sort)"); len(got) > 0 {
		t.Errorf("who may look is offered %q", got)
	}
	s.show(below(p) + "?view=overview")
	s.Appears(".empty", "You may not read this Property’s numbers.")
	s = c.seat(t, guest, below(p)+"?view=access")
	s.Appears(tokensPanel+" .empty", "You may not see the access tokens.")
	s.Appears(keysPanel+" .empty", "You may not see the API keys.")
}

// TestASecretIsNotLostByAccident holds while it is shown: the window does not close by itself, the way back leads nowhere, and the end of
// the session waits. Once it is closed, nothing brings the secret back.
func TestASecretIsNotLostByAccident(t *testing.T) {
	t.Parallel()
	c := start(t)
	p := newProperty(t, newNamespace(t), "shop")
	user := "maker in " + p.Namespace
	grant(t, "User", user, p.Namespace, editor...)
	s := c.seat(t, user, below(p)+"?view=rejections")
	s.Press("nav", "Keys and tokens")
	s.settle()
	s.fillIn(keysPanel, "server")
	s.Press(keysPanel, "Make the API key")
	secret := s.shown()
	still := func(what string) {
		t.Helper()
		s.Await("the secret is still shown after "+what, `document.querySelector('dialog[open] [data-secret]')?.innerText === '`+secret+`'`)
		if got, want := s.path(), below(p)+"?view=access"; got != want {
			t.Errorf("after %s the address is %s, want %s", what, got, want)
		}
	}
	for range 3 {
		s.Do(chromedp.KeyEvent(kb.Escape))
		s.Appears("dialog [role=alert]", "is gone from the page for good")
		still("Escape")
	}
	s.Do(chromedp.Evaluate[chromedp.Void](`history.back()`))
	still("the way back")
	if !chromium.Look[bool](s.Tab, `!dispatchEvent(new Event('beforeunload', {cancelable: true}))`) {
		t.Error("the browser does not ask whoever leaves")
	}
	c.endSessions()
	if got := chromium.Look[int](s.Tab, `fetch('access').then(({status}) => status)`); got != http.StatusUnauthorized {
		t.Fatalf("a session that has ended is answered %d", got)
	}
	asked := len(s.Requests())
	eventually(t, "the page asks again", func() bool { return len(s.Requests()) > asked+1 })
	still("the end of the session")

	s.Press("dialog", "I have kept it")
	s.Await("the page is there again, signed in anew", `document.querySelector('`+keysPanel+` tbody th') && !document.querySelector('dialog') && performance.getEntriesByName(location.origin + '`+below(p)+`session').length === 1`)
	s.settle()
	if got, want := s.path(), below(p)+"?view=access"; got != want {
		t.Errorf("after signing in again the address is %s, want %s", got, want)
	}
	if s.holds(secret) {
		t.Error("the secret is there again")
	}
	s.Do(chromedp.Evaluate[chromedp.Void](`history.back()`))
	s.settle()
	if s.holds(secret) {
		t.Error("the way back brings the secret again")
	}
}
