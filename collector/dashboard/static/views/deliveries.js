/** How the platforms do: what they took and refused, whether they keep up, and what can be done. */
import { html, useMemo } from '../kit/html.js';
import { Answer, Choice, Empty, Incomplete, Panel, useProperty } from '../kit/components.js';
import { Chart } from '../kit/chart.js';
import { PeriodPicker, usePeriod } from '../kit/controls.js';
import { CsvButton } from '../kit/table.js';
import { useApi } from '../kit/api.js';
import { bucketNames, count } from '../kit/format.js';
import { intervalFor } from '../kit/period.js';
import { useLocation } from '../kit/state.js';
import { useStill } from '../kit/live.js';
import { Card } from './deliveries/card.js';
import { ShadowDialog } from './deliveries/shadow.js';

const PRESET = '24h';

/** The states in the order in which they are stacked, with their colours. */
const STACK = [['delivered', '--series-3'], ['skipped', '--series-6'], ['pending', '--series-1'], ['retrying', '--series-2'],
  ['expired', '--series-4'], ['failed', '--series-5']];

/**
 * The cards: what is known of each platform as it is configured, and of the period. One that has left the Property is there as
 * long as it has deliveries in the period. Pure.
 * @param {{platform: string}[]} platforms
 * @param {{platform: string}[]} totals
 */
export function cardsOf(platforms, totals) {
  const names = new Set([...platforms, ...totals].map(({ platform }) => platform));
  return [...names].map((name) => ({
    name, platform: platforms.find(({ platform }) => platform === name) ?? null, totals: totals.find(({ platform }) => platform === name) ?? null,
  }));
}

export function Deliveries() {
  const { params, go } = useLocation();
  const period = usePeriod(PRESET);
  const interval = intervalFor(period);
  const asked = useMemo(() => [...period, ['interval', interval]], [period, interval]);
  const deliveries = useApi('deliveries', asked, { every: 30000 });
  const platforms = useApi('platforms', [], { every: 10000 });
  const [still, shown] = useStill(deliveries.data, deliveries.answered);
  const [stillState, state] = useStill(platforms.data, 'platforms');
  const shadowed = params.get('shadow');
  return html`<div class="view">
    <div class="bar"><${PeriodPicker} preset=${PRESET} />
      <span class="zone">by when the events were received</span></div>
    <${Answer} of=${{ ...deliveries, data: shown }} height=${38}>${({ data }) => html`
      <${Incomplete} from=${data.complete_from} />
      <${Answer} of=${{ ...platforms, data: state }} height=${16} empty=${({ data: all }) => all.length + data.totals.length === 0 && html`<${NoPlatform} />`}>${({ data: all }) => html`
        <div class="cards" ...${stillState}>${cardsOf(all, data.totals).map((card) => html`<${Card} key=${card.name} ...${card} period=${data.period} />`)}</div>`}<//>
      ${data.totals.length > 0 && html`<${Course} ...${{ data, asked, still, at: deliveries.at }} names=${cardsOf(state?.data ?? [], data.totals).filter(({ totals }) => totals).map(({ name }) => name)} />`}`}<//>
    ${shadowed && html`<${ShadowDialog} platform=${shadowed} onClose=${() => go({ shadow: null })} />`}
  </div>`;
}

const NoPlatform = () => html`<${Panel} title="Platforms"><${Empty} title="This Property delivers to no platform.">Events are
  collected and counted all the same. Platforms are added to the Property’s spec.platforms.<//><//>`;

/** One platform's deliveries over time, stacked by what became of them; names are the platforms', in the order of their cards. */
function Course({ data, names, asked, still, at }) {
  const { params, go } = useLocation();
  const { times } = useProperty();
  const { interval } = data;
  const chosen = names.includes(params.get('plot')) ? params.get('plot') : names[0];
  const [buckets, series] = useMemo(() => {
    const of = (bucket) => bucket.platforms.find(({ platform }) => platform === chosen);
    return [
      bucketNames(data.series, interval, times).map((full, i) => ({ full, axis: interval === 'hour' ? times.clock(data.series[i].from) : full })),
      STACK.map(([status, colour]) => ({ label: status, colour, values: data.series.map((bucket) => of(bucket)?.[status] ?? 0) })),
    ];
  }, [data, interval, times, chosen]);
  return html`<${Panel} title=${`Deliveries to ${chosen}`} ...${still} actions=${html`
      <${Choice} label="Platform" value=${chosen} options=${names.map((name) => [name, name])} onChange=${(name) => go({ plot: name })} />
      <${CsvButton} path="deliveries" params=${asked} name="deliveries" at=${at} />`}>
    <${Chart} title=${`Deliveries to ${chosen}, by ${interval}`} kind="bars" names=${buckets} series=${series} format=${count} />
  <//>`;
}
