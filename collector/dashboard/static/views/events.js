/** The events as they come in, and each one's story. */
import { html, useCallback, useMemo } from '../kit/html.js';
import { AsOf, Failure, Field, Incomplete, Panel, useProperty } from '../kit/components.js';
import { PeriodPicker, usePeriod } from '../kit/controls.js';
import { CsvButton } from '../kit/table.js';
import { useApi } from '../kit/api.js';
import { FILTERS as SHARED, PERIOD, useLocation } from '../kit/state.js';
import { EventDialog } from './events/detail.js';
import { useFeed } from './events/feed.js';
import { EventList } from './events/list.js';
import { LOOKUPS, LookUp } from './events/lookup.js';
import { STATUSES } from './events/status.js';

const PRESET = '24h';

/** What the listing is filtered by, beside the period and the look-ups. */
const FILTERS = ['event', 'status', 'platform', 'class'];

/** Filters of other views that the listing does not know. */
const FOREIGN = SHARED.filter((name) => !FILTERS.includes(name));

const CLASSES = [['human', 'people'], ['bot', 'bots'], ['internal', 'our own people'], ['test', 'tests']];

/**
 * The events' parameters in the page's address, as the read API takes them. A look-up finds events of any time where no period
 * is named.
 */
function useAsked() {
  const { params } = useLocation();
  const period = usePeriod(PRESET);
  return useMemo(() => {
    const lookedUp = LOOKUPS.some(([name]) => params.has(name));
    const anyTime = lookedUp && !PERIOD.some((name) => params.has(name));
    const named = [...FILTERS, ...LOOKUPS.map(([name]) => name)];
    return { lookedUp, anyTime, asked: [...(anyTime ? [] : period), ...[...params].filter(([name]) => named.includes(name))] };
  }, [params, period]);
}

/** One of a few values for a parameter. Several, which a link may name, are an option of their own. */
function Pick({ label, name, any, options }) {
  const { params, go } = useLocation();
  const values = params.getAll(name);
  const chosen = values.join(', ');
  const unlisted = values.length > 0 && !(values.length === 1 && options.some(([value]) => value === chosen));
  return html`<${Field} label=${label}>${(id) => html`
    <select id=${id} value=${chosen} onChange=${(event) => go({ [name]: event.currentTarget.value || null })}>
      <option value="">${any}</option>
      ${unlisted && html`<option value=${chosen}>${chosen}</option>`}
      ${options.map(([value, text]) => html`<option key=${value} value=${value}>${text}</option>`)}
    </select>`}<//>`;
}

export function Events() {
  const { params, go } = useLocation();
  const { platforms } = useProperty();
  const { asked, lookedUp, anyTime } = useAsked();
  const period = usePeriod(PRESET);
  const stats = useApi('events/stats', period);
  const feed = useFeed(asked);
  const names = (stats.data?.data ?? []).map(({ event }) => [event, event]);
  const foreign = FOREIGN.filter((name) => params.has(name));
  const opened = params.get('id');
  const open = useCallback((event) => go({ id: event.event_id }), [go]);
  return html`<div class="view">
    <div class="bar">
      ${anyTime ? html`<${Field} label="Period">${(id) => html`<output id=${id} class="any-time">Last 366 days</output>`}<//>`
        : html`<${PeriodPicker} preset=${PRESET} />`}
      <${Pick} label="Event" name="event" any="all" options=${names} />
      <${Pick} label="Platform" name="platform" any="any" options=${platforms.map(({ platform }) => [platform, platform])} />
      <${Pick} label="Delivery" name="status" any="in any state" options=${Object.keys(STATUSES).map((status) => [status, status])} />
      <${Pick} label="Sent by" name="class" any=${lookedUp ? 'anybody' : 'people'} options=${lookedUp ? CLASSES : CLASSES.slice(1)} />
      <${LookUp} />
    </div>
    ${foreign.length > 0 && html`<p class="notice">Every event of the period is listed here: the filter by ${foreign.join(', ')} does not apply.</p>`}
    <${Panel} title=${lookedUp ? 'Events found' : 'Events, newest first'} class="events"
      actions=${html`<${Fresh} feed=${feed} /><${CsvButton} path="events" params=${asked} name="events" at=${feed.at} />`}>
      <${Incomplete} from=${feed.completeFrom} />
      ${feed.error && (feed.rows.length === 0 || feed.stale) ? html`<${Failure} error=${feed.error} retry=${feed.reload} />`
        : html`${feed.error && html`<p class="notice warn" role="status">Not up to date: ${feed.error.message}</p>`}
          <${EventList} feed=${feed} lookedUp=${lookedUp} onOpen=${open} />`}
    <//>
    ${opened && html`<${EventDialog} id=${opened} key=${opened} onClose=${() => go({ id: null })} />`}
  </div>`;
}

/** What has come in since the list was read. It is listed when somebody asks for it: nothing moves by itself. */
function Fresh({ feed }) {
  const many = `${feed.fresh}${feed.gap ? '+' : ''} new ${feed.fresh === 1 ? 'event' : 'events'}`;
  return html`<span class="fresh" aria-live="polite">${feed.fresh > 0
    ? html`<button type="button" class="small main" onClick=${feed.showFresh}>${many}: show</button>`
    : html`<span class="muted">${feed.loading ? '' : 'Nothing new'}</span>`}</span>
    <${AsOf} of=${feed} />`;
}
