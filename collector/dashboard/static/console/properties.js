/** The Properties with their state and figures, what these add up to, and ways to find one. */
import { html, useEffect, useMemo, useState } from '../kit/html.js';
import { useApi } from '../kit/api.js';
import { Answer, Choice, Empty, Field, Panel, useProperty } from '../kit/components.js';
import { count, money, nothing } from '../kit/format.js';
import { useStill } from '../kit/live.js';
import { Link, useLocation } from '../kit/state.js';
import { Table } from '../kit/table.js';
import { inOrder, matching, readSort, writeSort } from './rows.js';

const PERIODS = [['24h', '24 hours'], ['7d', '7 days'], ['30d', '30 days']];
const PRESET = '7d';
const KNOWS = ['period', 'q', 'sort', 'rows'];
const REFRESH = 60000;

/** How many rows there are before somebody wants all. */
const FIRST = 100;

export function Properties({ user }) {
  const { times } = useProperty();
  const { params, go } = useLocation();
  const period = params.get('period') || PRESET;
  const answer = useApi('properties', useMemo(() => [['period', period]], [period]), { every: REFRESH });
  const [still, shown] = useStill(answer.data, answer.answered);
  const [text, setText] = useSearch();
  return html`<div class="view">
    <${Misread} />
    <div class="bar">
      <${Choice} label="Period" options=${PERIODS} value=${period} onChange=${(value) => go({ period: value === PRESET ? null : value })} />
      <${Field} label="Search">${(id) => html`<input id=${id} class="search" type="search" value=${text} maxlength="200" autocomplete="off"
        placeholder="name or namespace" spellcheck="false" onInput=${(event) => setText(event.currentTarget.value)} />`}<//>
      <button type="button" onClick=${answer.reload}>Refresh</button>
      ${answer.at && html`<span class="zone">as of ${times.second(answer.at)}</span>`}
    </div>
    <${Answer} of=${{ ...answer, data: shown }} height=${24} empty=${({ data }) => (data.length ? null : html`<${Nothing} user=${user} />`)}>${({ data, totals }) => html`
      <${Totals} totals=${totals} rows=${data} />
      <${List} rows=${data} text=${text} still=${still} period=${period} onClear=${() => setText('')} />`}<//>
  </div>`;
}

/** What is searched for: at once here, a moment later in the address. */
function useSearch() {
  const { params, go } = useLocation();
  const named = params.get('q') ?? '';
  const [text, setText] = useState(named);
  useEffect(() => setText(named), [named]);
  useEffect(() => {
    if (text === named) return undefined;
    const timer = setTimeout(() => go({ q: text }, { replace: true }), 300);
    return () => clearTimeout(timer);
  }, [text, named, go]);
  return [text, setText];
}

const Nothing = ({ user }) => html`<${Panel} title="No Property"><${Empty} title="You may see no Property.">You are signed in as <bdi>${user}</bdi>. Ask whoever
  runs this cluster for the role <code>view</code> in the namespace of a Property, with which you see how it does, or <code>edit</code>, with which
  you see its numbers, too.<//><//>`;

/** Sums by currency. Visitors are in none: who comes to two shops would be counted twice. */
function Totals({ totals, rows }) {
  const missing = rows.filter(({ problem }) => problem).length;
  if (!totals.length && !missing) return null;
  return html`<${Panel} title="In total" note="By currency: nothing is converted. A visitor of two Properties cannot be told from two, so visitors are not added up.">
    ${totals.length > 0 && html`<${Table} caption="Totals by currency" rows=${totals} rowKey=${({ currency }) => currency} columns=${[
      { key: 'currency', label: 'Currency' },
      { key: 'properties', label: 'Properties', number: true, cell: ({ properties }) => count(properties) },
      { key: 'pageviews', label: 'Page views', number: true, cell: ({ pageviews }) => count(pageviews) },
      { key: 'add_to_carts', label: 'Added to cart', number: true, cell: (row) => count(row.add_to_carts) },
      { key: 'purchases', label: 'Purchases', number: true, cell: ({ purchases }) => count(purchases) },
      { key: 'revenue', label: 'Revenue', number: true, cell: ({ revenue, currency }) => money(revenue, currency) },
    ]} />`}
    ${missing > 0 && html`<p class="notice warn" role="status">The figures of ${missing === 1 ? 'one Property' : `${count(missing)} Properties`} could not be
      read, and are in no sum.</p>`}
  <//>`;
}

function List({ rows, text, still, period, onClear }) {
  const { params, go } = useLocation();
  const sort = params.get('sort');
  const by = useMemo(() => readSort(sort), [sort]);
  const ordered = useMemo(() => inOrder(rows, by), [rows, by]);
  const found = useMemo(() => matching(ordered, text), [ordered, text]);
  const all = params.get('rows') === 'all';
  const columns = useMemo(() => columnsOf(period), [period]);
  return html`<${Panel} title="Properties" class="list" ...${still} note=${found.length === rows.length ? null : `${count(found.length)} of ${count(rows.length)}`}>
    ${found.length === 0 ? html`<${Empty} title=${`No Property is called “${text}”.`}><button type="button" onClick=${onClear}>Show all ${count(rows.length)}</button><//>`
      : html`<${Table} caption="Properties" columns=${columns} rows=${found} rowKey=${({ namespace, property }) => `${namespace}/${property}`}
          limit=${all ? Infinity : FIRST} by=${by ?? NONE} onSort=${(wanted) => go({ sort: writeSort(wanted) }, { replace: true })} />`}
    ${found.length > FIRST && html`<p><button type="button" class="small" onClick=${() => go({ rows: all ? null : 'all' }, { replace: true })}>
      ${all ? `The first ${FIRST}` : `All ${count(found.length)}`}</button></p>`}
  <//>`;
}

/** The order in which the server has them. */
const NONE = { key: '', direction: 'ascending' };

function columnsOf(period) {
  const figure = (key, label, write) => ({ key, label, number: true, cell: (row) => (row.figures ? write(row.figures[key], row.currency) : nothing) });
  return [
    { key: 'property', label: 'Property', cell: (row) => html`<a href=${address(row, period)}><bdi>${row.property}</bdi></a>` },
    { key: 'namespace', label: 'Namespace', cell: ({ namespace }) => html`<bdi>${namespace}</bdi>` },
    { key: 'ready', label: 'State', cell: (row) => html`<${State} ...${row} />` },
    figure('unique_visitors', 'Visitors', count), figure('pageviews', 'Page views', count), figure('add_to_carts', 'Added to cart', count),
    figure('purchases', 'Purchases', count), figure('revenue', 'Revenue', money),
    { key: 'scope', label: 'You may', cell: ({ scope }) => html`<span title=${SCOPES[scope] ?? 'You see how it does, and not its numbers'}>${scope ?? nothing}</span>` },
  ];
}

const address = ({ namespace, property }, period) =>
  `namespaces/${encodeURIComponent(namespace)}/properties/${encodeURIComponent(property)}/?view=overview&period=${encodeURIComponent(period)}`;

/** What each scope lets somebody do. */
const SCOPES = {
  read: 'You see its numbers', write: 'You see its numbers, and may deliver again', admin: 'You may do everything that its page offers',
};

const STATES = { True: ['good', 'Ready'], False: ['bad', 'Not ready'], Unknown: ['warn', 'Not known yet'] };

function State({ ready, reason, message, problem }) {
  const [tone, words] = STATES[ready] ?? STATES.Unknown;
  return html`<span class=${`tag ${tone}`}>${words}</span>${ready !== 'True' && html` <code>${reason}</code>
      ${message && html`<p class="note"><bdi>${message}</bdi></p>`}`}
    ${problem && html`<p class="note"><span class="tag warn">No figures</span> <bdi>${problem}</bdi></p>`}`;
}

/** What of the address the list makes nothing of, and the way to leave it out. */
function Misread() {
  const { params, href } = useLocation();
  const sort = params.get('sort');
  const strange = [...new Set(params.keys())].filter((name) => !KNOWS.includes(name) || (name === 'sort' && !readSort(sort)));
  return strange.length > 0 && html`<p class="notice warn" role="status">The address has what this page does not know: <bdi>${strange.join(', ')}</bdi>.
    ${' '}<${Link} href=${href(Object.fromEntries(strange.map((name) => [name, null])))}>Leave it out<//></p>`;
}
