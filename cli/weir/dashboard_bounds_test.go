package main

import (
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/weir-dev/weir/hack/browser"
)

// maxFirstLoad bounds what a first visit fetches, in bytes as they travel.
const maxFirstLoad = 100_000

func itAsksNobodyElse(t *testing.T, d *dashboard) {
	tab := d.visit(browser.Options{}).Beside() // whoever has not come in yet is told so by a 401, which the console notes
	d.show(tab, "")
	for _, view := range views(t, tab) {
		d.show(tab, view)
	}
	d.storyOf(tab)
	tab.Press("dialog", "JSON")
	d.show(tab, "?view=deliveries&shadow=tiktok")
	own, err := url.Parse(d.Page)
	if err != nil {
		t.Fatal(err)
	}
	for _, request := range tab.Requests() {
		asked, err := url.Parse(request)
		if asked != nil && asked.Scheme == "data" { // the picture in the browser's own fields of dates
			continue
		}
		if err != nil || asked.Scheme != own.Scheme || asked.Host != own.Host || !strings.HasPrefix(asked.Path, own.Path) {
			t.Errorf("the page asks for %s, want nothing outside of %s", request, d.Page)
		}
	}
	if complaints := tab.Complaints(); len(complaints) > 0 {
		t.Errorf("the console says %q", complaints)
	}
}

func itsPolicyHolds(t *testing.T, d *dashboard) {
	tab := d.visit(browser.Options{})
	for name, attempt := range map[string]string{
		"a script in the page is not run": `new Promise((done) => {
			document.addEventListener('securitypolicyviolation', () => done(true), {once: true});
			const script = document.createElement('script');
			script.textContent = 'document.title = "run"';
			document.head.append(script);
			setTimeout(() => done(false), 2000);
		})`,
		"an attribute's script is not run": `new Promise((done) => {
			document.addEventListener('securitypolicyviolation', () => done(true), {once: true});
			document.body.insertAdjacentHTML('beforeend', '<img src="data:," onerror="document.title = 1">');
			setTimeout(() => done(false), 2000);
		})`,
		"another host is not asked":   `fetch('https://elsewhere.test/').then(() => false, () => true)`,
		"a text is not run as script": `(() => { const script = document.createElement('a'); script.setAttribute('onclick', 'document.title = "run"'); script.click(); return document.title !== 'run'; })()`,
	} {
		t.Run(name, func(t *testing.T) {
			if !browser.Look[bool](tab, attempt) {
				t.Error("the policy lets it happen")
			}
		})
	}
}

// firstLoad is what a first visit fetched, and when something stood on the screen.
type firstLoad struct {
	Bytes int
	Files []string
	Paint float64
}

func theFirstLoadIsSmallAndSoon(t *testing.T, d *dashboard) {
	tab := browser.Open(t, browser.Options{})
	tab.Do(chromedp.Navigate(d.Page), chromedp.WaitVisible(chromedp.CSS(".login button.main")))
	seen := browser.Look[firstLoad](tab, `(() => {
		const all = [performance.getEntriesByType('navigation')[0], ...performance.getEntriesByType('resource')].filter(({name}) => !name.endsWith('/session'));
		return {Bytes: all.reduce((sum, {encodedBodySize}) => sum + encodedBodySize, 0), Files: all.map(({name}) => name),
			Paint: performance.getEntriesByName('first-contentful-paint')[0].startTime};
	})()`)
	t.Logf("%d files with %d bytes, first contentful paint after %.0f ms", len(seen.Files), seen.Bytes, seen.Paint)
	if seen.Bytes > maxFirstLoad || seen.Bytes < 20_000 {
		t.Errorf("a first load fetches %d bytes, want at most %d: %s", seen.Bytes, maxFirstLoad, strings.Join(seen.Files, "\n"))
	}
	if seen.Paint > 5000 { // a second on an idle machine; tests run beside others
		t.Errorf("the first paint is after %.0f ms", seen.Paint)
	}
	tab.Press(".login", "Open")
	settle(tab)
	if late := browser.Look[[]string](tab, `performance.getEntriesByType('resource').map(({name}) => name).filter((name) => name.endsWith('.js'))`); len(late) == 0 ||
		len(late) != strings.Count(strings.Join(seen.Files, "\n"), ".js") {
		t.Errorf("modules are fetched late: %q", late)
	}
}

func tenThousandEventsAreListed(t *testing.T, d *dashboard) {
	const loaded, most = 10_000, 200
	tab := d.visit(browser.Options{})
	d.show(tab, "?view=events&period=30d")
	tab.Do(chromedp.Evaluate[chromedp.Void](`window.longest = 0; window.most = 0;
		new PerformanceObserver((list) => { for (const {duration} of list.getEntries()) window.longest = Math.max(window.longest, duration); }).observe({type: 'longtask'});
		new MutationObserver(() => { window.most = Math.max(window.most, document.querySelectorAll('.grid tr').length); })
			.observe(document.querySelector('.grid'), {childList: true, subtree: true});`))
	const known = `Math.round([...document.querySelectorAll('.grid tbody tr')].reduce((sum, row) => sum + row.offsetHeight, 0) / document.querySelector('.grid .row').offsetHeight)`
	await(t, "ten thousand events are loaded", func() bool {
		return browser.Look[int](tab, `(() => { const grid = document.querySelector('.grid'); grid.scrollTop = grid.scrollHeight; return `+known+`; })()`) >= loaded
	})
	for _, place := range []string{"0", "grid.scrollHeight / 2", "grid.scrollHeight"} { // and back and forth
		tab.Do(chromedp.Evaluate[chromedp.Void](`(() => { const grid = document.querySelector('.grid'); grid.scrollTop = ` + place + `; })()`))
		await(t, "there are rows where the list is scrolled to", func() bool {
			return browser.Look[bool](tab, `(() => { const box = document.querySelector('.grid').getBoundingClientRect();
				return document.elementFromPoint(box.left + 30, box.top + box.height / 2)?.closest('.row') !== null; })()`)
		})
	}
	if got := browser.Look[int](tab, `window.most`); got > most || got == 0 {
		t.Errorf("there were %d rows in the document, want at most %d", got, most)
	}
	longest := browser.Look[float64](tab, `window.longest`)
	t.Logf("%d events; %d rows at most; the longest task took %.0f ms (0: none took 50)", browser.Look[int](tab, known), browser.Look[int](tab, `window.most`), longest)
	if longest > 1000 { // 50 ms on an idle machine
		t.Errorf("a task took %.0f ms", longest)
	}
}
