/** A request to a platform, as it goes out. */
import { html } from '../../kit/html.js';
import { Copy } from '../../kit/components.js';

/** The body as a text to read. @param {{body: any, body_encoding: string}} request */
const bodyOf = ({ body, body_encoding: encoding }) => (encoding === 'json' ? JSON.stringify(body, null, 2) : String(body ?? ''));

/** @param {{request: {method: string, url: string, headers: Record<string, string|string[]>, body: any, body_encoding: string}}} props */
export function Request({ request }) {
  const text = bodyOf(request);
  return html`<p class="request-line"><code>${request.method} ${request.url}</code></p>
    <dl class="pairs">${Object.entries(request.headers ?? {}).map(([name, value]) => html`<dt key=${name}>${name}</dt><dd>${[value].flat().join(', ')}</dd>`)}</dl>
    <pre tabindex="0" role="group" aria-label="The body">${text}</pre>
    <p><${Copy} text=${text} label="Copy the body" /> ${request.body_encoding === 'base64' && html`<span class="muted">in Base64</span>`}</p>`;
}
