/** What views are made of. Every text is escaped by the templates; what events say never becomes a link or HTML. */
import { createContext, html, useContext, useEffect, useId, useRef, useState } from './html.js';
import { change as changeText, nothing } from './format.js';
import { PERIOD, Link, useLocation } from './state.js';

/** The Property that the page is of: {property, namespace, time_zone, currency, …} of the settings, times, scope, can(scope). */
export const Property = createContext(null);
export const useProperty = () => useContext(Property);

/** Says something to those who cannot see it: announce(text). */
export const Announcer = createContext(() => {});
export const useAnnounce = () => useContext(Announcer);

/** A ref that gives an element the focus when it appears. @param {HTMLElement|null} element */
export const focused = (element) => element?.focus();

/**
 * A part of a view with its heading.
 * @param {{title: string, actions?: any, note?: any, children: any, class?: string}} props
 */
export function Panel({ title, actions, note, children, class: name = '', ...rest }) {
  const id = useId();
  return html`<section class=${`panel ${name}`} aria-labelledby=${id} ...${rest}>
    <header class="panel-head"><h2 id=${id}>${title}</h2>${actions && html`<div class="actions">${actions}</div>`}</header>
    ${note && html`<p class="note">${note}</p>`}
    ${children}
  </section>`;
}

/**
 * An answer in whatever state it is: what is awaited keeps its place, what failed says what to do.
 * @param {{of: ReturnType<import('./api.js').useApi>, height?: number, waiting?: any, empty?: (data) => any, children: (data) => any}} props
 *   height is the room that is kept for it, in rem, so that nothing below moves; waiting stands there
 *   instead where the room depends on what will be shown; empty returns what stands where there is nothing, or null where there is something
 */
export function Answer({ of, height = 12, waiting, empty, children }) {
  const style = { minHeight: `${height}rem` };
  if (of.error && (of.data === undefined || of.stale)) {
    return html`<div style=${style}><${Failure} error=${of.error} retry=${of.reload} /></div>`;
  }
  if (of.data === undefined && waiting) return html`<div aria-busy="true">${waiting}</div>`;
  if (of.data === undefined) return html`<div class="loading" role="status" style=${style}><span>Loading…</span></div>`;
  return html`<div class=${of.stale ? 'answer stale' : 'answer'} aria-busy=${of.stale} style=${style}>
    ${of.error && html`<p class="late" role="status">Not up to date: ${of.error.message}</p>`}
    ${empty?.(of.data) || children(of.data)}
  </div>`;
}

/** Where there is nothing: what that means, and what to do. @param {{title: string, children?: any}} props */
export const Empty = ({ title, children }) => html`<div class="empty"><p class="empty-title">${title}</p>
  ${children && html`<p>${children}</p>`}</div>`;

const fieldName = (field) => field.replace(/(\[\]|\.\d+)+$/, '');

/**
 * An error: its message, what is wrong by parameter, and the way on.
 * @param {{error: import('./api.js').ApiError, retry?: () => void}} props
 */
export function Failure({ error, retry }) {
  const { href } = useLocation();
  const fields = Object.entries(error.fields);
  const names = fields.flatMap(([field]) => (PERIOD.includes(fieldName(field)) ? PERIOD : [fieldName(field)]));
  return html`<div class=${error.passing ? 'failure passing' : 'failure'} role=${error.passing ? 'status' : 'alert'}>
    <p class="failure-title">${fields.length ? 'The address asks for something that is not possible.' : error.message}</p>
    ${fields.length > 0 && html`<ul>${fields.flatMap(([field, messages]) =>
      messages.map((message) => html`<li><code>${field}</code> ${message}</li>`))}</ul>
      <p><${Link} class="button" href=${href(Object.fromEntries(names.map((name) => [name, null])))}>Leave that out<//>
      ${' '}<${Link} href="?">Begin anew<//></p>`}
    ${error.passing && html`<p>It is tried again by itself${error.retryAfter ? `, in ${error.retryAfter} s` : ''}.</p>`}
    ${!fields.length && retry && html`<button type="button" onClick=${retry}>Try again</button>`}
  </div>`;
}

/**
 * How fresh an answer is: while nothing comes in, or the server cannot read what does, that time stands still.
 * @param {{of: {asOf: string|null}}} props
 */
export function AsOf({ of: { asOf } }) {
  const { times } = useProperty();
  if (!asOf) return null;
  const today = times.date(asOf) === times.date(new Date());
  return html`<span class="zone" title="The newest event that the server knows of was received then">as of ${today ? times.second(asOf) : times.moment(asOf)}</span>`;
}

/** What is missing of an answer because it is not kept any more. @param {{from?: string|null}} props */
export function Incomplete({ from }) {
  const { times } = useProperty();
  return from ? html`<p class="notice" role="status">Complete only from ${times.minute(from)} on: what is older is not kept.</p>` : null;
}

/**
 * A key figure, and how it has changed.
 * @param {{label: string, value: string, change?: number|null, before?: string, upIsBad?: boolean, selected?: boolean,
 *   onSelect?: () => void}} props change is the API's fraction; undefined shows none. onSelect makes it a button
 */
export function Stat({ label, value, change, before, upIsBad = false, selected, onSelect }) {
  const tone = !change ? '' : (change > 0) !== upIsBad ? 'good' : 'bad';
  const inner = html`<span class="stat-label">${label}</span>
    <span class="stat-value">${value}</span>
    ${change !== undefined && html`<span class=${`stat-change ${tone}`} title=${before === undefined ? null : `${before} in the period before`}>
      ${change === null ? nothing : `${change > 0 ? '▲ ' : change < 0 ? '▼ ' : ''}${changeText(change)}`}
      <span class="hidden"> against the period before${before === undefined ? '' : `, which had ${before}`}</span></span>`}`;
  return onSelect
    ? html`<button type="button" class="stat" aria-pressed=${selected} onClick=${onSelect}>${inner}</button>`
    : html`<div class="stat">${inner}</div>`;
}

/**
 * A choice of a few, as buttons side by side.
 * @param {{label: string, options: [string, string][], value: string, onChange: (value: string) => void}} props
 */
export function Choice({ label, options, value, onChange }) {
  return html`<div class="choice" role="group" aria-label=${label}>${options.map(([key, text]) => html`
    <button type="button" key=${key} aria-pressed=${key === value} onClick=${() => onChange(key)}>${text}</button>`)}</div>`;
}

/** A field with its label. @param {{label: string, hint?: any, children: (id: string) => any}} props */
export function Field({ label, hint, children }) {
  const id = useId();
  return html`<div class="field"><label for=${id}>${label}</label>${children(id)}${hint && html`<small>${hint}</small>`}</div>`;
}

/** A text to be copied. @param {{text: string, label?: string}} props */
export function Copy({ text, label = 'Copy' }) {
  const announce = useAnnounce();
  const [done, setDone] = useState(false);
  useEffect(() => setDone(false), [text]);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setDone(true);
      announce('Copied.');
    } catch {
      announce('The browser does not let this page copy: mark the text and copy it yourself.');
    }
  };
  return html`<button type="button" class="small" onClick=${copy}>${done ? 'Copied' : label}</button>`;
}

/**
 * A window above the page; Escape closes it, and the focus goes back to where it was.
 * @param {{title: string, onClose: () => void, children: any}} props
 */
export function Dialog({ title, onClose, children }) {
  const id = useId();
  const dialog = useRef();
  const heading = useRef();
  useEffect(() => {
    const before = document.activeElement;
    dialog.current.showModal();
    // Not the button that closes it: the key that opened the dialog may still be held down.
    if (!dialog.current.querySelector('[autofocus]')) heading.current.focus();
    return () => before?.focus?.();
  }, []);
  return html`<dialog ref=${dialog} aria-labelledby=${id} onClose=${onClose}>
    <header class="panel-head"><h2 id=${id} ref=${heading} tabindex="-1">${title}</h2><button type="button" class="small" onClick=${onClose}>Close</button></header>
    ${children}
  </dialog>`;
}

/**
 * A view that is loaded when somebody opens it: whoever does not has nothing of it to fetch.
 * @param {() => Promise<{View: any}>} load imports a module
 * @returns what shows its View
 */
export const later = (load) => function Later(props) {
  const [View, setView] = useState(null);
  const [failed, setFailed] = useState(false);
  useEffect(() => { load().then((module) => setView(() => module.View), () => setFailed(true)); }, []);
  if (failed) return html`<${Empty} title="This view could not be loaded."><button type="button" onClick=${() => location.reload()}>Load the page again</button><//>`;
  return View ? html`<${View} ...${props} />` : html`<div class="loading" role="status"><span>Loading…</span></div>`;
};
