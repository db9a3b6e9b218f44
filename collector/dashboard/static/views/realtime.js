/** What comes in right now: the last half hour, minute by minute. */
import { html, useMemo } from '../kit/html.js';
import { Answer, Empty, Panel, Stat, useProperty } from '../kit/components.js';
import { Chart } from '../kit/chart.js';
import { useApi } from '../kit/api.js';
import { count, money } from '../kit/format.js';
import { useStill } from '../kit/live.js';

/** How often is asked, in ms. */
const EVERY = 10000;

/** How many rows a list has. */
const ROWS = 5;

const LISTS = [['event', 'Events'], ['page', 'Pages'], ['channel', 'Channels'], ['source', 'Sources']];

export function Realtime() {
  const answer = useApi('analytics/realtime', [], { every: EVERY });
  const [still, shown] = useStill(answer.data, 'realtime');
  return html`<${Panel} title="Right now" class="realtime" ...${still} note="The last 30 minutes, of all events: filters do not apply. It stands still while you point at it.">
    <${Answer} of=${{ ...answer, data: shown }} height=${22}>${({ data }) => html`<${Now} data=${data} />`}<//>
  <//>`;
}

function Now({ data }) {
  const { times } = useProperty();
  const [names, series] = useMemo(() => [
    data.minutes.map(({ from }) => ({ full: times.clock(from), axis: times.clock(from) })),
    [{ label: 'Events', colour: '--series-1', values: data.minutes.map(({ events }) => events) }],
  ], [data, times]);
  return html`<div class="stats">
      <${Stat} label="Visitors" value=${count(data.unique_visitors)} />
      <${Stat} label="Events" value=${count(data.events)} />
      <${Stat} label="Purchases" value=${count(data.purchases)} />
      <${Stat} label="Revenue" value=${money(data.revenue, data.currency)} />
    </div>
    <${Chart} title="Events by minute" kind="bars" height=${110} names=${names} series=${series} format=${count} />
    ${data.events === 0 ? html`<${Empty} title="Nothing has come in for half an hour.">An event shows here within seconds of being collected.<//>`
      : html`<div class="columns tops">${LISTS.map(([by, title]) => html`<${Top} key=${by} by=${by} title=${title} rows=${data[`by_${by}`]} />`)}</div>`}`;
}

/** What occurs most. */
function Top({ by, title, rows }) {
  return html`<table class="top-list"><caption>${title}</caption>
    <thead class="hidden"><tr><th scope="col">${title}</th><th scope="col">Events</th></tr></thead>
    <tbody>${rows.slice(0, ROWS).map((row) => html`<tr key=${row[by]}><th scope="row" title=${row[by]}><bdi>${row[by]}</bdi></th>
      <td class="number">${count(row.events)}</td></tr>`)}</tbody></table>`;
}
