/**
 * Where the page is: the view and its parameters, all of it in the query string of the address, so that a link shows the same.
 */
import { createContext, html, useCallback, useContext, useEffect, useMemo, useRef, useState } from './html.js';

/** The filters, and what says the period. */
export const FILTERS = ['event', 'channel', 'source', 'medium', 'campaign', 'page', 'product'];
export const PERIOD = ['period', 'from', 'to'];

/** What every view takes over from the one before. */
export const SHARED = [...PERIOD, ...FILTERS];

/**
 * @param {string} search the address's query string
 * @returns {{view: string, views: string[], params: URLSearchParams}} view is the first of the views named, empty where none is
 */
export function readSearch(search) {
  const params = new URLSearchParams(search);
  const views = params.getAll('view');
  params.delete('view');
  return { view: views[0] ?? '', views, params };
}

/**
 * The query string of a view.
 * @param {string} view
 * @param {URLSearchParams} params
 */
export function writeSearch(view, params) {
  const search = new URLSearchParams([['view', view], ...params].filter(([, value]) => value !== ''));
  return `?${search}`;
}

/**
 * The parameters with some of them changed.
 * @param {URLSearchParams} params
 * @param {Record<string, string|string[]|null|undefined>} changes a list is several values; null takes a parameter away
 */
export function changed(params, changes) {
  const next = new URLSearchParams(params);
  for (const [name, value] of Object.entries(changes)) {
    next.delete(name);
    for (const each of [value].flat()) {
      if (each != null && each !== '') next.append(name, each);
    }
  }
  return next;
}

/** What of the parameters another view takes over. @param {URLSearchParams} params */
export const shared = (params) => new URLSearchParams([...params].filter(([name]) => SHARED.includes(name)));

/**
 * The names of the parameters that neither a view knows nor others keep for each other. Pure.
 * @param {URLSearchParams} params
 * @param {string[]} known the view's own
 */
export const unknown = (params, known) => [...new Set(params.keys())].filter((name) => !SHARED.includes(name) && !known.includes(name));

/** The filters among the parameters, as the read API takes them. @param {URLSearchParams} params */
export const filterParams = (params) => [...params].filter(([name]) => FILTERS.includes(name));

const Location = createContext(null);

/**
 * Where the page is, and how to get elsewhere:
 * view (the first of views, if the address names several) and params; href(changes) and go(changes, {replace}) stay in the view;
 * viewHref(name, changes) is another view's address, with this one's period and filters. While stay.current is a function, going back
 * calls that instead.
 */
export const useLocation = () => useContext(Location);

/** Follows the address, and gives it to everything below. @param {{fallback: string, children: any}} props */
export function LocationProvider({ fallback, children }) {
  const [search, setSearch] = useState(location.search);
  const stay = useRef(null);
  useEffect(() => {
    const follow = () => (stay.current ? stay.current() : setSearch(location.search));
    addEventListener('popstate', follow);
    return () => removeEventListener('popstate', follow);
  }, []);
  const open = useCallback((target, { replace = false } = {}) => {
    history[replace ? 'replaceState' : 'pushState'](null, '', target);
    setSearch(location.search);
  }, []);
  const value = useMemo(() => {
    const { view: named, views, params } = readSearch(search);
    const view = named || fallback;
    const href = (changes) => writeSearch(view, changed(params, changes));
    return {
      view, views, params, open, href, stay,
      go: (changes, options) => open(href(changes), options),
      viewHref: (name, changes = {}) => writeSearch(name, changed(shared(params), changes)),
    };
  }, [search, fallback, open]);
  return html`<${Location.Provider} value=${value}>${children}<//>`;
}

/** A link within the page: a real one, for a new tab and the status line, that loads nothing anew. */
export function Link({ href, children, onClick, ...rest }) {
  const { open } = useLocation();
  const follow = (event) => {
    onClick?.(event);
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    open(href);
  };
  return html`<a ...${rest} href=${href} onClick=${follow}>${children}</a>`;
}
