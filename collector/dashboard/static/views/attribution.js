/** Which touches get the credit for conversions, by three models side by side. */
import { html, useId } from '../kit/html.js';
import { together, useApi } from '../kit/api.js';
import { Answer, Choice, Empty, Field, Incomplete, Panel, useProperty } from '../kit/components.js';
import { FilterBy, Filters, PeriodPicker, usePeriod } from '../kit/controls.js';
import { count, money } from '../kit/format.js';
import { filterParams, useLocation } from '../kit/state.js';
import { CsvButton, Few, Part, Table, useFew } from '../kit/table.js';

const MODELS = [['first_touch', 'First touch'], ['last_touch', 'Last touch'], ['linear', 'Linear']];
const GROUPS = [['channel', 'Channel'], ['source', 'Source'], ['medium', 'Medium'], ['campaign', 'Campaign']];
const LOOKBACKS = [['1d', '1 day'], ['7d', '7 days'], ['30d', '30 days'], ['90d', '90 days'], ['none', 'any time']];

/**
 * One row a group with what each model gives it; what a model's answer does not have is null. The order is that of the first
 * answer that has the group, last touch's first. Pure.
 * @param {object[]} answers the data of each model, in the models' order
 * @param {string} by
 * @returns {{name: string, models: (object|null)[]}[]}
 */
export function merged(answers, by) {
  const order = [answers[1], answers[2], answers[0]];
  const names = [...new Set(order.flatMap(({ results }) => results.map((result) => result[by])))];
  const found = answers.map(({ results }) => new Map(results.map((result) => [result[by], result])));
  return names.map((name) => ({ name, models: found.map((results) => results.get(name) ?? null) }));
}

export function Attribution() {
  const { params, go } = useLocation();
  const period = usePeriod();
  const list = useId();
  const by = params.get('group_by') ?? 'channel';
  const event = params.get('conversion_event') ?? 'purchase';
  const lookback = params.get('lookback') ?? '30d';
  const names = useApi('events/stats', [...period, ['limit', '1000']]);
  const question = [['conversion_event', event], ['group_by', by], ['lookback', lookback], ...period, ...filterParams(params)];
  const answer = together(MODELS.map(([model]) => useApi('analytics/attribution', [['model', model], ...question])));
  const lookbacks = LOOKBACKS.some(([key]) => key === lookback) ? LOOKBACKS : [...LOOKBACKS, [lookback, lookback]];
  return html`<div class="view">
    <div class="bar"><${PeriodPicker} />
      <${Field} label="Conversion">${(id) => html`<input id=${id} list=${list} defaultValue=${event} key=${event} maxlength="300"
        onChange=${({ currentTarget }) => go({ conversion_event: currentTarget.value === 'purchase' ? null : currentTarget.value })} />
        <datalist id=${list}>${(names.data?.data ?? []).map((each) => html`<option key=${each.event} value=${each.event}>${count(each.count)}</option>`)}</datalist>`}<//>
      <${Field} label="Touches count for">${(id) => html`<select id=${id} value=${lookback}
        onChange=${({ currentTarget }) => go({ lookback: currentTarget.value === '30d' ? null : currentTarget.value })}>
        ${lookbacks.map(([key, text]) => html`<option key=${key} value=${key}>${text}</option>`)}</select>`}<//>
      <${Filters} /></div>
    <${Models} answer=${answer} question=${question} by=${by} event=${event} />
  </div>`;
}

function Models({ answer, question, by, event }) {
  const { params, go } = useLocation();
  const { currency } = useProperty();
  const measure = params.get('measure') === 'revenue' ? 'revenue' : 'conversions';
  const { limit, ...few } = useFew('limit');
  // While the answers are still those of another grouping, they are shown by that.
  const grouped = answer.data?.flatMap(({ data }) => data.results)[0];
  const shown = GROUPS.find(([key]) => grouped && key in grouped) ?? GROUPS.find(([key]) => key === by) ?? [by, by];
  const write = measure === 'revenue' ? (amount) => money(amount, currency) : count;
  const actions = html`
    <${Choice} label="Group by" options=${GROUPS} value=${by} onChange=${(value) => go({ group_by: value === 'channel' ? null : value })} />
    <${Choice} label="What is credited" options=${[['conversions', 'Conversions'], ['revenue', 'Value']]} value=${measure}
      onChange=${(value) => go({ measure: value === 'conversions' ? null : value }, { replace: true })} />`;
  return html`<${Panel} title="Credit by model" actions=${actions}
      note="First touch and last touch give all credit to one touch, linear gives each an equal part.">
    <${Answer} of=${answer} height=${20} empty=${([{ data }]) => data.conversions === 0 && html`
        <${Empty} title=${`There is no ${event} in this period.`}>Choose a longer period, or another conversion.<//>`}>
      ${(answers) => {
        const rows = merged(answers.map(({ data }) => data), shown[0]);
        return html`<${Incomplete} from=${answers[0].data.complete_from} />
        <${Table} caption="Credit by model" rows=${rows} limit=${limit} rowKey=${(row) => row.name} columns=${[
          { key: 'name', label: shown[1], cell: ({ name }) => html`<${FilterBy} by=${shown[0]} value=${name} />` },
          ...MODELS.map(([key, label], i) => ({
            key, label, number: true, class: 'wide', value: ({ models }) => models[i]?.[measure] ?? null,
            cell: ({ models }) => html`<${Part} part=${part(models[i], answers[i].data, measure)}>${write(models[i]?.[measure])}<//>`,
          })),
        ]} foot=${html`<tr><th scope="row">All</th>${answers.map(({ data }) => html`<td class="number">${write(data[measure])}</td>`)}</tr>`} />
        ${rows.length > limit && html`<p class="note">${count(rows.length - limit)} more.</p>`}
        <${Few} ...${few} limit=${limit} more=${rows.length > limit} />`;
      }}<//>
    <p class="actions">${MODELS.map(([model, label]) => html`<span key=${model}>${label}:${' '}
      <${CsvButton} path="analytics/attribution" params=${[['model', model], ...question]} name=${`attribution-${model}`} at=${answer.at} /></span>`)}</p>
  <//>`;
}

/** How long a bar is: the API's share of conversions, and of the value what is drawn of it, which no number tells. */
function part(result, total, measure) {
  if (!result) return 0;
  if (measure === 'conversions') return result.share;
  return total.revenue > 0 ? Math.max(0, result.revenue / total.revenue) : 0;
}
