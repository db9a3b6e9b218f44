/** Tables: a header that stays, columns that sort, rows as CSV. */
import { html, useEffect, useMemo, useState } from './html.js';
import { ApiError, useAsk } from './api.js';
import { useAnnounce } from './components.js';
import { Exact, plain } from './number.js';
import { useLocation } from './state.js';

const isNumber = (value) => typeof value === 'number' || value instanceof Exact;
const byValue = (a, b) => (isNumber(a) && isNumber(b) ? plain(a) - plain(b) : String(a).localeCompare(String(b)));

/**
 * The rows in a column's order; those without a value are last whichever way. Pure.
 * @template Row
 * @param {Row[]} rows
 * @param {(row: Row) => any} value
 * @param {'ascending'|'descending'} direction
 */
export function sorted(rows, value, direction) {
  const sign = direction === 'ascending' ? 1 : -1;
  return [...rows].sort((a, b) => {
    const [x, y] = [value(a), value(b)];
    if (x == null || y == null) return (x == null) - (y == null);
    return sign * byValue(x, y);
  });
}

/** @typedef {{key: string, direction: 'ascending'|'descending'}} Sort */

/**
 * @typedef {object} Column
 * @property {string} key the row's member
 * @property {string} label
 * @property {boolean} [number] aligned at the end, and sorted from the greatest first
 * @property {(row: any) => any} [cell] what is shown; the member itself without it
 * @property {((row: any) => any)|null} [value] what is sorted by; the member itself without it, null for a column that sorts nothing
 * @property {string} [order] the column is sorted by the API, and this is what onOrder is called with
 * @property {string} [class]
 */

/**
 * @param {{caption: string, columns: Column[], rows: any[], rowKey: (row: any) => string, captionHidden?: boolean,
 *   foot?: any, rowProps?: (row: any) => object, order?: string, onOrder?: (order: string) => void, limit?: number, by?: Sort,
 *   onSort?: (by: Sort) => void}} props
 *   The first column heads its row. Rows stand in the order given until somebody sorts; order is what the API sorted them by. Of
 *   all of them, sorted, the first limit are shown. With by, they are sorted already, and onSort is told what is wanted.
 */
export function Table({ caption, columns, rows, rowKey, captionHidden = true, foot, rowProps, order, onOrder, limit = Infinity, by, onSort }) {
  const [own, setSort] = useState(null);
  const sort = by ?? own;
  const shown = useMemo(() => {
    const column = !by && sort && columns.find(({ key }) => key === sort.key);
    return (column ? sorted(rows, column.value ?? ((row) => row[column.key]), sort.direction) : rows).slice(0, limit);
  }, [rows, columns, by, sort, limit]);
  const turn = ({ key, number }) => (onSort ?? setSort)({
    key, direction: (sort?.key === key ? sort.direction === 'descending' : !number) ? 'ascending' : 'descending',
  });
  const direction = (column) => {
    if (column.order) return column.order === order ? 'descending' : null;
    return sort?.key === column.key ? sort.direction : null;
  };
  const line = (row) => html`<tr key=${rowKey(row)} ...${rowProps?.(row)}>${columns.map((column, i) => {
    const content = column.cell ? column.cell(row) : row[column.key];
    const name = [column.number && 'number', column.class].filter(Boolean).join(' ');
    return i === 0 ? html`<th key=${column.key} scope="row" class=${name}>${content}</th>`
      : html`<td key=${column.key} class=${name}>${content}</td>`;
  })}</tr>`;
  const drawn = useMemo(() => new WeakMap(), [columns, rowProps]); // a row that has only changed its place is not drawn anew
  return html`<div class="table" tabindex="0" role="group" aria-label=${caption}>
    <table>
      <caption class=${captionHidden ? 'hidden' : ''}>${caption}</caption>
      <thead><tr>${columns.map((column) => html`
        <th key=${column.key} scope="col" class=${column.number ? 'number' : ''} aria-sort=${direction(column)}>
          ${column.value === null && !column.order ? column.label : html`<button type="button" class="sort"
            onClick=${() => (column.order ? onOrder(column.order) : turn(column))}>${column.label}</button>`}</th>`)}</tr></thead>
      <tbody>${shown.map((row) => {
        if (!drawn.has(row)) drawn.set(row, line(row));
        return drawn.get(row);
      })}</tbody>
      ${foot && html`<tfoot>${foot}</tfoot>`}
    </table>
  </div>`;
}

/** A part of a whole, as a bar behind what is said. @param {{part: number|null, children: any}} props part from 0 to 1 */
export const Part = ({ part, children }) => html`<span class="part" style=${{ '--part': part ?? 0 }}>${children}</span>`;

/** How many rows there are at first, and how many when somebody wants more. */
const FEW = 10;
const MORE = 100;

/**
 * How many rows are shown, which is in the address.
 * @param {string} name the parameter's
 * @returns {{limit: number, turn: () => void}}
 */
export function useFew(name) {
  const { params, go } = useLocation();
  const limit = params.get(name) === String(MORE) ? MORE : FEW;
  return { limit, turn: () => go({ [name]: limit === FEW ? MORE : null }, { replace: true }) };
}

/** Shows more rows, or fewer. @param {{limit: number, turn: () => void, more: boolean}} props more says that there are more than limit */
export const Few = ({ limit, turn, more }) => (more || limit > FEW ? html`<p><button type="button" class="small"
  onClick=${turn}>${limit > FEW ? `The first ${FEW}` : `The first ${MORE}`}</button></p>` : null);

/**
 * Saves what a view shows as CSV: the same question, answered by the API in that form.
 * @param {{path: string, params?: Iterable<[string, string]>, name: string, at?: Date|null}} props name is the file's, without .csv;
 *   at is when the view was answered last: that it did not work then is not said any longer
 */
export function CsvButton({ path, params = [], name, at }) {
  const announce = useAnnounce();
  const ask = useAsk();
  const [state, setState] = useState('');
  const question = `${path}?${new URLSearchParams([...params])}`;
  useEffect(() => setState((before) => (before === 'busy' ? before : '')), [question, at]);
  const save = async () => {
    setState('busy');
    try {
      const response = await ask(`api/${path}`, { params, accept: 'text/csv' });
      const address = URL.createObjectURL(await response.blob());
      const link = Object.assign(document.createElement('a'), { href: address, download: `${name}.csv` });
      link.click();
      setTimeout(() => URL.revokeObjectURL(address), 60000);
      setState('');
    } catch (error) {
      const message = error instanceof ApiError ? error.message : 'The file broke off.';
      setState(message);
      announce(message);
    }
  };
  return html`<button type="button" class="small" disabled=${state === 'busy'} title=${state && state !== 'busy' ? state : null}
    onClick=${save}>${state === 'busy' ? 'Saving…' : state ? 'CSV failed: again' : 'CSV'}</button>`;
}
