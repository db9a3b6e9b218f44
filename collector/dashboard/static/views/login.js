/** The way in: an access token, or on one's own machine a click. */
import { html, useEffect, useRef, useState } from '../kit/html.js';
import { ApiError, ask } from '../kit/api.js';
import { Field } from '../kit/components.js';

const refusal = (error) => {
  if (error.status === 401) return 'This token is not valid: it is unknown, has expired or was removed.';
  if (error.status === 404) return 'This token is not valid here: it is another Property’s, which has a page of its own.';
  if (error.status === 429) return `Too many failed attempts from your address. Try again${error.retryAfter ? ` in ${error.retryAfter} s` : ' in a moment'}.`;
  return Object.values(error.fields).flat()[0] ?? error.message;
};

/**
 * @param {{loopback: boolean, ended?: boolean, onEnter: () => Promise<void>}} props loopback says that a click is enough, ended that the
 *   page was open until just now
 */
export function Login({ loopback, ended = false, onEnter }) {
  const [token, setToken] = useState('');
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const first = useRef();
  useEffect(() => { document.title = 'Log in – Weir'; first.current?.focus(); }, []);
  const enter = async (body) => {
    setBusy(true);
    setError(null);
    try {
      await ask('session', { method: 'POST', body });
      setToken('');
      await onEnter();
    } catch (cause) {
      if (!(cause instanceof ApiError)) throw cause;
      setError(refusal(cause));
    } finally {
      setBusy(false);
    }
  };
  const submit = (event) => {
    event.preventDefault();
    enter({ token: token.trim() });
  };
  return html`<main class="alone"><div class="login panel">
    <h1><img src="static/icon.svg" alt="" width="32" height="32" /> Weir</h1>
    ${ended && html`<p class="notice warn" role="status">The session has ended: its token has expired or was removed, or it was open for too
      long. After the next log-in the same view is there again.</p>`}
    ${loopback && html`<p>This is your own machine: no token is needed.</p>
      <p><button type="button" class="main" ref=${first} disabled=${busy} onClick=${() => enter({ loopback: true })}>Open</button></p>
      <p class="or">or with a token, to see what it may see</p>`}
    <form onSubmit=${submit}>
      <${Field} label="Access token" hint="It begins with wt_. The Secret that the Property’s status names has it.">${(id) => html`
        <input id=${id} ref=${loopback ? null : first} type="password" autocomplete="off" spellcheck="false" required value=${token}
          aria-invalid=${error !== null} aria-describedby="refused" onInput=${(event) => setToken(event.currentTarget.value)} />`}<//>
      <p id="refused" class="bad" role="alert">${error}</p>
      <button type="submit" class=${loopback ? '' : 'main'} disabled=${busy || !token.trim()}>Log in</button>
    </form>
  </div></main>`;
}
