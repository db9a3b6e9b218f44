/** Which Properties are listed, and in which order. Pure. */
import { sorted } from '../kit/table.js';

/** What a column is sorted by. */
const VALUES = {
  property: ({ property }) => property,
  namespace: ({ namespace }) => namespace,
  ready: ({ ready }) => ['False', 'Unknown', 'True'].indexOf(ready), // those that want to be looked at are first
  scope: ({ scope }) => (scope === null ? null : ['read', 'write', 'admin'].indexOf(scope)),
  ...Object.fromEntries(['unique_visitors', 'pageviews', 'add_to_carts', 'purchases', 'revenue'].map((key) => [key, ({ figures }) => figures?.[key] ?? null])),
};

/** What the address sorts by, as it is written there: the column, after a minus from the greatest to the least. @param {string|null} text */
export function readSort(text) {
  const key = (text ?? '').replace(/^-/, '');
  return Object.hasOwn(VALUES, key) ? { key, direction: text.startsWith('-') ? 'descending' : 'ascending' } : null;
}

/** @param {import('../kit/table.js').Sort} by */
export const writeSort = ({ key, direction }) => (direction === 'descending' ? `-${key}` : key);

/**
 * The Properties in an order. Amounts of several currencies say nothing of each other: revenue is sorted within each.
 * @param {object[]} rows
 * @param {import('../kit/table.js').Sort|null} by
 */
export function inOrder(rows, by) {
  if (!by) return rows;
  const list = sorted(rows, VALUES[by.key], by.direction);
  return by.key === 'revenue' ? sorted(list, ({ currency, figures }) => (figures ? currency : null), 'ascending') : list;
}

/** The Properties of whose name or namespace each word is a part. @param {object[]} rows @param {string} text */
export function matching(rows, text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return rows.filter(({ namespace, property }) => words.every((word) => `${namespace}/${property}`.toLowerCase().includes(word)));
}
