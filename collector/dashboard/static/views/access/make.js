/** Making a key or a token: what it is called, what it may do, until when. */
import { html, useId, useRef, useState } from '../../kit/html.js';
import { ApiError, useAsk } from '../../kit/api.js';
import { focused, useProperty } from '../../kit/components.js';
import { localDate } from '../../kit/period.js';
import { LENGTHS, expiry } from './expiry.js';
import { newSecret, sha256 } from './secret.js';

/** What a name may look like, as a pattern of HTML. */
const NAME = '[a-z0-9]([a-z0-9\\-]*[a-z0-9])?';

const SCOPES = {
  read: 'read: every number and event', write: 'write: also deliver again', admin: 'admin: everything, also erase a person',
};

/** What went wrong, by field; what belongs to none is said below all. @param {ApiError} error */
function refusal(error) {
  if (error.passing && error.status !== 429) {
    return { form: [`It is not known whether it was made: ${error.message} If it is listed below after all, revoke it and make another.`] };
  }
  if (error.status === 409 && !error.fields.name) return { ...error.fields, name: [error.message] };
  const { name, scope, expires_at: expires, ...others } = error.fields;
  const rest = Object.values(others).flat();
  return { name, scope, expires, form: rest.length || name || scope || expires ? rest : [error.message] };
}

/**
 * @param {{kind: import('../access.js').Kind, scopes?: string[], onMade: (name: string, secret: string) => void, onCancel: () => void}} props
 *   scopes are those that may be given
 */
export function Make({ kind, scopes, onMade, onCancel }) {
  const { times, time_zone: zone } = useProperty();
  const ask = useAsk();
  const form = useRef();
  const [fields, setFields] = useState({ name: '', scope: scopes?.[0], length: '90', date: '' });
  const [errors, setErrors] = useState({});
  const [busy, setBusy] = useState(false);
  const set = (name) => (event) => setFields({ ...fields, [name]: event.currentTarget.value });
  const until = expiry(fields.length, fields.date, zone, new Date());
  const submit = async (event) => {
    event.preventDefault();
    setBusy(true);
    setErrors({});
    try {
      const secret = newSecret(kind.prefix);
      await ask(`access/${kind.path}`, { method: 'POST', body: { name: fields.name, sha256: await sha256(secret), scope: scopes && fields.scope, expires_at: until } });
      onMade(fields.name, secret);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      setErrors(refusal(error));
      setBusy(false);
      requestAnimationFrame(() => form.current?.querySelector('[aria-invalid=true]')?.focus());
    }
  };
  return html`<form class="make" ref=${form} onSubmit=${submit} aria-label=${`A new ${kind.one}`}>
    <div class="bar top-aligned">
      <${Input} label="Name" hint="Say who or what uses it: small letters, digits and -." errors=${errors.name}>${(props) => html`
        <input ...${props} ref=${focused} value=${fields.name} required maxlength="63" pattern=${NAME} title="Small letters, digits and -, with no - at either end"
          autocomplete="off" autocapitalize="none" spellcheck="false" onInput=${set('name')} />`}<//>
      ${scopes && html`<${Input} label="It may" errors=${errors.scope}>${(props) => html`<select ...${props} value=${fields.scope} onChange=${set('scope')}>
        ${scopes.map((scope) => html`<option key=${scope} value=${scope}>${SCOPES[scope] ?? scope}</option>`)}</select>`}<//>`}
      <${Input} label="It is valid for" errors=${errors.expires} hint=${until && html`It stops working on ${times.minute(until)}${zone && ` (${zone})`}.`}>${(props) => html`
        <select ...${props} value=${fields.length} onChange=${set('length')}>${LENGTHS.map(([length, text]) => html`<option key=${length} value=${length}>${text}</option>`)}</select>`}<//>
      ${fields.length === 'date' && html`<${Input} label="Its last day">${(props) => html`<input ...${props} type="date" required value=${fields.date}
        min=${localDate(new Date(), zone)} onInput=${set('date')} />`}<//>`}
    </div>
    ${until === null && html`<p class="notice warn">Whoever finds it can use it until somebody revokes it. An end is safer: make another in time, and let both be valid for a while.</p>`}
    <p class="bad" role="alert">${errors.form?.join(' ')}</p>
    <p class="confirm-actions"><button type="submit" class="main" disabled=${busy}>${busy ? 'Making it…' : `Make the ${kind.one}`}</button>
      <button type="button" disabled=${busy} onClick=${onCancel}>Cancel</button></p>
  </form>`;
}

/** A field with what is wrong with it. @param {{label: string, hint?: any, errors?: string[], children: (props: object) => any}} props */
function Input({ label, hint, errors, children }) {
  const id = useId();
  const wrong = errors?.length > 0;
  return html`<div class="field"><label for=${id}>${label}</label>
    ${children({ id, 'aria-invalid': wrong, 'aria-describedby': `${id}-about` })}
    <small id=${`${id}-about`}>${wrong ? html`<span class="bad" role="alert">${errors.join(' ')}</span>` : hint}</small></div>`;
}
