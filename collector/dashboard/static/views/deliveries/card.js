/** What there is to know of a platform, and to do about it. */
import { html } from '../../kit/html.js';
import { useProperty } from '../../kit/components.js';
import { count, duration, nothing } from '../../kit/format.js';
import { Link, useLocation } from '../../kit/state.js';
import { Status } from '../events/status.js';
import { Replay } from './replay.js';
import { TestEvent } from './test.js';

const milliseconds = (ms) => (ms == null ? nothing : duration(ms / 1000));

/**
 * @param {{name: string, platform: object|null, totals: object|null, period: {from: string, to: string}}} props
 *   platform is null where it has left the Property, totals where it has no delivery in the period
 */
export function Card({ name, platform, totals, period }) {
  return html`<section class="panel card" aria-label=${`Platform ${name}`}>
    <header class="panel-head"><h2>${name} <small>${platform?.type}</small></h2><span class="actions"><${Mode} platform=${platform} /></span></header>
    ${platform?.paused && html`<${Paused} paused=${platform.paused} />`}
    ${platform && html`<${Queue} platform=${platform} />`}
    ${totals ? html`<${Totals} totals=${totals} />` : html`<p class="note">No deliveries in this period.</p>`}
    ${totals && platform && html`<${Again} name=${name} totals=${totals} period=${period} />`}
    ${platform && html`<${Actions} platform=${platform} />`}
  </section>`;
}

function Mode({ platform }) {
  if (!platform) return html`<span class="tag">removed</span>`;
  return html`${platform.paused && html`<span class="tag bad">paused</span> `}
    ${platform.suspended && html`<span class="tag warn" title="Nothing is sent; its events wait">suspended</span> `}
    ${platform.mode === 'Shadow' ? html`<span class="tag warn" title="Nothing is sent: what would be is kept to look at">Shadow</span>`
      : html`<span class="tag good">${platform.mode}</span>`}
    ${platform.beta && html` <span class="tag" title="No account of this platform has judged what Weir sends yet">beta</span>`}`;
}

function Paused({ paused }) {
  const { times } = useProperty();
  return html`<div class="failure"><p class="failure-title">Nothing is sent${paused.since ? ` since ${times.minute(paused.since)}` : ''}: <code>${paused.reason}</code></p>
    ${paused.advice && html`<p>${paused.advice}</p>`}</div>`;
}

function Queue({ platform }) {
  if (platform.lag_events == null) return html`<p class="note">How far it is behind is not known: no deliverer has reported lately.</p>`;
  return html`<p class="note">${platform.lag_events === 0 ? 'Nothing waits to be taken up' : html`<b>${count(platform.lag_events)}</b> not taken up yet, the oldest for ${duration(platform.lag_seconds)}`}
    ${platform.waiting > 0 && html`; <b>${count(platform.waiting)}</b> wait for another attempt`}.</p>`;
}

function Totals({ totals }) {
  const { latency_ms: latency } = totals;
  const shown = ['delivered', 'failed', 'skipped', 'expired', 'retrying', 'pending'].filter((status) => totals[status] > 0 || status === 'delivered' || status === 'failed');
  return html`<dl class="totals">${shown.map((status) => html`<div key=${status}><dt><${Status} status=${status} /></dt><dd>${count(totals[status])}</dd></div>`)}</dl>
    ${latency && html`<p class="note">Half of it within <b>${milliseconds(latency.p50)}</b>, 95% within <b>${milliseconds(latency.p95)}</b>.</p>`}
    ${totals.reasons.length > 0 && html`<ul class="reasons">${totals.reasons.map(({ status, reason, count: n, advice }) => html`
      <li key=${`${status} ${reason}`}><${Status} status=${status}>${count(n)}<span class="hidden"> ${status}</span><//> <code>${reason}</code>
        ${advice && html`<p class="note">${advice}</p>`}</li>`)}</ul>`}`;
}

/** Puts back what failed and expired in the period. */
function Again({ name, totals, period }) {
  const { can } = useProperty();
  const statuses = ['failed', 'expired'].filter((status) => totals[status] > 0);
  if (!can('write') || statuses.length === 0) return null;
  return html`<${Replay} platform=${name} from=${period.from} to=${period.to} statuses=${statuses}>
    Everything that ${statuses.join(' or ')} at <b>${name}</b> of the events received ${period.from === period.to ? `on ${period.from}`
      : `from ${period.from} to ${period.to}`} is put back in line: ${statuses.map((status) => `${count(totals[status])} ${status}`).join(', ')} as
    of now. What is older than the platform takes ends expired once more.<//>`;
}

function Actions({ platform }) {
  const { can } = useProperty();
  const { href } = useLocation();
  return html`<div class="card-actions">
    ${can('write') && html`<${TestEvent} platform=${platform} />`}
    ${platform.mode === 'Shadow' && can('admin') && html`<${Link} class="button small" href=${href({ shadow: platform.platform })}>What would be sent<//>`}
  </div>`;
}
