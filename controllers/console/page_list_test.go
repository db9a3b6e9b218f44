package console

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	chromium "github.com/weir-dev/weir/hack/browser"
)

// rows are the rows of a table on the page, cell by cell.
func (s *seat) rows(caption string) [][]string {
	return chromium.Look[[][]string](s.Tab, `[...document.querySelectorAll('.table[aria-label="`+caption+`"] tbody tr')].map((row) => [...row.cells].map((cell) => cell.innerText.trim()))`)
}

// column is one of a table's, from the top.
func (s *seat) column(caption string, index int) []string {
	var found []string
	for _, row := range s.rows(caption) {
		found = append(found, row[index])
	}
	return found
}

// inCurrency is an edit of a new Property.
func inCurrency(code string) func(*v1alpha1.Property) {
	return func(p *v1alpha1.Property) { p.Spec.Currency = code }
}

// ready reports a Property's condition Ready.
func ready(t *testing.T, p *v1alpha1.Property, status metav1.ConditionStatus, reason, message string) {
	t.Helper()
	report(t, p, &p.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionReady, Status: status, Reason: reason, Message: message})
}

// TestSomebodySeesTheirPropertiesAndWhatTheyAddUpTo is the way of a person from nothing to a Property's numbers.
func TestSomebodySeesTheirPropertiesAndWhatTheyAddUpTo(t *testing.T) {
	t.Parallel()
	c := start(t)
	own, others := newNamespace(t), newNamespace(t)
	shop, outlet := newProperty(t, own, "shop"), newProperty(t, own, "outlet", inCurrency("JPY"))
	newProperty(t, others, "hidden")
	looked := newProperty(t, others, "looked-at")
	user := "https://id.example.com#" + own
	grant(t, "User", user, own, editor...)
	grant(t, "User", user, others, "get properties looked-at")
	c.startPods(t, shop).sell("EUR", "49.90", "1234567.85", "0.1")
	c.startPods(t, outlet).sell("JPY", "1500")
	ready(t, shop, metav1.ConditionTrue, "Ready", "Everything is up to date.")
	ready(t, outlet, metav1.ConditionFalse, "RedisUnavailable", "Redis does not answer; it is tried again by itself.")
	ready(t, looked, metav1.ConditionTrue, "Ready", "Everything is up to date.")

	s := c.seat(t, user, "/?period=30d")
	if got := s.path(); got != "/?period=30d" {
		t.Errorf("after signing in the address is %s, want the wanted one", got)
	}
	s.Await("the list knows how the Properties are", `document.querySelectorAll('.list .tag.good').length === 2`)
	want := [][]string{
		{"outlet", own, "Not ready RedisUnavailable\n\nRedis does not answer; it is tried again by itself.", "1", "0", "0", "1", "JP¥1,500", "write"},
		{"shop", own, "Ready", "3", "0", "0", "3", "€1,234,617.85", "write"},
		{"looked-at", others, "Ready", "–", "–", "–", "–", "–", "–"},
	}
	slices.SortFunc(want, func(a, b []string) int { return strings.Compare(a[1]+"/"+a[0], b[1]+"/"+b[0]) })
	if diff := cmp.Diff(want, s.rows("Properties")); diff != "" {
		t.Errorf("the Properties (-want +got):\n%s", diff)
	}
	totals := [][]string{{"EUR", "1", "0", "0", "3", "€1,234,617.85"}, {"JPY", "1", "0", "0", "1", "JP¥1,500"}}
	if diff := cmp.Diff(totals, s.rows("Totals by currency")); diff != "" {
		t.Errorf("the totals (-want +got):\n%s", diff)
	}

	s.Press(".list tbody", "shop")
	s.settle()
	if got, want := s.path(), below(shop)+"?view=overview&period=30d"; got != want {
		t.Errorf("the Property's page is %s, want %s", got, want)
	}
	s.Appears(".property", own+" / shop")
	s.Appears(".stat", "€1,234,617.85")
	s.Appears(".who", user)
	s.Press(".top", "All Properties")
	s.Appears("h1", "Properties")
}

// TestTheListIsSearchedAndSortedByItsAddress holds that a link shows the same.
func TestTheListIsSearchedAndSortedByItsAddress(t *testing.T) {
	t.Parallel()
	c := start(t)
	namespace := newNamespace(t)
	user := "user of " + namespace
	grant(t, "User", user, namespace, viewer...)
	for _, name := range []string{"alpha", "beta", "gamma-shop"} {
		newProperty(t, namespace, name)
	}
	s := c.seat(t, user, "/")
	s.Press(".list thead", "Property")
	s.Press(".list thead", "Property")
	s.Await("the address has the order", `location.search === '?sort=-property'`)
	if got, want := s.column("Properties", 0), []string{"gamma-shop", "beta", "alpha"}; !slices.Equal(got, want) {
		t.Errorf("sorted by name, backwards: got %q, want %q", got, want)
	}
	s.Do(chromedp.Focus(chromedp.CSS(".search")), chromedp.KeyEvent("A "+namespace))
	s.Await("the address has what is searched for", `new URLSearchParams(location.search).get('q') === 'A `+namespace+`'`)
	s.show("/?sort=property&q=TA")
	if got, want := s.column("Properties", 0), []string{"beta"}; !slices.Equal(got, want) {
		t.Errorf("searched for TA: got %q, want %q", got, want)
	}
	s.Appears(".list .note", "1 of 3")
	s.show("/?q=nothing")
	s.Press(".list", "Show all 3")
	s.Await("all are there", `document.querySelectorAll('.list tbody tr').length === 3 && location.search === ''`)
	s.Press(".bar", "30 days")
	s.Await("the address has the period", `location.search === '?period=30d'`)

	for query, want := range map[string]string{"?period=forever": ".failure code", "?sort=weather": "main .notice", "?perod=7d": "main .notice"} {
		s.show("/" + query)
		s.Appears(want, "per"[:0])
		s.Press("main", "Leave")
		s.settle()
		if left := s.Texts(".failure, main .view > .notice"); len(left) > 0 {
			t.Errorf("%s: when that is left out the page says %q", query, left)
		}
	}
}

// TestWhatCannotBeReadIsSaid holds for pods that do not answer, answer nonsense, or come later.
func TestWhatCannotBeReadIsSaid(t *testing.T) {
	t.Parallel()
	c := start(t)
	namespace := newNamespace(t)
	user := "user of " + namespace
	grant(t, "User", user, namespace, editor...)
	newProperty(t, namespace, "silent")
	nonsense := newProperty(t, namespace, "nonsense")
	pods := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, `<script>window.owned = 1</script>`)
	}))
	t.Cleanup(pods.Close)
	c.serve(nonsense, pods.Listener.Addr().String())
	s := c.seat(t, user, "/")
	s.Appears(".notice.warn", "The figures of 2 Properties could not be read")
	if got, want := s.column("Properties", 2), []string{
		"Not known yet\n\nNo figures The Property's query pods answer nonsense.", "Not known yet\n\nNo figures The Property's query pods do not answer.",
	}; !slices.Equal(got, want) {
		t.Errorf("the states are %q, want %q", got, want)
	}
	s.show(below(nonsense))
	s.Appears(".failure", "")
	if found := s.Injected(); len(found) > 0 {
		t.Errorf("on a page of hostile pods: %q", found)
	}
}

// TestWhoMaySeeNothingIsToldWhatToAskFor is also what whoever has just been made known to the provider sees.
func TestWhoMaySeeNothingIsToldWhatToAskFor(t *testing.T) {
	t.Parallel()
	c := start(t)
	p := newProperty(t, newNamespace(t), "shop")
	s := c.seat(t, "nobody", "/")
	s.Appears(".empty", "You may see no Property.")
	s.Appears(".empty", "You are signed in as nobody.")
	s.Do(chromedp.Navigate(c.url + below(p)))
	s.Appears(".empty", "Property not found.")
	s.Press(".empty", "All Properties")
	s.Appears(".empty", "You may see no Property.")
}

// TestAThousandPropertiesAreListed holds that the list stays quick.
func TestAThousandPropertiesAreListed(t *testing.T) {
	t.Parallel()
	c := start(t)
	namespace, user := newNamespace(t), "user of a thousand"
	grant(t, "User", user, namespace, viewer...)
	const many = 1000
	for i := range many {
		create(t, &v1alpha1.Property{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("shop-%d", i)}, Spec: v1alpha1.PropertySpec{Currency: "EUR"}})
	}
	s := c.seat(t, user, "/?rows=all")
	for s.Await("the list is there", `document.querySelector('.list tbody tr')`); len(s.column("Properties", 0)) < many; { // the console's cache may be behind
		s.Press(".bar", "Refresh")
		s.settle()
	}
	s.Do(chromedp.Evaluate[chromedp.Void](`window.longest = 0;
		new PerformanceObserver((list) => { for (const {duration} of list.getEntries()) window.longest = Math.max(window.longest, duration); }).observe({type: 'longtask'});`))
	s.Press(".list thead", "Property")
	s.Press(".list thead", "Property")
	s.Await("it is sorted", `document.querySelector('.list tbody th').innerText === 'shop-999'`)
	s.Do(chromedp.Focus(chromedp.CSS(".search")), chromedp.KeyEvent("shop-77"))
	s.Await("it is searched", `document.querySelectorAll('.list tbody tr').length === 11`)
	longest := chromium.Look[float64](s.Tab, `new Promise((done) => setTimeout(() => done(window.longest), 200))`)
	t.Logf("the longest task took %.0f ms (0: none took 50)", longest)
	if longest > 2000 { // 100 ms on an idle machine
		t.Errorf("a task took %.0f ms", longest)
	}
	s.show("/")
	if got := len(s.column("Properties", 0)); got != 100 {
		t.Errorf("%d Properties are listed at first, want 100", got)
	}
}

// TestTheListIsAskedForAgain holds that the figures do not stand still.
func TestTheListIsAskedForAgain(t *testing.T) {
	t.Parallel()
	c := start(t)
	namespace := newNamespace(t)
	user := "user of " + namespace
	grant(t, "User", user, namespace, editor...)
	pods := c.startPods(t, newProperty(t, namespace, "shop"))
	s := c.seat(t, user, "/")
	if got := s.column("Properties", 6); !slices.Equal(got, []string{"0"}) {
		t.Fatalf("purchases: %q", got)
	}
	pods.sell("EUR", "10")
	deadline := time.Now().Add(30 * time.Second)
	for !slices.Equal(s.column("Properties", 6), []string{"1"}) {
		if time.Now().After(deadline) {
			t.Fatal("the purchase is not in the list within half a minute")
		}
		s.Press(".bar", "Refresh")
		s.settle()
	}
}
