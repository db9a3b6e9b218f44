/** The Property's access tokens and API keys: which there are and how they do; making one, revoking one. */
import { html, useCallback, useContext, useEffect, useMemo, useRef, useState } from '../kit/html.js';
import { Unauthenticated, useApi } from '../kit/api.js';
import { Answer, Empty, Panel, useAnnounce, useProperty } from '../kit/components.js';
import { nothing } from '../kit/format.js';
import { Table } from '../kit/table.js';
import { Made } from './access/made.js';
import { Make } from './access/make.js';
import { Revoke } from './access/revoke.js';

/**
 * @typedef {object} Kind
 * @property {'tokens'|'keys'} path below access/, and the answer's member
 * @property {string} one what one is called
 * @property {string} title
 * @property {string} note
 * @property {string} prefix what each begins with
 * @property {string} field the Property's that has those of its manifest
 * @property {string} resource of Kubernetes
 * @property {string} use what it is for
 */

/** @type {Kind[]} */
const KINDS = [{
  path: 'tokens', one: 'access token', title: 'Access tokens', note: 'Whoever has one can ask the read API, by its scope.',
  prefix: 'wt_', field: 'spec.accessTokens', resource: 'accesstokens', use: 'Read the numbers with it',
}, {
  path: 'keys', one: 'API key', title: 'API keys', note: 'Whoever has one can send events. Give each server one of its own.',
  prefix: 'wk_', field: 'spec.apiKeys', resource: 'apikeys', use: 'Send an event with it',
}];

/** How often is asked: while something is being made known, and else. */
const SOON = 1500;
const LATER = 30000;

/**
 * The view. While something is shown that cannot be shown again, it stays even if the session ends: whoever has signed in again has lost it.
 */
export function View() {
  const ended = useContext(Unauthenticated);
  const shows = useRef(false);
  const missed = useRef(false);
  const endLater = useCallback(() => {
    if (shows.current) missed.current = true;
    else ended();
  }, [ended]);
  const hold = useCallback((now) => {
    shows.current = now;
    if (now || !missed.current) return;
    missed.current = false;
    ended();
  }, [ended]);
  return html`<${Unauthenticated.Provider} value=${endLater}><${Credentials} hold=${hold} /><//>`;
}

function Credentials({ hold }) {
  const [made, setMade] = useState(null);
  const [hurried, setHurried] = useState(false);
  const access = useApi('access', [], { every: hurried ? SOON : LATER, below: '' });
  const data = access.data?.data;
  const record = made && data?.[made.kind.path]?.find(({ name, from }) => name === made.name && from === 'object');
  const unsettled = KINDS.some(({ path }) => data?.[path]?.some(({ state }) => state === 'pending')) || (made !== null && !record);
  useEffect(() => setHurried(unsettled), [unsettled]);
  const show = (kind) => (name, secret) => {
    hold(true);
    setMade({ kind, name, secret });
    access.reload();
  };
  const done = () => {
    setMade(null);
    hold(false);
    focusOn(made.kind);
  };
  return html`<div class="view">
    <${Answer} of=${access} height=${24}>${({ data: all }) => html`${KINDS.map((kind) => html`<${List} key=${kind.path} kind=${kind} records=${all[kind.path]}
      may=${all.may[kind.path]} onMade=${show(kind)} onChange=${access.reload} />`)}`}<//>
    ${made && html`<${Made} ...${made} record=${record} onDone=${done} />`}
  </div>`;
}

/**
 * Gives the focus to the button that makes one of a kind, or else to the view: what had it is gone in a moment. Whoever has opened the form
 * meanwhile keeps it there.
 * @param {Kind} kind
 */
const focusOn = ({ path }) => requestAnimationFrame(() => {
  if (document.activeElement?.closest('.make')) return;
  (document.querySelector(`[data-kind=${path}] .actions button`) ?? document.querySelector('h1'))?.focus();
});

/** Those of a kind. @param {{kind: Kind, records: object[]|null, may: {create: boolean, delete: boolean, scopes?: string[]}}} props */
function List({ kind, records, may, onMade, onChange }) {
  const { times, namespace } = useProperty();
  const announce = useAnnounce();
  const [making, setMaking] = useState(false);
  const [revoking, setRevoking] = useState(null);
  const columns = useMemo(() => columnsOf(kind, times, may.delete && setRevoking), [kind, times, may.delete]);
  const close = () => {
    setMaking(false);
    focusOn(kind);
  };
  const secure = globalThis.crypto?.subtle !== undefined;
  const mayMake = may.create && may.scopes?.length !== 0;
  const revoked = () => {
    announce(`The ${kind.one} ${revoking} is revoked.`);
    setRevoking(null);
    onChange();
    focusOn(kind);
  };
  return html`<${Panel} title=${kind.title} note=${kind.note} data-kind=${kind.path}
      actions=${mayMake && secure && !making && html`<button type="button" class="small" onClick=${() => setMaking(true)}>New ${kind.one}…</button>`}>
    ${mayMake && !secure && html`<p class="notice warn">A browser makes secrets on pages of https alone.</p>`}
    ${making && html`<${Make} kind=${kind} scopes=${may.scopes} onCancel=${close} onMade=${(name, secret) => { setMaking(false); onMade(name, secret); }} />`}
    ${records === null ? html`<${Empty} title=${`You may not see the ${kind.one}s.`}>Ask for a role that may list <code>${kind.resource}</code> in the
        namespace <bdi>${namespace}</bdi>, such as <code>view</code>.<//>`
      : records.length === 0 ? html`<${Empty} title=${`There is no ${kind.one}.`} />`
      : html`<${Table} caption=${kind.title} columns=${columns} rows=${records} rowKey=${({ from, name }) => `${from}/${name}`} />`}
    ${revoking !== null && html`<${Revoke} kind=${kind} name=${revoking} onClose=${() => setRevoking(null)} onRevoked=${revoked} />`}
  <//>`;
}

function columnsOf(kind, times, onRevoke) {
  return [
    { key: 'name', label: 'Name', cell: ({ name, publishable }) => html`<bdi>${name}</bdi>${publishable && html` <span class="tag" title="It stands in web pages">for pages</span>`}` },
    ...(kind.path === 'tokens' ? [{ key: 'scope', label: 'It may' }] : []),
    { key: 'state', label: 'State', class: 'wide', cell: (row) => html`<${State} ...${row} />` },
    { key: 'expires_at', label: 'Valid until', class: 'when', cell: ({ expires_at: at }) => (at === null ? 'without an end' : times.minute(at)) },
    { key: 'created_by', label: 'Made by', cell: ({ created_by: by }) => html`<bdi>${by ?? nothing}</bdi>` },
    { key: 'created_at', label: 'Made', class: 'when', cell: ({ created_at: at }) => times.minute(at) },
    { key: 'from', label: 'Revoke', value: null, cell: ({ from, name }) => (from === 'property' ? html`<span class="muted" title=${`It stands in the Property’s ${kind.field}, and is taken away there`}>in the Property</span>`
      : onRevoke && html`<button type="button" class="small" onClick=${() => onRevoke(name)}>Revoke…<span class="hidden"> the ${kind.one} ${name}</span></button>`) },
  ];
}

const STATES = { ready: ['good', 'ready'], pending: ['warn', 'almost ready'], expired: ['', 'expired'], refused: ['bad', 'refused'] };

function State({ state, reason, message }) {
  const [tone, words] = STATES[state] ?? ['', state];
  return html`<span class=${`tag ${tone}`}>${words}</span>${state === 'refused' && html` <code>${reason}</code>`}
    ${state !== 'ready' && message && html`<p class="note"><bdi>${message}</bdi></p>`}`;
}
