/** The list of events: thousands are loaded, and the document holds those that can be seen. */
import { html, useCallback, useEffect, useId, useMemo, useState } from '../../kit/html.js';
import { Empty, useProperty } from '../../kit/components.js';
import { count, money, nothing } from '../../kit/format.js';
import { Link, useLocation } from '../../kit/state.js';
import { Deliveries } from './status.js';
import { useWindow } from './window.js';
import { identity } from './feed.js';

/** A row's height in pixels, as in the style sheet. */
const ROW = 34;

/** How many rows before the end the next page is asked for. */
const AHEAD = 120;

const COLUMNS = [['received_at', 'Received'], ['event', 'Event'], ['value', 'Value'], ['order_id', 'Order'], ['visitor', 'Visitor'],
  ['channel', 'Came from'], ['delivery', 'Delivery']];

const origin = ({ channel, source, campaign }) => [channel, source, campaign].filter(Boolean).join(' · ');

/**
 * Where the event is that the keyboard is on, whatever has come in before it; the first row where it is not listed any more. Pure.
 * @param {object[]} rows
 * @param {{index: number, event: object|null}} chosen index is where it was
 */
export function placeOf(rows, { index, event }) {
  if (event === null) return 0;
  const sought = identity(event);
  if (rows[index] && identity(rows[index]) === sought) return index;
  return Math.max(0, rows.findIndex((each) => identity(each) === sought));
}

/** @param {{feed: ReturnType<import('./feed.js').useFeed>, lookedUp: boolean, onOpen: (event: object) => void}} props */
export function EventList({ feed, lookedUp, onOpen }) {
  const { rows } = feed;
  const id = useId();
  const [chosen, setChosen] = useState({ index: 0, event: null });
  const { box, from, to, size, show } = useWindow(rows.length, ROW);
  const { times } = useProperty();
  const here = useLocation().href({ id: null });
  const { next, more, trouble } = feed;
  useEffect(() => { if (more && !trouble && to > rows.length - AHEAD) next(); }, [more, trouble, to, rows.length, next]);
  const active = useMemo(() => placeOf(rows, chosen), [rows, chosen]);

  const open = useCallback((event, index) => {
    setChosen({ index, event });
    onOpen(event);
  }, [onOpen]);
  const step = (event) => {
    const page = Math.max(1, Math.floor(box.current.clientHeight / ROW) - 2);
    const moved = { ArrowDown: active + 1, ArrowUp: active - 1, PageDown: active + page, PageUp: active - page, Home: 0, End: rows.length - 1 }[event.key];
    if (moved === undefined && event.key !== 'Enter' && event.key !== ' ') return;
    event.preventDefault();
    if (moved === undefined) {
      if (rows[active]) open(rows[active], active);
      return;
    }
    const row = Math.max(0, Math.min(rows.length - 1, moved));
    if (rows[row]) setChosen({ index: row, event: rows[row] });
    show(row);
  };
  // Whoever comes to the list is on an event from then on, whatever comes in before it.
  const hold = () => { if (chosen.event === null && rows[0]) setChosen({ index: 0, event: rows[0] }); };
  const empty = rows.length === 0;
  return html`<div class=${feed.stale ? 'grid stale' : 'grid'} ref=${box} tabindex="0" role="grid" aria-label="Events" aria-busy=${feed.stale || feed.loading}
      aria-rowcount=${more ? -1 : rows.length + 1} aria-colcount=${COLUMNS.length}
      aria-activedescendant=${!empty && active >= from && active < to ? `${id}-${active}` : null} onKeyDown=${step} onFocus=${hold}>
      <table role="presentation"><colgroup>${COLUMNS.map(([key]) => html`<col key=${key} class=${`col-${key}`} />`)}</colgroup>
        <thead role="rowgroup"><tr role="row" aria-rowindex="1">${COLUMNS.map(([key, label]) => html`
          <th key=${key} role="columnheader" scope="col" class=${key === 'value' ? 'number' : ''}>${label}</th>`)}</tr></thead>
        <tbody role="rowgroup">
          ${from > 0 && html`<tr key="above" role="presentation" aria-hidden="true"><td role="presentation" colspan=${COLUMNS.length} style=${{ height: `${from * ROW}px` }}></td></tr>`}
          ${rows.slice(from, to).map((event, i) => html`<${Row} key=${(from + i) % size} ...${{ event, index: from + i, id, here, times, open }}
            active=${from + i === active} />`)}
          ${to < rows.length && html`<tr key="below" role="presentation" aria-hidden="true"><td role="presentation" colspan=${COLUMNS.length} style=${{ height: `${(rows.length - to) * ROW}px` }}></td></tr>`}
        </tbody>
      </table>
      ${empty && !feed.loading && html`<${Nothing} lookedUp=${lookedUp} />`}
    </div>
    <p class="note" role="status">${feed.loading ? 'Loading…' : trouble
      ? html`Older events could not be read: ${trouble.message} <button type="button" class="small" onClick=${next}>Try again</button>`
      : empty ? '' : more ? `${count(rows.length)} events are loaded; older ones follow as you scroll.` : `These are all ${count(rows.length)}.`}</p>`;
}

/**
 * A row. The element of one that has left the window becomes that of one that has come, and what is the same is not rendered again:
 * both keep scrolling smooth.
 */
function Row({ event, index, id, active, here, times, open }) {
  return useMemo(() => {
    const click = ({ target, defaultPrevented }) => {
      if (!defaultPrevented && !target.closest('a') && !String(getSelection())) open(event, index);
    };
    return html`<tr id=${`${id}-${index}`} class="row" role="row" aria-rowindex=${index + 2} aria-selected=${active} onClick=${click}>
      <td role="gridcell"><${Link} tabindex="-1" href=${`${here}&${new URLSearchParams({ id: event.event_id })}`}>${times.moment(event.received_at)}<//></td>
      <td role="gridcell" title=${event.event}><bdi>${event.event}</bdi></td>
      <td role="gridcell" class="number">${event.value === null ? nothing : money(event.value, event.currency)}</td>
      <td role="gridcell" title=${event.order_id}><bdi>${event.order_id ?? nothing}</bdi></td>
      <td role="gridcell"><code>${event.visitor ?? nothing}</code></td>
      <td role="gridcell" title=${origin(event)}><bdi>${origin(event) || nothing}</bdi></td>
      <td role="gridcell" title=${event.delivery.map(({ platform, status }) => `${platform}: ${status}`).join('\n')}>
        ${event.delivery.length ? html`<${Deliveries} delivery=${event.delivery} />` : nothing}</td>
    </tr>`;
  }, [event, index, id, active, here, times, open]);
}

const Nothing = ({ lookedUp }) => (lookedUp
  ? html`<${Empty} title="No event is found by that.">It was not sent, was refused, or is not kept any more. Ids are compared exactly.<//>`
  : html`<${Empty} title="No events in this period.">Choose a longer period or other filters. Settings show how events are sent; what was refused is under Rejections.<//>`);
