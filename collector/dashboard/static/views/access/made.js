/** What has just been made, the only time that it is shown. It is in this page's memory alone, and gone when the window is closed. */
import { html, useEffect, useId, useLayoutEffect, useRef, useState } from '../../kit/html.js';
import { Copy, useAnnounce, useProperty } from '../../kit/components.js';
import { useLocation } from '../../kit/state.js';
import { address, snippets } from '../snippets.js';

/** What is done with it on a command line. */
function example({ path }, secret, { property, collect_url: url, api_url: api, currency }) {
  if (path === 'keys') return snippets({ url, key: secret, currency, publishable: false }).find(({ name }) => name === 'curl').text;
  return `curl -sS '${address(api, 'https://API_HOST')}/api/v1/properties/${property}/analytics/summary?period=7d' \\\n  -H 'Authorization: Bearer ${secret}'`;
}

/** How far it is, in words. @param {object|undefined} record as the server lists it, once it does */
function progress(record) {
  if (record?.state === 'ready') return ['good', 'Ready', 'It can be used now.'];
  if (!record || record.state === 'pending') return ['warn', 'Almost ready', 'The Property’s pods are told of it, which takes a few seconds. It is looked after here.'];
  return ['bad', 'Refused', record.message || 'It cannot be used. Revoke it and make another.'];
}

/**
 * Keeps the page as it is for as long as something is shown that cannot be shown again: going back does nothing but call onTry, and the
 * browser asks whoever leaves. When the page is left all the same, even to be kept by the browser for a way back, onGone is called.
 */
function useStay(onTry, onGone) {
  const { stay } = useLocation();
  const calls = useRef();
  calls.current = { onTry, onGone };
  // Not an effect like others: those let go only after the next frame, and whoever leaves until then would be asked for nothing.
  useLayoutEffect(() => {
    const here = location.href;
    stay.current = () => {
      history.pushState(null, '', here);
      calls.current.onTry();
    };
    const leave = (event) => event.preventDefault();
    const gone = () => calls.current.onGone();
    addEventListener('beforeunload', leave);
    addEventListener('pagehide', gone);
    return () => {
      stay.current = null;
      removeEventListener('beforeunload', leave);
      removeEventListener('pagehide', gone);
    };
  }, [stay]);
}

/** @param {{kind: import('../access.js').Kind, name: string, secret: string, record?: object, onDone: () => void}} props */
export function Made({ kind, name, secret, record, onDone }) {
  const property = useProperty();
  const announce = useAnnounce();
  const id = useId();
  const dialog = useRef();
  const [tried, setTried] = useState(false);
  const [tone, state, words] = progress(record);
  const text = example(kind, secret, property);
  useStay(() => setTried(true), onDone);
  useEffect(() => {
    const before = document.activeElement;
    dialog.current.showModal();
    return () => before?.focus?.();
  }, []);
  useEffect(() => { announce(`${state}. ${words}`); }, [state, words, announce]);
  const again = () => { // Escape closes a window, and this one has to be closed on purpose
    dialog.current?.showModal();
    setTried(true);
  };
  return html`<dialog ref=${dialog} class="made" aria-labelledby=${id} onCancel=${(event) => { event.preventDefault(); setTried(true); }} onClose=${again}>
    <header class="panel-head"><h2 id=${id}>The ${kind.one} <bdi>${name}</bdi></h2></header>
    <div class="story">
      <p><b>It is shown only now.</b> Keep it where secrets are kept: nobody, not even Weir, can show it again.</p>
      <pre class="wrap" tabindex="0" role="group" aria-label=${`The ${kind.one}`} data-secret><code>${secret}</code></pre>
      <p><${Copy} text=${secret} label=${`Copy the ${kind.one}`} /></p>
      <p role="status"><span class=${`tag ${tone}`}>${state}</span> <bdi>${words}</bdi></p>
      <h3>${kind.use}</h3>
      <pre class="wrap" tabindex="0" role="group" aria-label=${kind.use}><code>${text}</code></pre>
      <p><${Copy} text=${text} label="Copy the lines" /></p>
      ${tried && html`<p class="notice warn" role="alert">When this window is closed, the ${kind.one} is gone from the page for good.</p>`}
      <p class="confirm-actions"><button type="button" class="main" onClick=${onDone}>I have kept it</button></p>
    </div>
  </dialog>`;
}
