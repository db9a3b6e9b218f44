package browser

import (
	"github.com/chromedp/chromedp"
)

// axe judges whether everybody can use a page.
var axe = Package{
	Name: "axe-core", Version: "4.14.1",
	Integrity: "sha512-FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ==",
}

// judge has axe judge the page by WCAG 2.2, levels A and AA, and by what its makers have found to be good.
const judge = `axe.run(document, {
  runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'], resultTypes: ['violations'],
}).then(({violations}) => violations.flatMap(({id, help, nodes}) =>
  nodes.map(({target, failureSummary}) => id + ': ' + help + ': ' + target.join(' ') + ': ' + failureSummary)))`

// Barriers are what keeps some people from using what the tab shows, as axe-core sees it: rule, element, and what is wrong.
func (p *Tab) Barriers() []string {
	p.t.Helper()
	p.Do(chromedp.Evaluate[chromedp.Void](axe.File(p.t, "axe.min.js")))
	return Look[[]string](p, judge)
}
