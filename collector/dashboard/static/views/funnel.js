/** How many visitors take each of some steps, and where the others are lost. */
import { html, useId, useMemo, useRef, useState } from '../kit/html.js';
import { useApi } from '../kit/api.js';
import { Answer, Empty, Field, Incomplete, Panel, focused, useAnnounce } from '../kit/components.js';
import { Filters, PeriodPicker, usePeriod } from '../kit/controls.js';
import { count, duration, percent } from '../kit/format.js';
import { filterParams, useLocation } from '../kit/state.js';
import { CsvButton } from '../kit/table.js';
import { moved, readStep, writeStep } from './steps.js';

const DEFAULT_STEPS = ['pageview', 'add_to_cart', 'purchase'];
const WINDOWS = [['30m', '30 minutes'], ['1h', '1 hour'], ['1d', '1 day'], ['7d', '7 days'], ['30d', '30 days'], ['none', 'any time']];
const MOST = 10;

export function Funnel() {
  const { params, go } = useLocation();
  const period = usePeriod();
  const steps = params.getAll('steps').length ? params.getAll('steps') : DEFAULT_STEPS;
  const window = params.get('window') ?? '7d';
  const names = useApi('events/stats', [...period, ['limit', '1000']]);
  const question = [...steps.map((step) => ['steps', step]), ['window', window], ...period, ...filterParams(params)];
  const funnel = useApi(steps.length > 1 ? 'analytics/funnel' : null, question);
  const filtered = filterParams(params).length > 0;
  const windows = WINDOWS.some(([key]) => key === window) ? WINDOWS : [...WINDOWS, [window, window]];
  return html`<div class="view">
    <div class="bar"><${PeriodPicker} />
      <${Field} label="All steps within">${(id) => html`<select id=${id} value=${window}
        onChange=${(event) => go({ window: event.currentTarget.value === '7d' ? null : event.currentTarget.value })}>
        ${windows.map(([key, text]) => html`<option key=${key} value=${key}>${text}</option>`)}</select>`}<//>
      <${Filters} /></div>
    <div class="columns funnel">
      <${Steps} steps=${steps} names=${names.data?.data ?? []} onChange=${(next) => go({ steps: next })} />
      <${Panel} title="Visitors" actions=${steps.length > 1 && html`<${CsvButton} path="analytics/funnel" params=${question} name="funnel" at=${funnel.at} />`}>
        ${steps.length < 2 ? html`<${Empty} title="A funnel has at least two steps.">Add another one.<//>`
          : html`<${Answer} of=${funnel} height=${20} empty=${({ data }) => data.steps[0].visitors === 0 && html`
              <${Empty} title="Nobody took the first step in this period.">Choose a longer period${filtered ? ', another first step, or take a filter away' : ' or another first step'}.<//>`}>
            ${({ data }) => html`<${Bars} data=${data} filtered=${filtered} />`}<//>`}
      <//>
    </div>
  </div>`;
}

/** The steps' bars: as long as the share of those who entered. */
function Bars({ data, filtered }) {
  return html`<${Incomplete} from=${data.complete_from} />
    ${filtered && html`<p class="note">Only events that the filters keep take a step.</p>`}
    <p class="total"><b>${percent(data.conversion_rate)}</b> of ${count(data.steps[0].visitors)} visitors took all ${data.steps.length} steps.</p>
    <ol class="bars">${data.steps.map((step) => html`<li key=${step.step}>
      ${step.step > 1 && html`<p class="lost"><span class=${step.drop_off ? 'bad' : ''}>${count(step.drop_off)} lost</span>
        <span>${percent(step.step_conversion_rate)} went on</span>
        <span>${step.median_seconds == null ? '' : `median ${duration(step.median_seconds)}`}</span></p>`}
      <p class="step-name"><span class="step-number">${step.step}</span> <${Names} names=${step.events ?? readStep(step.event)} /></p>
      <div class="bar-line"><span class="bar-fill" style=${{ '--part': step.conversion_rate }}></span>
        <span class="bar-text"><b>${count(step.visitors)}</b> <span class="muted">${percent(step.conversion_rate)}</span></span></div>
    </li>`)}</ol>`;
}

const Names = ({ names }) => names.map((name, i) => html`${i > 0 && html` <span class="muted">or</span> `}<bdi>${name}</bdi>`);

/** The steps, to be changed: order, alternatives, more of them. */
function Steps({ steps, names, onChange }) {
  const list = useId();
  const announce = useAnnounce();
  const box = useRef();
  const known = useMemo(() => names.map(({ event, count: times }) => [event, times]), [names]);
  const set = (next, said) => {
    onChange(next);
    announce(said);
  };
  const move = (from, to) => {
    set(moved(steps, from, to), `Step ${from + 1} is now step ${to + 1}.`);
    // The focus goes along with the step.
    requestAnimationFrame(() => box.current?.querySelectorAll('ol.steps > li')[to]?.querySelector(to < from ? '.up' : '.down')?.focus());
  };
  const remove = (i) => {
    set(steps.filter((_, k) => k !== i), `Step ${i + 1} is removed.`);
    requestAnimationFrame(() => box.current?.querySelector('.add:last-child input')?.focus());
  };
  const replace = (i, text) => steps.map((step, k) => (k === i ? text : step));
  return html`<${Panel} title="Steps" note="In this order; other events may come between. One step may be any of several events.">
    <div ref=${box}>
    <datalist id=${list}>${known.map(([name, times]) => html`<option key=${name} value=${name}>${count(times)}</option>`)}</datalist>
    <ol class="steps">${steps.map((step, i) => {
      const events = readStep(step);
      return html`<li key=${i}>
        <span class="step-number" aria-hidden="true">${i + 1}</span>
        <div class="step-events">${events.map((name, k) => html`<span class="chip" key=${k}><bdi>${name}</bdi>
            ${events.length > 1 && html` <button type="button" class="cross" aria-label=${`Remove ${name} from step ${i + 1}`}
              onClick=${() => set(replace(i, writeStep(events.filter((_, n) => n !== k))), 'Removed.')}>✕</button>`}</span>`)}
          <${AddName} list=${list} label=${`Or another event as step ${i + 1}`} text="or …"
            onAdd=${(name) => set(replace(i, writeStep([...new Set([...events, name])])), `Step ${i + 1} may also be ${name}.`)} /></div>
        <div class="step-buttons">
          <button type="button" class="small up" disabled=${i === 0} aria-label=${`Step ${i + 1} earlier`} onClick=${() => move(i, i - 1)}>↑</button>
          <button type="button" class="small down" disabled=${i === steps.length - 1} aria-label=${`Step ${i + 1} later`}
            onClick=${() => move(i, i + 1)}>↓</button>
          <button type="button" class="small" disabled=${steps.length < 2} aria-label=${`Remove step ${i + 1}`}
            onClick=${() => remove(i)}>✕</button>
        </div></li>`;
    })}</ol>
    ${steps.length < MOST ? html`<${AddName} list=${list} label="Another step" text="+ Step" open
        onAdd=${(name) => set([...steps, writeStep([name])], `${name} is step ${steps.length + 1}.`)} />`
      : html`<p class="note">A funnel has at most ${MOST} steps.</p>`}
    </div>
  <//>`;
}

/** Takes the name of an event: one that there is, or any other. */
function AddName({ list, label, text, open: always = false, onAdd }) {
  const [open, setOpen] = useState(always);
  const [name, setName] = useState('');
  const button = useRef();
  const close = () => {
    setOpen(always);
    requestAnimationFrame(() => button.current?.focus());
  };
  const add = (event) => {
    event.preventDefault();
    if (!name.trim()) return;
    onAdd(name.trim());
    setName('');
    close();
  };
  if (!open) return html`<button type="button" class="small" ref=${button} aria-label=${label} onClick=${() => setOpen(true)}>${text}</button>`;
  return html`<form class="add" onSubmit=${add}><input list=${list} aria-label=${label} placeholder=${`${label} …`} value=${name} maxlength="300"
      ref=${always ? null : focused} onInput=${(event) => setName(event.currentTarget.value)} />
    <button type="submit" disabled=${!name.trim()}>Add</button>
    ${!always && html` <button type="button" onClick=${close}>Cancel</button>`}</form>`;
}
