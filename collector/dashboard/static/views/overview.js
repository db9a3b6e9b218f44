/** The key figures of a period, how they changed, when, and by what. */
import { html, useMemo } from '../kit/html.js';
import { useApi } from '../kit/api.js';
import { Chart } from '../kit/chart.js';
import { Answer, AsOf, Choice, Empty, Failure, Incomplete, Panel, Stat, later, useProperty } from '../kit/components.js';
import { FilterBy, Filters, PeriodPicker, usePeriod } from '../kit/controls.js';
import { before } from '../kit/compare.js';
import { bucketNames, compact, count, money, percent } from '../kit/format.js';
import { useStill } from '../kit/live.js';
import { intervalFor } from '../kit/period.js';
import { filterParams, useLocation } from '../kit/state.js';
import { CsvButton, Few, Part, Table, useFew } from '../kit/table.js';
import { Realtime } from './realtime.js';

/** The figures, in the order in which they stand; how each is written follows from its kind. */
const MEASURES = {
  unique_visitors: { label: 'Visitors', kind: 'count' },
  pageviews: { label: 'Page views', kind: 'count' },
  events: { label: 'Events', kind: 'count' },
  add_to_carts: { label: 'Added to cart', kind: 'count' },
  purchases: { label: 'Purchases', kind: 'count' },
  revenue: { label: 'Revenue', kind: 'money' },
  average_order_value: { label: 'Average order', kind: 'money' },
  conversion_rate: { label: 'Conversion rate', kind: 'rate' },
  refunds: { label: 'Refunds', kind: 'count', upIsBad: true },
};

/** How a figure of a kind is written. @param {string} kind @param {string} currency */
const writer = (kind, currency) => ({ count, rate: percent, money: (amount) => money(amount, currency) })[kind];

const REFRESH = 60000;

export function Overview() {
  const { params } = useLocation();
  const period = usePeriod();
  const question = useMemo(() => [...period, ...filterParams(params)], [period, params]);
  const summary = useApi('analytics/summary', [...question, ['compare', 'previous']], { every: REFRESH });
  const bar = html`<div class="bar"><${PeriodPicker} /><${Filters} /><${AsOf} of=${summary} /></div>`;
  // Every part would say the same of a wrong period or filter: it is said once.
  if (summary.error?.status === 422) return html`<div class="view">${bar}<${Failure} error=${summary.error} /></div>`;
  return html`<div class="view">
    ${bar}
    <${Wrong} />
    <${Figures} question=${question} period=${period} summary=${summary} />
    <div class="columns">
      <${Breakdown} question=${question} title="Acquisition" name="by" options=${[
        ['channel', 'Channel'], ['source', 'Source'], ['medium', 'Medium'], ['campaign', 'Campaign']]} />
      <${Breakdown} question=${question} title="Content" name="of" options=${[
        ['page', 'Page'], ['product', 'Product'], ['event', 'Event']]} />
    </div>
    <${Realtime} />
  </div>`;
}

const Notice = later(() => import('./quality.js'));

/** Numbers that have gone wrong without anybody being told, and nothing where none has. */
function Wrong() {
  const { findings = [], orders = [] } = useApi('quality', [], { every: REFRESH }).data?.data ?? {};
  const wrong = orders.filter(({ missing, different }) => missing.count + different.count > 0);
  return findings.length + wrong.length > 0 && html`<${Notice} findings=${findings} orders=${wrong} />`;
}

function Figures({ question, period, summary }) {
  const { params } = useLocation();
  const { currency } = useProperty();
  const measure = Object.hasOwn(MEASURES, params.get('measure') ?? '') ? params.get('measure') : 'unique_visitors';
  const interval = intervalFor(period);
  const series = useApi('analytics/series', [...question, ['compare', 'previous'], ['interval', interval]], { every: REFRESH });
  return html`<${Panel} title="Key figures" class="figures" actions=${html`
      <${CsvButton} path="analytics/series" params=${[...question, ['interval', interval]]} name="series" at=${series.at} />`}>
    <${Answer} of=${summary} height=${0} waiting=${html`<${Stats} measure=${measure} />`}>${({ data }) => html`
      <${Incomplete} from=${data.complete_from} />
      <${Stats} data=${data} measure=${measure} />`}<//>
    <${Answer} of=${series} height=${18.5}>${(answer) => html`
      <${Plot} answer=${answer} interval=${answer.interval ?? interval} measure=${measure} open=${period.every(([name]) => name !== 'to')} />`}<//>
    <${Currencies} sums=${summary.data?.data.kpis.revenue_by_currency} currency=${currency} />
  <//>`;
}

/** The figures as buttons, one of which is pressed; without their numbers as long as data is not there. */
function Stats({ data, measure }) {
  const { go } = useLocation();
  const { currency } = useProperty();
  return html`<div class="stats" role="group" aria-label="Key figures; one is in the plot">
    ${Object.entries(MEASURES).map(([key, { label, kind, upIsBad }]) => {
      const write = writer(kind, data?.currency ?? currency);
      return html`<${Stat} key=${key} label=${label} value=${data ? write(data.kpis[key]) : '\u00a0'} upIsBad=${upIsBad}
        change=${data?.change ? data.change[key] ?? null : undefined} before=${data?.previous && write(data.previous.kpis[key])}
        selected=${key === measure} onSelect=${() => go({ measure: key }, { replace: true })} />`;
    })}</div>`;
}

/** Revenue in other currencies, which is in no other figure. */
function Currencies({ sums, currency }) {
  const others = Object.entries(sums ?? {}).filter(([code]) => code !== currency);
  return others.length ? html`<p class="note">Not converted, and beside the revenue above: ${
    others.map(([code, amount]) => money(amount, code)).join(', ')}.</p>` : null;
}

/** The measure by interval; of an open period the last bucket is not over. */
function Plot({ answer, interval, measure, open }) {
  const { times, currency } = useProperty();
  const { label, kind } = MEASURES[measure];
  const format = useMemo(() => writer(kind, answer.currency ?? currency), [kind, answer.currency, currency]);
  const axis = kind === 'rate' ? percent : compact;
  const [names, series] = useMemo(() => {
    const full = bucketNames(answer.data, interval, times);
    const name = ({ from }, i) => ({
      full: full[i] + (open && i === answer.data.length - 1 ? ', so far' : ''), axis: interval === 'hour' ? times.clock(from) : times.dayOfMonth(from),
    });
    const values = (buckets) => buckets.map((bucket) => bucket?.[measure] ?? null);
    const shown = [{ label, values: values(answer.data), colour: '--series-1' }];
    if (answer.previous) shown.push({ label: 'The period before', values: values(before(answer.data, answer.previous, interval, times.zone)), colour: '--series-6', pale: true });
    return [answer.data.map(name), shown];
  }, [answer, interval, measure, label, times, open]);
  return html`<${Chart} title=${`${label} by ${interval}`} names=${names} series=${series} format=${format} axis=${axis} />`;
}

/** The ten greatest groups of a dimension; a click on one filters by it. */
function Breakdown({ question, title, name, options }) {
  const { params, go } = useLocation();
  const { currency } = useProperty();
  const by = options.some(([key]) => key === params.get(name)) ? params.get(name) : options[0][0];
  const order = params.get('order_by') ?? 'events';
  const { limit, ...few } = useFew(`${name}_limit`);
  const asked = [...question, ['by', by], ['order_by', order]];
  const answer = useApi('analytics/breakdown', [...asked, ['limit', limit]], { every: REFRESH });
  const [hold, shown] = useStill(answer.data, answer.answered);
  // While the answer is still that of another dimension, it is shown by that.
  const of = shown?.data.by ?? by;
  const label = options.find(([key]) => key === of)?.[1] ?? of;
  const cash = (row) => money(row.revenue, shown?.data.currency ?? currency);
  const columns = [
    { key: of, label, value: null, cell: (row) => html`<${Part} part=${row.share}><${FilterBy} by=${of} value=${row[of]} /><//>` },
    { key: 'events', label: 'Events', number: true, order: 'events', cell: (row) => count(row.events) },
    { key: 'unique_visitors', label: 'Visitors', number: true, order: 'unique_visitors', cell: (row) => count(row.unique_visitors) },
    { key: 'purchases', label: 'Purchases', number: true, order: 'purchases', cell: (row) => count(row.purchases) },
    ...(of === 'product' ? [{ key: 'quantity', label: 'Pieces', number: true, value: null, cell: (row) => count(row.quantity) }] : []),
    { key: 'revenue', label: 'Revenue', number: true, order: 'revenue', cell: cash },
  ];
  const actions = html`
    <${Choice} label=${`${title}: by what`} options=${options} value=${by} onChange=${(value) => go({ [name]: value }, { replace: true })} />
    <${CsvButton} path="analytics/breakdown" params=${asked} name=${`by-${by}`} at=${answer.at} />`;
  return html`<${Panel} title=${title} actions=${actions}><div ...${hold}>
    <${Answer} of=${{ ...answer, data: shown }} height=${24} empty=${({ data }) => data.results.length === 0
        && html`<${Empty} title="No events in this period.">${filterParams(params).length ? 'Choose a longer period, or take a filter away.'
          : 'Choose a longer period. Settings show how events are sent.'}<//>`}>
      ${({ data }) => html`<${Table} caption=${`${label}: ${title}`} columns=${columns} rows=${data.results} rowKey=${(row) => row[of]}
          order=${order} onOrder=${(value) => go({ order_by: value === 'events' ? null : value }, { replace: true })}
          foot=${data.others && html`<${Others} others=${data.others} pieces=${of === 'product'} cash=${cash} />`} />
        <${Few} ...${few} limit=${limit} more=${Boolean(data.others)} />`}<//>
  </div><//>`;
}

const Others = ({ others, pieces, cash }) => html`<tr><th scope="row">${count(others.groups)} others</th>
  <td class="number">${count(others.events)}</td><td></td><td class="number">${count(others.purchases)}</td>${pieces && html`<td></td>`}
  <td class="number">${cash(others)}</td></tr>`;
