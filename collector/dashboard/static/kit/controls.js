/** What every view of figures is asked with: the period, and the filters. */
import { html, useEffect, useMemo, useRef, useState } from './html.js';
import { Field, focused, useProperty } from './components.js';
import { DEFAULT, NAMED, localDate, periodParams } from './period.js';
import { FILTERS, filterParams, useLocation } from './state.js';
import { useEvery } from './live.js';

/**
 * The period of the view as the read API's parameters; new ones when the Property's day changes.
 * @param {string} [preset] the view's own period where the address names none
 */
export function usePeriod(preset = DEFAULT) {
  const { params } = useLocation();
  const { time_zone: zone } = useProperty();
  const [day, setDay] = useState(() => localDate(new Date(), zone));
  useEvery(30000, () => setDay(localDate(new Date(), zone)));
  return useMemo(() => periodParams(params, zone, new Date(), preset), [params, zone, preset, day]);
}

/** Picks the period. @param {{preset?: string}} props the view's own period where the address names none */
export function PeriodPicker({ preset = DEFAULT }) {
  const { params, go } = useLocation();
  const { time_zone: zone } = useProperty();
  const [from, to] = [params.get('from') ?? '', params.get('to') ?? ''];
  const named = from || to ? 'custom' : params.get('period') || preset;
  const [custom, setCustom] = useState(named === 'custom');
  const [dates, setDates] = useState({ from, to });
  useEffect(() => setDates({ from, to }), [from, to]);
  useEffect(() => setCustom(named === 'custom'), [named]);
  const pick = (value) => {
    if (value === 'custom') {
      const period = Object.fromEntries(periodParams(params, zone, new Date(), preset));
      const today = localDate(new Date(), zone);
      setDates({ from: period.from ?? today, to: period.to ?? today });
      setCustom(true);
    } else {
      go({ period: value === preset ? null : value, from: null, to: null });
    }
  };
  const apply = (event) => {
    event.preventDefault();
    go({ period: null, from: dates.from, to: dates.to });
  };
  const date = (name, label) => html`<label>${label} <input type=${/T/.test(dates[name]) ? 'text' : 'date'} value=${dates[name]}
    onInput=${(event) => setDates({ ...dates, [name]: event.currentTarget.value })} /></label>`;
  return html`<form class="period" onSubmit=${apply}>
    <${Field} label="Period">${(id) => html`
      <select id=${id} value=${custom ? 'custom' : named} onChange=${(event) => pick(event.currentTarget.value)}>
        ${Object.entries(NAMED).map(([key, text]) => html`<option key=${key} value=${key}>${text}</option>`)}
        ${!custom && !Object.hasOwn(NAMED, named) && html`<option value=${named}>${named}</option>`}
        <option value="custom">From … to …</option>
      </select>`}<//>
    ${custom && html`<span class="dates">${date('from', 'from')} ${date('to', 'to')}
      <button type="submit" disabled=${!dates.from}>Show</button></span>`}
    <span class="zone" title="Days begin and end in the Property’s time zone">${zone}</span>
  </form>`;
}

const LABELS = {
  event: 'Event', channel: 'Channel', source: 'Source', medium: 'Medium', campaign: 'Campaign', page: 'Page', product: 'Product',
};

/** The filters in force, each with a button that takes it away; and a way to name another. */
export function Filters() {
  const { params, go } = useLocation();
  const [open, setOpen] = useState(false);
  const [draft, setDraft] = useState({ name: 'channel', value: '' });
  const box = useRef();
  const filters = filterParams(params);
  // The element that had the focus is gone: it goes to the button that stays.
  const back = () => requestAnimationFrame(() => box.current?.querySelector('.add-filter')?.focus());
  const close = () => { setOpen(false); back(); };
  const without = (name, value) => { go({ [name]: params.getAll(name).filter((each) => each !== value) }); back(); };
  const clear = () => { go(Object.fromEntries(FILTERS.map((name) => [name, null]))); back(); };
  const add = (event) => {
    event.preventDefault();
    if (!draft.value) return;
    go({ [draft.name]: [...new Set([...params.getAll(draft.name), draft.value])] });
    setDraft({ ...draft, value: '' });
    close();
  };
  return html`<div class="filters" ref=${box} role="group" aria-label="Filters">
    ${filters.map(([name, value]) => html`<button type="button" class="chip" key=${`${name}=${value}`} title="Remove this filter"
      onClick=${() => without(name, value)}><span class="chip-name">${LABELS[name]}</span> <bdi>${value}</bdi>
      <span aria-hidden="true">✕</span><span class="hidden">: remove this filter</span></button>`)}
    ${filters.length > 1 && html`<button type="button" class="small" onClick=${clear}>Clear</button>`}
    ${open ? html`<form class="filter-form" onSubmit=${add}>
      <select aria-label="What to filter by" value=${draft.name} onChange=${(event) => setDraft({ ...draft, name: event.currentTarget.value })}>
        ${FILTERS.map((name) => html`<option key=${name} value=${name}>${LABELS[name]}</option>`)}</select>
      <input aria-label="Value" value=${draft.value} maxlength="500" placeholder="exactly as written" ref=${focused}
        onInput=${(event) => setDraft({ ...draft, value: event.currentTarget.value })} />
      <button type="submit">Add</button> <button type="button" onClick=${close}>Cancel</button></form>`
    : html`<button type="button" class="small add-filter" onClick=${() => setOpen(true)}>+ Filter</button>`}
  </div>`;
}

/** The value of a dimension, as a button that filters by it. @param {{by: string, value: string}} props */
export function FilterBy({ by, value }) {
  const { params, go } = useLocation();
  const chosen = params.getAll(by).includes(value);
  const turn = () => go({ [by]: chosen ? params.getAll(by).filter((each) => each !== value) : [...params.getAll(by), value] });
  return html`<button type="button" class="value" aria-pressed=${chosen} onClick=${turn}
    title=${chosen ? `${value} – remove this filter` : `${value} – filter by it`}><bdi>${value}</bdi></button>`;
}
