/** An event as it is stored, and what became of it at each platform. */
import { html } from '../../kit/html.js';
import { useApi } from '../../kit/api.js';
import { Answer, Copy, Dialog, Empty, useProperty } from '../../kit/components.js';
import { count, duration, money } from '../../kit/format.js';
import { Link, useLocation } from '../../kit/state.js';
import { Exact } from '../../kit/number.js';
import { Replay } from '../deliveries/replay.js';
import { onlyThis } from './lookup.js';
import { Status } from './status.js';

/** What has a place of its own. */
const APART = ['delivery', 'attempts', 'attempts_complete'];

/**
 * The members of an event that say something, by their paths. Lists are JSON. Pure.
 * @param {object} event
 * @returns {[string, string][]}
 */
export function membersOf(event, path = '') {
  return Object.entries(event).flatMap(([name, value]) => {
    const here = path + name;
    if (value === null || (path === '' && APART.includes(name))) return [];
    if (Array.isArray(value)) return value.length ? [[here, JSON.stringify(value)]] : [];
    return typeof value === 'object' && !(value instanceof Exact) ? membersOf(value, `${here}.`) : [[here, String(value)]];
  });
}

/** @param {{id: string, onClose: () => void}} props */
export function EventDialog({ id, onClose }) {
  const answer = useApi(`events/${encodeURIComponent(id)}`, []);
  return html`<${Dialog} title="Event" onClose=${onClose}>
    ${answer.error?.status === 404 ? html`<${Empty} title="This event is not kept.">Retention or an erasure has taken it, or there never was one of this id.<//>`
      : html`<${Answer} of=${answer} height=${20}>${({ data }) => (Array.isArray(data)
        ? html`<${Empty} title="An event of this id cannot be opened by it.">Look it up by its id instead.<//>`
        : html`<${Story} event=${data} />`)}<//>`}
  <//>`;
}

function Story({ event }) {
  const { times } = useProperty();
  const { viewHref } = useLocation();
  const text = JSON.stringify(event, null, 2);
  return html`<div class="story">
    <p class="story-head"><strong><bdi>${event.event}</bdi></strong>
      ${event.value !== null && html`<span>${money(event.value, event.currency)}</span>`}
      <span class="muted">${times.moment(event.received_at)}</span>
      ${event.class !== 'human' && html`<span class="tag warn">${event.class}</span>`}</p>
    <p class="story-links">
      ${event.visitor && html`<${Link} href=${viewHref('events', onlyThis({ visitor: event.visitor }))}>All events of this visitor<//>`}
      ${event.order_id && html`<${Link} href=${viewHref('events', onlyThis({ order_id: event.order_id }))}>All events of this order<//>`}
    </p>
    <h3>Delivery</h3>
    ${event.delivery.length === 0 && html`<p class="note">This event is delivered nowhere: ${event.class === 'human'
      ? 'no platform was in force when it came.' : 'platforms get what people have sent alone.'}</p>`}
    ${event.delivery.map((each) => html`<${Delivery} key=${each.platform} event=${event} delivery=${each} />`)}
    ${event.attempts_complete === false && html`<p class="notice warn">There may be more attempts than are listed: not all records could be read in time.</p>`}
    <h3>As it is stored</h3>
    <dl class="pairs">${membersOf(event).map(([path, value]) => html`<dt key=${path}><bdi>${path}</bdi></dt><dd><bdi>${value}</bdi></dd>`)}</dl>
    <details><summary>JSON</summary>
      <p class="json-actions"><${Copy} text=${text} label="Copy the JSON" /></p>
      <pre tabindex="0" role="group" aria-label="The event as JSON">${text}</pre></details>
  </div>`;
}

/** What became of the event at one platform: the last word, each attempt, and the way to try again. */
function Delivery({ event, delivery }) {
  const { times, can } = useProperty();
  const attempts = (event.attempts ?? []).filter(({ platform }) => platform === delivery.platform);
  // The last word's advice stands above the attempts.
  const told = attempts.some(({ advice }) => advice && advice !== delivery.advice);
  const again = delivery.status === 'failed' || delivery.status === 'expired';
  const until = new Date(Date.parse(event.received_at) + 1).toISOString();
  return html`<section class="delivery" aria-label=${`Delivery to ${delivery.platform}`}>
    <p class="delivery-head"><strong>${delivery.platform}</strong> <span class="muted">${delivery.type}</span>
      <${Status} status=${delivery.status} /> ${delivery.reason && html`<code>${delivery.reason}</code>`}
      <span class="muted">${times.moment(delivery.updated_at)}</span></p>
    ${delivery.advice && html`<p>${delivery.advice}</p>`}
    ${attempts.length > 0 && html`<div class="table" tabindex="0" role="group" aria-label=${`Attempts at ${delivery.platform}`}><table>
      <thead><tr><th scope="col" class="number">Attempt</th><th scope="col">When</th><th scope="col">Status</th><th scope="col">Reason</th>
        <th scope="col" class="number">Took</th>${told && html`<th scope="col">What to do</th>`}</tr></thead>
      <tbody>${attempts.map((each, i) => html`<tr key=${i}><td class="number">${count(each.attempt)}</td><td>${times.moment(each.at)}</td>
        <td><${Status} status=${each.status} /></td><td>${each.reason && html`<code>${each.reason}</code>`}</td>
        <td class="number">${duration(each.latency_ms === null ? null : each.latency_ms / 1000)}</td>${told && html`<td class="advice">${each.advice}</td>`}</tr>`)}</tbody>
    </table></div>`}
    ${again && can('write') && html`<${Replay} platform=${delivery.platform} from=${event.received_at} to=${until} statuses=${[delivery.status]}>
      What ${delivery.status === 'failed' ? 'failed at' : 'expired before it reached'} <b>${delivery.platform}</b> of the events received in the
      millisecond of ${times.moment(event.received_at)} is put back in line: this event, and any other of the very same moment.<//>`}
  </section>`;
}
