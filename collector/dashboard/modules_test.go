package dashboard_test

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/dashboard"
	"github.com/weir-dev/weir/hack/browser"
)

// serve serves the page's files alone: there is nobody who says whether one may see anything.
func serve(t *testing.T) *httptest.Server {
	t.Helper()
	files, err := dashboard.New()
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /{$}", files.Shell())
	for name, file := range files.Static() {
		mux.Handle("GET /static/"+name, file)
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server
}

// text is a file of the page's.
func text(t *testing.T, file http.Handler) string {
	t.Helper()
	answer := httptest.NewRecorder()
	file.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/", nil))
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

var (
	imports  = regexp.MustCompile(`(?m)(?:^import|^export|^\} from|^  \w.* from)[^'\n]*'(\.[^']+)'`)
	later    = regexp.MustCompile(`import\('(\.[^']+)'\)`)
	preloads = regexp.MustCompile(`<link rel="modulepreload" href="static/([^"]+)">`)
	scripts  = regexp.MustCompile(`<script type="module" src="static/([^"]+)">`)
)

// imported are the modules that a module needs, and those that these need; found in their texts by an expression for imports.
func imported(t *testing.T, static map[string]http.Handler, module string, statement *regexp.Regexp) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for open := []string{module}; len(open) > 0; {
		name := open[0]
		open = open[1:]
		if static[name] == nil {
			t.Fatalf("a module imports %s, which there is not", name)
		}
		for _, found := range statement.FindAllStringSubmatch(text(t, static[name]), -1) {
			if to := path.Join(path.Dir(name), found[1]); !all[to] {
				all[to] = true
				open = append(open, to)
			}
		}
	}
	return all
}

// TestEachShellNamesItsModules holds that a browser asks for all modules at once rather than for each when another names it; but for
// those that are loaded when somebody opens what they show.
func TestEachShellNamesItsModules(t *testing.T) {
	files, err := dashboard.New()
	if err != nil {
		t.Fatal(err)
	}
	static := maps.Collect(files.Static())
	used := map[string]bool{}
	for name, shell := range map[string]http.Handler{"the property's page": files.Shell(), "the console": files.Console()} {
		script := scripts.FindStringSubmatch(text(t, shell))[1]
		want := imported(t, static, script, imports)
		var got []string
		for _, found := range preloads.FindAllStringSubmatch(text(t, shell), -1) {
			got = append(got, found[1])
		}
		if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(slices.Values(got))); diff != "" {
			t.Errorf("%s: the shell's modulepreload links (-want +got):\n%s", name, diff)
		}
		used[script] = true
		maps.Copy(used, want)
	}
	for module := range maps.Clone(used) {
		for _, found := range later.FindAllStringSubmatch(text(t, static[module]), -1) {
			to := path.Join(path.Dir(module), found[1])
			used[to] = true
			maps.Copy(used, imported(t, static, to, imports))
		}
	}
	for name := range static {
		if strings.HasSuffix(name, ".js") && !used[name] {
			t.Errorf("no module imports %s", name)
		}
	}
}

// TestThePagesOwnModulesMakeNoHTMLOfTexts holds the rule by which nothing that an event says becomes HTML.
func TestThePagesOwnModulesMakeNoHTMLOfTexts(t *testing.T) {
	files, err := dashboard.New()
	if err != nil {
		t.Fatal(err)
	}
	for name, file := range files.Static() {
		if !strings.HasSuffix(name, ".js") || strings.HasPrefix(name, "packages/") {
			continue
		}
		for _, breach := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "localStorage", "sessionStorage"} {
			if strings.Contains(text(t, file), breach) {
				t.Errorf("%s holds %s", name, breach)
			}
		}
	}
}

// TestWhatThePageComputes runs the page's pure functions in the browser, each as JSON.
func TestWhatThePageComputes(t *testing.T) {
	server := serve(t)
	tab := browser.Open(t, browser.Options{})
	tab.Do(chromedp.Navigate(server.URL))
	browser.Look[bool](tab, `(async () => {
  const [format, period, state, steps, table, chart, attribution, list, feed, detail, deliveries, compare, number, grid, rows, expiry] = await Promise.all(['kit/format', 'kit/period', 'kit/state',
    'views/steps', 'kit/table', 'kit/chart', 'views/attribution', 'views/events/window', 'views/events/feed', 'views/events/detail', 'views/deliveries',
    'kit/compare', 'kit/number', 'views/events/list', 'console/rows', 'views/access/expiry'].map((name) => import('./static/' + name + '.js')));
  const on = (text) => new URLSearchParams(text);
  const at = (text) => new Date(text);
  // The hours of some time, and beside each what it is compared with, by the wall's clock there.
  const hours = (from, count) => Array.from({length: count}, (_, i) => ({from: new Date(Date.parse(from) + i * 3600000).toISOString()}));
  const paired = (from, count, earlier, many, zone) => {
    const [now, then, wall] = [hours(from, count), hours(earlier, many), format.times(zone)];
    const beside = compare.before(now, then, 'hour', zone);
    return format.bucketNames(now, 'hour', wall).map((name, i) => name.slice(4) + ' | ' + (beside[i] ? wall.minute(beside[i].from).slice(0, 18) : '-'));
  };
  Object.assign(window, {format, period, state, steps, table, chart, attribution, list, feed, detail, deliveries, compare, number, grid, rows, expiry, on, at, hours, paired});
  return true;
})()`)
	for name, c := range map[string]struct{ expression, want string }{
		"a number has its thousands apart":                          {`format.count(1234567)`, `"1,234,567"`},
		"a credit keeps its decimals":                               {`format.count(385.333333)`, `"385.333333"`},
		"no number is a dash":                                       {`[format.count(null), format.money(null, 'EUR'), format.percent(null), format.duration(null), format.change(null)]`, `["–","–","–","–","–"]`},
		"nothing is a number":                                       {`[format.count(0), format.money(0, 'EUR'), format.percent(0)]`, `["0","€0.00","0%"]`},
		"money has its currency's decimals":                         {`[format.money(4381.2, 'EUR'), format.money(500, 'JPY'), format.money(1.5, 'KWD')]`, "[\"€4,381.20\",\"JP¥500\",\"KWD\u00a01.500\"]"},
		"money keeps the decimals that it has":                      {`format.money(0.1234, 'EUR')`, `"€0.1234"`},
		"money is exact up to a hundredth of ten trillion":          {`format.money(JSON.parse('9999999999999.99'), 'EUR')`, `"€9,999,999,999,999.99"`},
		"money is exact with four decimals up to a hundred billion": {`format.money(JSON.parse('99999999999.9999'), 'EUR')`, `"€99,999,999,999.9999"`},
		"money below nothing has its sign before":                   {`format.money(-18.8, 'EUR')`, `"-€18.80"`},
		"what is no currency to the browser is shown all the same":  {`format.money(2, '<b>')`, `"2 <b>"`},
		"a rate is a percentage":                                    {`[format.percent(0.0561), format.percent(1), format.percent(0.00005)]`, `["5.61%","100%","0.01%"]`},
		"a change has its sign":                                     {`[format.change(0.1234), format.change(-0.5), format.change(0), format.change(12)]`, `["+12.3%","-50%","0%","+1,200%"]`},
		"a length of time has two units":                            {`[0.25, 59.94, 95, 3600, 5400, 90061].map(format.duration)`, `["250 ms","59.9 s","1 min 35 s","1 h","1 h 30 min","1 d 1 h"]`},
		"a time is the Property's":                                  {`format.times('Asia/Tokyo').moment('2026-11-20T23:30:05.125Z')`, `"21 Nov 2026, 08:30:05"`},
		"an hour is of its day":                                     {`format.bucketName({from: '2026-11-19T23:00:00Z'}, 'hour', format.times('Europe/Berlin'))`, `"Fri 20 Nov, 00:00"`},
		"a week is named by its first day":                          {`format.bucketName({from: '2026-11-15T23:00:00Z'}, 'week', format.times('Europe/Berlin'))`, `"Week of 16 Nov 2026"`},
		"a month is named":                                          {`format.bucketName({from: '2026-10-31T23:00:00Z'}, 'month', format.times('Europe/Berlin'))`, `"November 2026"`},
		"today is the Property's":                                   {`period.periodParams(on('period=today'), 'Pacific/Kiritimati', at('2026-11-20T11:00:00Z'))`, `[["from","2026-11-21"]]`},
		"yesterday is a whole day, also over the year":              {`period.periodParams(on('period=yesterday'), 'Europe/Berlin', at('2026-01-01T12:00:00Z'))`, `[["from","2025-12-31"],["to","2025-12-31"]]`},
		"the last seven days are local days, today among them":      {`period.periodParams(on('period=7d'), 'Europe/Berlin', at('2026-11-20T23:30:00Z'))`, `[["from","2026-11-15"]]`},
		"without a period it is thirty days":                        {`period.periodParams(on(''), 'UTC', at('2026-03-01T00:00:00Z'))`, `[["from","2026-01-31"]]`},
		"a view may have a period of its own":                       {`period.periodParams(on(''), 'UTC', at('2026-03-01T00:00:00Z'), '24h')`, `[["period","24h"]]`},
		"this month begins with its first day":                      {`period.periodParams(on('period=month'), 'UTC', at('2026-03-01T00:00:00Z'))`, `[["from","2026-03-01"]]`},
		"from and to are taken as they are, and win":                {`period.periodParams(on('period=7d&from=2026-11-01&to=2026-11-02'), 'UTC', at('2026-11-20T00:00:00Z'))`, `[["from","2026-11-01"],["to","2026-11-02"]]`},
		"what is no period is left to the API":                      {`period.periodParams(on('period=99x'), 'UTC', at('2026-11-20T00:00:00Z'))`, `[["period","99x"]]`},
		"a day is drawn by hours, a month by days, a year by weeks": {
			`[[['period','24h']], [['from','2026-11-20'],['to','2026-11-20']], [['from','2026-10-22']], [['from','2026-01-01'],['to','2026-12-31']]].map((p) => period.intervalFor(p, at('2026-11-20T12:00:00Z')))`,
			`["hour","hour","day","week"]`},
		"the address names the view and its parameters": {`(({view, params}) => [view, ...params])(state.readSearch('?view=funnel&steps=a&steps=b%7Cc&channel=Email'))`, `["funnel",["steps","a"],["steps","b|c"],["channel","Email"]]`},
		"an address is read as it was written":          {`state.readSearch(state.writeSearch('events', on([['page', '/a?&=+ %'], ['event', 'ü|x']]))).params.getAll('page')`, `["/a?&=+ %"]`},
		"a change replaces all values of a parameter":   {`state.changed(on('a=1&a=2&b=3&c=4'), {a: ['5', '6'], b: null}).toString()`, `"c=4&a=5&a=6"`},
		"another view keeps period and filters alone":   {`state.shared(on('period=7d&steps=a&channel=Email&measure=revenue&page=%2F')).toString()`, `"period=7d&channel=Email&page=%2F"`},
		"a step is one event or several":                {`[steps.readStep('pageview'), steps.readStep('a|b'), steps.readStep('a\\|b\\\\|c'), steps.readStep('a\\b')]`, `[["pageview"],["a","b"],["a|b\\","c"],["a\\b"]]`},
		"a step is read as it was written":              {`steps.readStep(steps.writeStep(['a|b', 'c\\', '\\|', 'd']))`, `["a|b","c\\","\\|","d"]`},
		"a step changes its place":                      {`[steps.moved(['a','b','c'], 0, 2), steps.moved(['a','b','c'], 2, 0)]`, `[["b","c","a"],["c","a","b"]]`},
		"rows without a value are last whichever way":   {`['ascending', 'descending'].map((way) => table.sorted([{n: 2}, {n: null}, {n: 10}], ({n}) => n, way).map(({n}) => n))`, `[[2,10,null],[10,2,null]]`},
		"texts are sorted by their alphabet":            {`table.sorted(['b', 'a', 'C'], (text) => text, 'ascending')`, `["a","b","C"]`},
		"an hour that there is twice has its offset, and its second nothing beside it": {`paired('2026-10-24T22:00:00Z', 25, '2026-10-23T22:00:00Z', 24, 'Europe/Berlin').slice(1, 5)`,
			`["25 Oct, 01:00 | 24 Oct 2026, 01:00","25 Oct, 02:00 CEST | 24 Oct 2026, 02:00","25 Oct, 02:00 CET | -","25 Oct, 03:00 | 24 Oct 2026, 03:00"]`},
		"an hour that there is twice, elsewhere": {`paired('2026-11-01T04:00:00Z', 25, '2026-10-31T04:00:00Z', 24, 'America/New_York').slice(0, 4)`,
			`["1 Nov, 00:00 | 31 Oct 2026, 00:00","1 Nov, 01:00 GMT-4 | 31 Oct 2026, 01:00","1 Nov, 01:00 GMT-5 | -","1 Nov, 02:00 | 31 Oct 2026, 02:00"]`},
		"an hour that there is not moves none after it": {`paired('2026-03-28T23:00:00Z', 23, '2026-03-27T23:00:00Z', 24, 'Europe/Berlin').slice(1, 3)`,
			`["29 Mar, 01:00 | 28 Mar 2026, 01:00","29 Mar, 03:00 | 28 Mar 2026, 03:00"]`},
		"an hour that the day before did not have stands alone": {`paired('2026-03-29T22:00:00Z', 24, '2026-03-28T23:00:00Z', 23, 'Europe/Berlin').slice(1, 4)`,
			`["30 Mar, 01:00 | 29 Mar 2026, 01:00","30 Mar, 02:00 | -","30 Mar, 03:00 | 29 Mar 2026, 03:00"]`},
		"of an hour that the day before had twice the first is compared": {`paired('2026-10-25T23:00:00Z', 24, '2026-10-24T22:00:00Z', 25, 'Europe/Berlin').slice(2, 4)
        .concat(compare.before(hours('2026-10-25T23:00:00Z', 24), hours('2026-10-24T22:00:00Z', 25), 'hour', 'Europe/Berlin')[2].from)`,
			`["26 Oct, 02:00 | 25 Oct 2026, 02:00","26 Oct, 03:00 | 25 Oct 2026, 03:00","2026-10-25T00:00:00.000Z"]`},
		"twenty-four hours that begin at any time go by the clock, too": {`paired('2026-10-25T10:17:00Z', 24, '2026-10-24T10:17:00Z', 24, 'Europe/Berlin').slice(0, 2)`,
			`["25 Oct, 11:17 | -","25 Oct, 12:17 | 24 Oct 2026, 12:17"]`},
		"periods that are not days apart go by their order": {`paired('2026-11-20T12:00:00Z', 3, '2026-11-20T09:00:00Z', 3, 'UTC')`,
			`["20 Nov, 12:00 | 20 Nov 2026, 09:00","20 Nov, 13:00 | 20 Nov 2026, 10:00","20 Nov, 14:00 | 20 Nov 2026, 11:00"]`},
		"weeks go by their order":                {`compare.before([{from: '2026-11-16T00:00:00Z'}], [{from: '2026-10-20T00:00:00Z'}], 'week', 'UTC')`, `[{"from":"2026-10-20T00:00:00Z"}]`},
		"days are compared where there are none": {`[compare.before([], [], 'day', 'UTC'), compare.before([{from: '2026-11-16T00:00:00Z'}], [], 'day', 'UTC')]`, `[[],[null]]`},
		"money keeps each digit that the API writes": {`['9999999999999999.99', '-12345678901234567890.1234', '100.1'].map((text) => format.money(number.readJSON('{"revenue":' + text + '}').revenue, 'EUR'))`,
			`["€9,999,999,999,999,999.99","-€12,345,678,901,234,567,890.1234","€100.10"]`},
		"what is read is written again": {`[JSON.stringify(number.readJSON('[ 12345678901234567.89, {"n":1.5,"s":":12345678901234567.89"}]'))]`,
			`["[12345678901234567.89,{\"n\":1.5,\"s\":\":12345678901234567.89\"}]"]`},
		"a number is Exact only where it has to be": {`number.readJSON('[0.1234567890123456,1234567890.123456,12345678901234567,null]').map((value) => value instanceof number.Exact)`, `[false,false,true,false]`},
		"exact numbers are sorted as numbers":       {`table.sorted(number.readJSON('[2,12345678901234567.89,3]'), (n) => n, 'ascending').map(Number)`, `[2,3,12345678901234568]`},
		"an event's exact number is one member":     {`detail.membersOf(number.readJSON('{"value":12345678901234567.89}'))`, `[["value","12345678901234567.89"]]`},
		"the keyboard's event is found wherever it is": {`[0, 2].map((index) => grid.placeOf(['b', 'c', 'a'].map((event_id) => ({event_id, received_at: 't'})), {index, event: {event_id: 'a', received_at: 't'}}))
        .concat(grid.placeOf([], {index: 4, event: {event_id: 'a', received_at: 't'}}), grid.placeOf([], {index: 0, event: null}))`, `[2,2,0,0]`},
		"parameters that nobody knows are named": {`state.unknown(on('period=7d&chanel=a&chanel=b&page=%2F&steps=a&x='), ['steps'])`, `["chanel","x"]`},
		"of two views the first is the one":      {`(({view, views}) => [view, views])(state.readSearch('?view=funnel&view=events'))`, `["funnel",["funnel","events"]]`},
		"stacked series stand on each other":     {`chart.stacked([[1, null], [2, 3]])`, `[[1,0],[3,3]]`},
		"of a long list there are the rows around what is seen": {
			`[[3400, 1000], [0, 1000], [33660, 1000], [0, 5]].map(([top, count]) => list.windowOf(top, 340, 34, count))`,
			`[[88,122,34],[0,34,34],[966,1000,34],[0,5,34]]`},
		"what is new waits beside the list, and what is listed is brought up to date": {
			`(({rows, fresh, gap}) => [rows.map(({n}) => n), fresh.map(({n}) => n), gap])(feed.refreshed(
        {rows: [{event_id: 'b', n: 1}, {event_id: 'a', n: 2}]}, {data: [{event_id: 'c', n: 3}, {event_id: 'b', n: 4}], next_cursor: 'x'}))`,
			`[[4,2],[3],false]`},
		"where nothing listed is among the newest there is a gap": {
			`(({fresh, gap}) => [fresh.length, gap])(feed.refreshed({rows: [{event_id: 'a'}]}, {data: [{event_id: 'c'}], next_cursor: 'x'}))`, `[1,true]`},
		"a member of an event has its path, and what says nothing is left out": {
			`detail.membersOf({event: 'x', value: null, delivery: [1], contents: [], data: {ids: [1], deep: {a: false}}})`,
			`[["event","x"],["data.ids","[1]"],["data.deep.a","false"]]`},
		"a platform that was removed has a card while it has deliveries": {
			`deliveries.cardsOf([{platform: 'a'}], [{platform: 'b'}]).map(({name, platform, totals}) => [name, platform !== null, totals !== null])`,
			`[["a",true,false],["b",false,true]]`},
		"a sort is read as it was written": {
			`['revenue', '-revenue', 'weather', '-', '', '__proto__', null].map(rows.readSort).map((by) => by && rows.writeSort(by))`, `["revenue","-revenue",null,null,null,null,null]`},
		"amounts are sorted within their currency, and what has none is last": {
			`['revenue', '-revenue'].map((by) => rows.inOrder([['a', 'JPY', 500], ['b', 'EUR', 2], ['c', 'EUR', null], ['d', 'EUR', 10]]
        .map(([property, currency, revenue]) => ({property, currency, figures: revenue && {revenue}})), rows.readSort(by)).map(({property}) => property).join(''))`, `["bdac","dbac"]`},
		"what is not ready is first": {
			`rows.inOrder(['True', 'Unknown', 'False', 'True'].map((ready, i) => ({ready, i})), rows.readSort('ready')).map(({i}) => i)`, `[2,1,0,3]`},
		"without a sort the order is the server's": {`rows.inOrder([{property: 'b'}, {property: 'a'}], rows.readSort('')).map(({property}) => property)`, `["b","a"]`},
		"each word is part of the name or the namespace": {
			`['', 'SHOP', 'shop brand-b', 'nd-a/sh', 'x', '*', '('].map((text) => rows.matching([['brand-a', 'shop'], ['brand-b', 'shop'], ['brand-b', 'blog']]
        .map(([namespace, property]) => ({namespace, property})), text).length)`, `[3,2,1,1,0,0,0]`},
		"a key is valid for so many days from now": {`expiry.expiry('7', '', 'Europe/Berlin', at('2026-11-20T12:00:00.125Z'))`, `"2026-11-27T12:00:00Z"`},
		"a key without an end has none":            {`expiry.expiry('never', '', 'UTC', at('2026-11-20T12:00:00Z'))`, `null`},
		"a key is valid until a day is over": {
			`[['2026-11-20', 'Europe/Berlin'], ['2026-12-31', 'UTC'], ['2026-03-29', 'Europe/Berlin'], ['2026-10-25', 'Europe/Berlin'], ['2026-11-20', 'Pacific/Kiritimati'], ['2026-11-20', 'America/St_Johns']]
        .map(([date, zone]) => expiry.expiry('date', date, zone, at('2026-01-01T00:00:00Z')))`,
			`["2026-11-20T23:00:00Z","2027-01-01T00:00:00Z","2026-03-29T22:00:00Z","2026-10-25T23:00:00Z","2026-11-20T10:00:00Z","2026-11-21T03:30:00Z"]`},
		"models stand side by side by name": {
			`attribution.merged([{results: [{channel: 'A', conversions: 2}]}, {results: [{channel: 'B', conversions: 1}, {channel: 'A', conversions: 1}]}, {results: []}], 'channel')
        .map(({name, models}) => [name, ...models.map((model) => model && model.conversions)])`,
			`[["B",null,1,null],["A",2,1,null]]`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := browser.Look[string](tab, "JSON.stringify("+c.expression+")"); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
