/** What was refused, and why: where numbers are short. */
import { html, useMemo } from '../kit/html.js';
import { Answer, Empty, Panel, useProperty } from '../kit/components.js';
import { CsvButton, Table } from '../kit/table.js';
import { useApi } from '../kit/api.js';
import { count, nothing } from '../kit/format.js';
import { useStill } from '../kit/live.js';
import { useLocation } from '../kit/state.js';

/** How many are listed at first, and the most that there are. */
const FEW = 100;
const ALL = 1000;

export function Rejections() {
  const { times } = useProperty();
  const { params: address, go } = useLocation();
  const limit = address.get('limit') === String(ALL) ? ALL : FEW;
  const params = useMemo(() => [['limit', String(limit)]], [limit]);
  const answer = useApi('rejections', params, { every: 15000 });
  const [still, shown] = useStill(answer.data, answer.answered);
  const columns = useMemo(() => [
    { key: 'received_at', label: 'When', cell: ({ received_at: at }) => times.moment(at) },
    { key: 'errors', label: 'What is wrong', value: ({ message }) => message, cell: (row) => html`<${Wrong} ...${row} />` },
    { key: 'event', label: 'Event', cell: ({ event }) => html`<bdi>${event ?? nothing}</bdi>` },
    { key: 'event_id', label: 'Event id', cell: ({ event_id: id }) => html`<bdi>${id ?? nothing}</bdi>` },
    { key: 'endpoint', label: 'Sent to' },
    { key: 'api_key', label: 'Key', cell: ({ api_key: key }) => key ?? nothing },
  ], [times]);
  return html`<div class="view"><${Panel} title="Refused, newest first" ...${still}
      actions=${html`<${CsvButton} path="rejections" params=${params} name="rejections" at=${answer.at} />`}
      note="What was sent to collect and could not be taken. Nothing of it is counted or delivered; values are not kept. The newest 1,000 are, until a month after the last.">
    <${Answer} of=${{ ...answer, data: shown }} height=${24} empty=${({ data }) => (data.length ? null : html`
        <${Empty} title="Nothing was refused.">Whatever came with a valid key was taken. What comes without one, or never arrives, is not listed here.<//>`)}>${({ data }) => html`
      <${Table} caption="Refused events and requests" columns=${columns} rows=${data} rowKey=${({ id }) => id} />
      <p class="note">${data.length < limit ? `These are all ${count(data.length)}.` : limit === ALL ? `The newest ${count(ALL)}.` : html`
        The newest ${count(limit)}. <button type="button" class="small" onClick=${() => go({ limit: ALL }, { replace: true })}>Show up to ${count(ALL)}</button>`}</p>`}<//>
  <//></div>`;
}

/** What the sender was told. */
function Wrong({ message, errors }) {
  const fields = Object.entries(errors);
  if (fields.length === 0) return html`<bdi>${message}</bdi>`;
  return html`<ul class="wrong">${fields.flatMap(([field, messages]) => messages.map((text) => html`<li><code>${field}</code> <bdi>${text}</bdi></li>`))}</ul>`;
}
