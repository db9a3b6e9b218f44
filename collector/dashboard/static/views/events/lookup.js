/** Finding events by what identifies them. */
import { html, useEffect, useState } from '../../kit/html.js';
import { Field } from '../../kit/components.js';
import { PERIOD, useLocation } from '../../kit/state.js';

/** The read API's look-ups, and what they are called. */
export const LOOKUPS = [['event_id', 'Event id'], ['order_id', 'Order id'], ['visitor', 'Visitor']];

/** What a look-up puts aside: other filters and the period, so that what there is of it is found. @param {object} found */
export const onlyThis = (found) => ({
  ...Object.fromEntries([...PERIOD, ...LOOKUPS.map(([name]) => name), 'event', 'status', 'platform', 'class', 'id'].map((name) => [name, null])),
  ...found,
});

/** The look-ups in force, each with a button that ends it, and a field for another one. */
export function LookUp() {
  const { params, go } = useLocation();
  const [by, setBy] = useState('event_id');
  const [text, setText] = useState('');
  const asked = LOOKUPS.flatMap(([name, label]) => params.getAll(name).map((value) => [name, label, value]));
  const key = asked.join();
  useEffect(() => setText(''), [key]);
  const find = (event) => {
    event.preventDefault();
    if (text.trim()) go(onlyThis({ [by]: text.trim() }));
  };
  return html`<form class="lookup" role="search" aria-label="Look up events" onSubmit=${find}>
    <${Field} label="Look up by">${(id) => html`<select id=${id} value=${by} onChange=${(event) => setBy(event.currentTarget.value)}>
      ${LOOKUPS.map(([name, label]) => html`<option key=${name} value=${name}>${label}</option>`)}</select>`}<//>
    <input aria-label="What to look up" value=${text} maxlength="255" spellcheck="false" autocomplete="off"
      onInput=${(event) => setText(event.currentTarget.value)} />
    <button type="submit" disabled=${!text.trim()}>Find</button>
    ${asked.map(([name, label, value]) => html`<button type="button" class="chip" key=${`${name}=${value}`} title="End this look-up"
      onClick=${() => go({ [name]: params.getAll(name).filter((each) => each !== value) })}>
      <span class="chip-name">${label}</span> <bdi>${value}</bdi> <span aria-hidden="true">✕</span><span class="hidden">: end this look-up</span></button>`)}
  </form>`;
}
