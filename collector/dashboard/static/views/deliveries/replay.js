/** Delivering again what did not reach a platform. */
import { html, useState } from '../../kit/html.js';
import { ApiError, useAsk } from '../../kit/api.js';
import { useAnnounce } from '../../kit/components.js';
import { count } from '../../kit/format.js';

/**
 * A button that asks back before it replays.
 * @param {{platform: string, from: string, to?: string, statuses: string[], children: any}} props
 *   from and to as the read API takes them; children say what will be put back
 */
export function Replay({ platform, from, to, statuses, children }) {
  const announce = useAnnounce();
  const ask = useAsk();
  const [state, setState] = useState({ step: 'offered' });
  const replay = async () => {
    setState({ step: 'busy' });
    try {
      const { data } = await (await ask('api/deliveries/replay', { method: 'POST', body: { platform, from, to, status: statuses } })).json();
      const said = data.replayed === 1 ? '1 delivery was put back in line and is sent now.'
        : `${count(data.replayed)} deliveries were put back in line and are sent now.`;
      setState({ step: 'done', said });
      announce(said);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      setState({ step: 'failed', said: Object.values(error.fields).flat()[0] ?? error.message });
    }
  };
  if (state.step === 'offered') {
    return html`<p><button type="button" class="small" onClick=${() => setState({ step: 'asked' })}>Deliver again…</button></p>`;
  }
  if (state.step === 'done') return html`<p class="notice" role="status">${state.said}</p>`;
  return html`<div class="notice confirm" role="group" aria-label=${`Deliver again to ${platform}`}>
    <p>${children}</p>
    <p>What was delivered is never sent again, and every event keeps the ids by which the platform tells repeats.</p>
    ${state.step === 'failed' && html`<p class="bad" role="alert">${state.said}</p>`}
    <p class="confirm-actions"><button type="button" class="main" disabled=${state.step === 'busy'} onClick=${replay}>Deliver again</button>
      <button type="button" disabled=${state.step === 'busy'} onClick=${() => setState({ step: 'offered' })}>Cancel</button></p>
  </div>`;
}
