/** Plots over time, each with the same numbers as a table. */
import uPlot from '../packages/uplot.js';
import { html, useEffect, useLayoutEffect, useRef, useState } from './html.js';
import { compact } from './format.js';
import { plain } from './number.js';

/**
 * Stacks series: each becomes the sum of itself and those before it. For drawing alone; what is told are the values. Pure.
 * @param {(number|null)[][]} series
 */
export function stacked(series) {
  const sums = [];
  return series.map((values) => values.map((value, i) => (sums[i] = (sums[i] ?? 0) + (value ?? 0))));
}

/** A colour of the style sheet. @param {string} name the custom property's */
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function drawn(series, bars) {
  return series.map(({ label, colour: name, pale }) => {
    const stroke = colour(name);
    const line = { label, stroke, width: 2, points: { show: false } };
    if (bars) return { ...line, width: 0, fill: stroke, paths: uPlot.paths.bars({ size: [0.8, 40] }) };
    return pale ? { ...line, width: 1.5, dash: [4, 4] } : { ...line, fill: `${stroke}1a` };
  });
}

/** Steps of an axis whose values are whole numbers. */
const WHOLE = Array.from({ length: 30 }, (_, i) => [1, 2, 5][i % 3] * 10 ** Math.floor(i / 3));

/** How a plot is drawn; shown() is what it shows at the moment, which changes with each answer. */
function options({ whole, shown, series, bars, format, width, height, onPoint }) {
  const axis = { stroke: colour('--muted'), font: '12px system-ui, sans-serif', ticks: { show: false } };
  const span = () => {
    const last = shown().length - 1;
    return bars || last === 0 ? [-0.6, last + 0.6] : [0, last];
  };
  return {
    width, height, legend: { show: false }, padding: [8, 20, 0, 0],
    scales: {
      x: { time: false, range: span },
      y: { range: (_, min, max) => [Math.min(0, min * 1.06), max > 0 ? max * 1.06 : 1] },
    },
    axes: [
      { ...axis, grid: { show: false }, size: 28, space: 90, incrs: [1, 2, 3, 4, 6, 7, 12, 14, 24, 28, 48, 56, 84, 168, 336],
        values: (_, ticks) => ticks.map((i) => shown()[i]?.axis ?? '') },
      { ...axis, size: 56, ...(whole ? { incrs: WHOLE } : {}), grid: { stroke: colour('--line'), width: 1 }, values: (_, ticks) => ticks.map(format ?? compact) },
    ],
    series: [{}, ...drawn(series, bars)],
    cursor: { drag: { x: false, y: false }, y: false, points: { size: bars ? 0 : 8 } },
    hooks: { setCursor: [(plot) => onPoint(plot.cursor.idx ?? null)] },
  };
}

/**
 * @param {{title: string, names: {full: string, axis: string}[], height?: number, kind?: 'lines'|'bars',
 *   series: {label: string, values: (number|null)[], colour: string, pale?: boolean}[],
 *   format: (value: number|null) => string, axis?: (value: number) => string}} props
 *   names are the buckets'; bars are stacked. A pale series is for comparison. Other values move into the plot that is there.
 *   The arrow keys go from bucket to bucket.
 */
export function Chart({ title, names, series, format, axis, height = 240, kind = 'lines' }) {
  const box = useRef();
  const plot = useRef();
  const [point, setPoint] = useState(null);
  const [scheme, setScheme] = useState(0);
  const bars = kind === 'bars';
  const at = useRef(null); // what is to be pointed at with other values, too
  at.current = point;

  useEffect(() => {
    const dark = matchMedia('(prefers-color-scheme: dark)');
    const follow = () => setScheme((n) => n + 1);
    dark.addEventListener('change', follow);
    return () => dark.removeEventListener('change', follow);
  }, []);

  const values = series.map((each) => each.values.map(plain));
  const whole = values.every((each) => each.every((value) => value === null || Number.isInteger(value)));
  // The highest stack is drawn first, so that those below stand before it.
  const order = series.map((_, i) => (bars ? series.length - 1 - i : i));
  const looks = JSON.stringify(order.map((i) => [series[i].label, series[i].colour, series[i].pale]));
  const latest = useRef();
  latest.current = names;

  useLayoutEffect(() => {
    const element = box.current;
    const width = () => element.clientWidth;
    const chart = new uPlot(options({
      whole, shown: () => latest.current, series: order.map((i) => series[i]), bars, format: axis, height, width: width(), onPoint: setPoint,
    }), [[]], element);
    plot.current = chart;
    const resize = new ResizeObserver(() => { if (chart.width !== width()) chart.setSize({ width: width(), height }); });
    resize.observe(element);
    return () => {
      resize.disconnect();
      chart.destroy();
    };
  }, [looks, whole, bars, axis, height, scheme]);

  useLayoutEffect(() => {
    const heights = bars ? stacked(values) : values;
    // In a batch, which is done when it returns: where a point is depends on the new scale.
    plot.current.batch(() => plot.current.setData([names.map((_, i) => i), ...order.map((i) => heights[i])]));
    if (at.current !== null) plot.current.setCursor({ left: plot.current.valToPos(Math.min(at.current, names.length - 1), 'x'), top: 10 });
  }, [names, series, looks, whole, bars, axis, height, scheme]);

  const go = (index) => {
    const next = Math.max(0, Math.min(names.length - 1, index));
    plot.current.setCursor({ left: plot.current.valToPos(next, 'x'), top: 10 });
  };
  const step = (event) => {
    const to = { ArrowLeft: (point ?? names.length) - 1, ArrowRight: (point ?? -1) + 1, Home: 0, End: names.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    go(to);
  };
  const shown = point !== null && point < names.length ? point : null;
  return html`<figure class="chart">
    <div class="legend" aria-live="polite">
      <span class="legend-at">${shown === null ? title : names[shown].full}</span>
      ${series.map((each) => html`<span class="legend-item" key=${each.label}>
        <span class=${each.pale ? 'swatch pale' : 'swatch'} style=${{ '--swatch': `var(${each.colour})` }}></span>${each.label}
        ${shown !== null && html` <b>${format(each.values[shown] ?? null)}</b>`}</span>`)}
    </div>
    <div class="plot" ref=${box} tabindex="0" role="application" onKeyDown=${step} style=${{ height: `${height}px` }}
      aria-label=${`${title}: plot of ${names.length} points. Arrow keys go from one to the next; the table below has them all.`}></div>
    <${Numbers} ...${{ title, names, series, format }} />
  </figure>`;
}

/** The plot's numbers as a table, made when somebody opens it. */
function Numbers({ title, names, series, format }) {
  const [open, setOpen] = useState(false);
  return html`<details class="numbers" onToggle=${(event) => setOpen(event.currentTarget.open)}>
    <summary>As a table</summary>
    ${open && html`<div class="table" tabindex="0" role="group" aria-label=${title}><table>
      <caption class="hidden">${title}</caption>
      <thead><tr><th scope="col">When</th>${series.map((each) => html`<th scope="col" class="number" key=${each.label}>${each.label}</th>`)}</tr></thead>
      <tbody>${names.map((name, i) => html`<tr key=${i}><th scope="row">${name.full}</th>
        ${series.map((each) => html`<td class="number" key=${each.label}>${format(each.values[i] ?? null)}</td>`)}</tr>`)}</tbody>
    </table></div>`}
  </details>`;
}
