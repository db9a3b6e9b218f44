package dashboard_test

import (
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/weir-dev/weir/hack/browser"
)

// TestWhatSomebodyPointsAtStandsStill renders answers that come one after the other, as a view does that asks again and again.
func TestWhatSomebodyPointsAtStandsStill(t *testing.T) {
	server := serve(t)
	tab := browser.Open(t, browser.Options{})
	tab.Do(chromedp.Navigate(server.URL))
	browser.Look[bool](tab, `(async () => {
  const {html, render} = await import('./static/kit/html.js');
  const {useStill} = await import('./static/kit/live.js');
  const box = document.body.appendChild(document.createElement('div'));
  const Shown = ({data, question}) => {
    const [hold, shown] = useStill(data, question);
    return html`+"`<p id=\"shown\" ...${hold}>${shown} <button>b</button></p>`"+`;
  };
  const drawn = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  window.answer = async (data, question) => { render(html`+"`<${Shown} data=${data} question=${question} />`"+`, box); await drawn(); return seen(); };
  window.seen = () => document.querySelector('#shown').firstChild.data;
  window.does = async (type, target = '#shown') => {
    document.querySelector(target).dispatchEvent(new PointerEvent(type, {bubbles: type === 'focusin'}));
    await drawn();
    return seen();
  };
  return true;
})()`)
	for _, step := range []struct{ name, expression, want string }{
		{"the first answer is shown", `answer('one', 'q')`, "one"},
		{"and the next one", `answer('two', 'q')`, "two"},
		{"nothing changes when the pointer comes", `does('pointerenter')`, "two"},
		{"an answer that comes meanwhile waits", `answer('three', 'q')`, "two"},
		{"as does another", `answer('four', 'q')`, "two"},
		{"another question's answer is shown at once", `answer('five', 'r')`, "five"},
		{"whose next ones wait", `answer('six', 'r')`, "five"},
		{"the newest is shown when the pointer has left", `does('pointerleave')`, "six"},
		{"and what comes from then on", `answer('seven', 'r')`, "seven"},
	} {
		if got := browser.Look[string](tab, step.expression); got != step.want {
			t.Errorf("%s: got %q, want %q", step.name, got, step.want)
		}
	}
	// The keyboard holds what is shown just as the pointer does.
	tab.Do(chromedp.Focus(chromedp.CSS("#shown button")))
	if got := browser.Look[string](tab, `answer('eight', 'r')`); got != "seven" {
		t.Errorf("with the focus in it: got %q, want seven", got)
	}
}
