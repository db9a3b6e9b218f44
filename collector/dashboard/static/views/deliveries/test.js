/** One made-up event, to see what a platform says of it. */
import { html, useState } from '../../kit/html.js';
import { ApiError, useAsk } from '../../kit/api.js';
import { Dialog, Failure } from '../../kit/components.js';
import { duration } from '../../kit/format.js';
import { Request } from './request.js';

const VERDICTS = {
  accepted: ['good', 'The platform has taken it'],
  refused: ['bad', 'The platform refuses it'],
  retry: ['warn', 'The platform did not take it, and might another time'],
  not_sent: ['warn', 'Nothing was sent'],
};

/** @param {{platform: {platform: string, type: string, test_mode: string|null}}} props */
export function TestEvent({ platform }) {
  const ask = useAsk();
  const [state, setState] = useState(null);
  const send = async () => {
    setState({ busy: true });
    try {
      setState(await (await ask(`api/platforms/${encodeURIComponent(platform.platform)}/test`, { method: 'POST', body: {} })).json());
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      setState({ error });
    }
  };
  return html`<button type="button" class="small" disabled=${state?.busy} title=${platform.test_mode} onClick=${send}>${state?.busy ? 'Sending…' : 'Send a test event'}</button>
    ${(state?.data || state?.error) && html`<${Dialog} title=${`A test event for ${platform.platform}`} onClose=${() => setState(null)}>
      ${state.error ? html`<${Failure} error=${state.error} retry=${send} />` : html`<${Verdict} result=${state.data} />`}<//>`}`;
}

function Verdict({ result }) {
  const [tone, words] = VERDICTS[result.verdict] ?? ['', result.verdict];
  return html`<div class="story">
    <p class="story-head"><span class=${`tag ${tone}`}>${words}</span> ${result.reason && html`<code>${result.reason}</code>`}
      ${result.status !== null && html`<span class="muted">status ${result.status}</span>`} <span class="muted">in ${duration(result.took_ms / 1000)}</span></p>
    ${result.advice && html`<p>${result.advice}</p>`}
    ${result.explanation && html`<p class="notice">${result.explanation}</p>`}
    ${result.response !== null && html`<h3>What it answered</h3><pre tabindex="0" role="group" aria-label="The platform’s answer">${result.response || '(nothing)'}</pre>`}
    ${result.request && html`<h3>What was sent</h3><${Request} request=${result.request} />`}
  </div>`;
}
