/** What a platform in the mode Shadow would have been sent. */
import { html } from '../../kit/html.js';
import { useApi } from '../../kit/api.js';
import { Answer, Dialog, Empty, useProperty } from '../../kit/components.js';
import { Request } from './request.js';

/** @param {{platform: string, onClose: () => void}} props */
export function ShadowDialog({ platform, onClose }) {
  const { times } = useProperty();
  const answer = useApi(`platforms/${encodeURIComponent(platform)}/shadow`, [['limit', '50']]);
  return html`<${Dialog} title=${`What ${platform} would be sent`} onClose=${onClose}>
    <p class="note">The newest 50 events, for a day at most. Credentials are not read in the mode Shadow, and stand as “…”.</p>
    <${Answer} of=${answer} height=${20} empty=${({ data }) => (data.length ? null : html`<${Empty} title="Nothing is kept to look at.">It comes with
        the next event, and goes after a day or when somebody is erased.<//>`)}>${({ data }) => html`<ol class="shadowed">${data.map((each, i) => html`
      <li key=${i}><details><summary><bdi>${each.event}</bdi> <span class="muted">${times.moment(each.received_at)}</span>
        ${each.verdict === 'send' ? html` <span class="tag good">would be sent</span>` : html` <span class="tag">skipped</span> <code>${each.reason}</code>`}</summary>
        ${each.request ? html`<${Request} request=${each.request} />` : html`<p class="note">There is no request to show.</p>`}</details></li>`)}</ol>`}<//>
  <//>`;
}
