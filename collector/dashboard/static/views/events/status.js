/** What became of a delivery, in a word and a colour. */
import { html } from '../../kit/html.js';

/** Each status: its sign, how it is coloured, and what it means. The worst is first. */
export const STATUSES = {
  failed: { sign: '✕', tone: 'bad', means: 'the platform refused it for good' },
  expired: { sign: '✕', tone: 'bad', means: 'it became too old before the platform took it' },
  retrying: { sign: '↻', tone: 'warn', means: 'it is tried again' },
  pending: { sign: '…', tone: '', means: 'it has not been tried yet' },
  skipped: { sign: '–', tone: '', means: 'it is not for this platform' },
  delivered: { sign: '✓', tone: 'good', means: 'the platform has it' },
};

/** @param {{status: string, children?: any}} props children stand in place of the status's name */
export function Status({ status, children }) {
  const { sign, tone, means } = STATUSES[status] ?? { sign: '?', tone: '', means: '' };
  return html`<span class=${`tag ${tone}`} title=${means}><span aria-hidden="true">${sign} </span>${children ?? status}</span>`;
}

/** How many platforms are named, of which the same has become. */
const NAMED = 3;

const namesOf = (those) => (those.length > NAMED ? `${those.length} platforms` : those.map(({ platform }) => platform).join(', '));

/** The deliveries of an event, by status. @param {{delivery: {platform: string, status: string}[]}} props */
export function Deliveries({ delivery }) {
  const groups = Object.keys(STATUSES).map((status) => [status, delivery.filter((each) => each.status === status)])
    .filter(([, those]) => those.length > 0);
  // Without keys: scrolling gives one row's elements to another.
  return groups.map(([status, those]) => html`<${Status} status=${status}><span class="hidden">${status}: </span>${namesOf(those)}<//> `);
}
