package browser

import (
	"encoding/json"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// Appears waits until an element with such a text is there.
func (p *Tab) Appears(selector, text string) {
	p.t.Helper()
	p.Await(selector+" says "+Quote(text),
		`[...document.querySelectorAll(`+Quote(selector)+`)].some((node) => node.innerText.includes(`+Quote(text)+`))`)
}

// Press clicks on the first button or link, within what the selector finds, whose text begins so.
func (p *Tab) Press(within, text string) {
	p.t.Helper()
	p.Await(within+" has a button "+Quote(text), `[...document.querySelectorAll(`+Quote(within)+`)].flatMap((node) => [...node.querySelectorAll('a, button, summary')])
		.some((node) => node.innerText.trim().startsWith(`+Quote(text)+`) && !node.disabled && (node.click(), true))`)
}

// Texts are the texts of what a selector finds, as they are seen.
func (p *Tab) Texts(selector string) []string {
	p.t.Helper()
	return Look[[]string](p, `[...document.querySelectorAll(`+Quote(selector)+`)].map((node) => node.innerText.trim())`)
}

// Quote writes a string of JavaScript.
func Quote(text string) string {
	quoted, _ := json.Marshal(text) // a string has no error
	return string(quoted)
}

// markReachable marks everything that somebody can do something with, and says how much that is.
const markReachable = `(() => {
  const all = [...document.querySelectorAll('a[href], button, select, input, summary, [tabindex="0"]')]
    .filter((node) => node.tabIndex >= 0 && !node.disabled && node.checkVisibility({visibilityProperty: true}));
  all.forEach((node) => { node.dataset.unreached = ''; });
  document.activeElement.blur();
  return all.length;
})()`

// unreached says what is left, after what has the focus has been taken note of.
const unreached = `(() => {
  delete document.activeElement.dataset.unreached;
  return [...document.querySelectorAll('[data-unreached]')].map((node) => node.outerHTML.slice(0, 120));
})()`

// Unreached presses the Tab key until everything should have had the focus, and returns what has not.
func (p *Tab) Unreached() []string {
	p.t.Helper()
	var left []string
	for range Look[int](p, markReachable) + 1 {
		p.Do(chromedp.KeyEvent(kb.Tab))
		left = Look[[]string](p, unreached)
	}
	return left
}

// overflow says what of a page is wider than the screen.
const overflow = `(() => {
  const ancestors = function* (node) { while ((node = node.parentElement)) if (node !== document.body) yield node; };
  return document.documentElement.scrollWidth <= innerWidth ? [] : ['the page', ...[...document.querySelectorAll('body *')].filter((node) => node.checkVisibility() && !node.closest('svg')
    && node.getBoundingClientRect().right > innerWidth + 1 && ![...ancestors(node)].some((box) => /auto|scroll|hidden/.test(getComputedStyle(box).overflowX)))
    .map((node) => node.outerHTML.slice(0, 120))];
})()`

// Overflow returns what of the page is wider than the screen.
func (p *Tab) Overflow() []string {
	p.t.Helper()
	return Look[[]string](p, overflow)
}

// Injected returns what of the page can only come from a text that has become more than text. A page's hostile texts are to set
// window.owned where they are run.
func (p *Tab) Injected() []string {
	p.t.Helper()
	var found []string
	for what, expression := range map[string]string{
		"a script has run":                  `window.owned !== undefined`,
		"there is an element of a sender":   `document.querySelector('#app script, #app svg[onload], #app img:not([src="static/icon.svg"]), #app iframe') !== null`,
		"there is a link of a sender":       `[...document.querySelectorAll('a')].some((link) => link.origin !== location.origin)`,
		"the page is wider than the screen": `document.documentElement.scrollWidth > innerWidth`,
	} {
		if Look[bool](p, expression) {
			found = append(found, what)
		}
	}
	return found
}
