/** The way in where people have accounts elsewhere, as in the console. */
import { html, useEffect } from '../kit/html.js';
import { MARK } from '../kit/session.js';

/**
 * It is taken at once, but by whoever has just signed out, or comes from there and is not signed in.
 * @param {{session: object}} props a closed one, whose answer has sign_in
 */
export function View({ session: { error, ended, left, back } }) {
  const { sign_in: where, signed_out: out } = error.body;
  const away = !(left || out || back);
  const go = () => {
    const to = new URL(where, location.href);
    to.searchParams.set('return', `${location.pathname}${location.search || '?'}${location.search ? '&' : ''}${MARK}=1`);
    if (to.origin === location.origin) location.replace(to);
  };
  useEffect(() => {
    document.title = 'Sign in – Weir';
    if (away) go();
  }, []);
  return html`<main class="alone"><div class="login panel">
    <h1><img src="static/icon.svg" alt="" width="32" height="32" /> Weir</h1>
    <p role="status">${away ? `${ended ? 'The session has ended. ' : ''}You are led to the sign-in…`
      : back && !out ? 'Signing in has not worked: this browser has come back without a session. It has to take cookies of this page.'
      : 'You are signed out.'}</p>
    <button type="button" class="main" onClick=${go}>Sign in</button>
  </div></main>`;
}
