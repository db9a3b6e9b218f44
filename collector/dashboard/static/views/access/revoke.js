/** Taking a key or token back, for good. */
import { html, useState } from '../../kit/html.js';
import { ApiError, useAsk } from '../../kit/api.js';
import { Dialog, Field } from '../../kit/components.js';

/** @param {{kind: import('../access.js').Kind, name: string, onRevoked: () => void, onClose: () => void}} props */
export function Revoke({ kind, name, onRevoked, onClose }) {
  const ask = useAsk();
  const [typed, setTyped] = useState('');
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState('');
  const revoke = async (event) => {
    event.preventDefault();
    setBusy(true);
    setError('');
    try {
      await ask(`access/${kind.path}/${encodeURIComponent(name)}`, { method: 'DELETE' });
    } catch (cause) {
      if (!(cause instanceof ApiError)) throw cause;
      if (cause.status !== 404) { // else it is gone already
        setError(cause.message);
        setBusy(false);
        return;
      }
    }
    onRevoked();
  };
  return html`<${Dialog} title=${`Revoke the ${kind.one} ${name}?`} onClose=${onClose}><form class="make" onSubmit=${revoke}>
    <p>Whatever uses it is refused within seconds. It cannot be taken back: another one has to be made.</p>
    <${Field} label=${html`Type <b><bdi>${name}</bdi></b> to revoke it`}>${(id) => html`<input id=${id} autofocus value=${typed} autocomplete="off"
      autocapitalize="none" spellcheck="false" onInput=${(event) => setTyped(event.currentTarget.value)} />`}<//>
    <p class="bad" role="alert">${error}</p>
    <p class="confirm-actions"><button type="submit" class="main" disabled=${busy || typed !== name}>Revoke</button>
      <button type="button" onClick=${onClose}>Cancel</button></p>
  </form><//>`;
}
