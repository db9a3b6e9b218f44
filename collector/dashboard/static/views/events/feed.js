/** The events that are listed: pages of the read API, one behind the other, and what has come in since. */
import { read, useApi, useAsk } from '../../kit/api.js';
import { useCallback, useEffect, useMemo, useRef, useState } from '../../kit/html.js';

/** How many events a page of the API has; what is new is counted up to there. */
const PAGE = 250;

/** How often is looked for what is new, in ms. */
const EVERY = 5000;

const NONE = { rows: [], cursor: null, question: null, fresh: [], gap: false, first: null };

/** Tells an event from all others. @param {{event_id: string, received_at: string}} event */
export const identity = (event) => `${event.received_at} ${event.event_id}`;

/**
 * What is listed once the first page has been asked for again. The rows stay where they are: what became of their deliveries
 * is taken over, and what is new is fresh until somebody wants to see it. gap says that there may be events between the two.
 * @param {typeof NONE} feed
 * @param {{data: object[], next_cursor: string|null}} page
 */
export function refreshed(feed, page) {
  const newest = new Map(page.data.map((event) => [identity(event), event]));
  const known = new Set(feed.rows.slice(0, page.data.length).map(identity));
  const first = page.data.findIndex((event) => known.has(identity(event)));
  return {
    ...feed,
    rows: feed.rows.map((event, i) => (i < page.data.length ? newest.get(identity(event)) ?? event : event)),
    fresh: first < 0 ? page.data : page.data.slice(0, first),
    gap: first < 0 && page.next_cursor !== null,
    first: page,
  };
}

const begun = (page, question) => ({ ...NONE, rows: page.data, cursor: page.next_cursor, question, first: page });

/**
 * Lists events, newest first.
 * @param {[string, string][]} params of the read API: period, filters and look-ups
 * @returns {{rows: object[], fresh: number, gap: boolean, more: boolean, stale: boolean, loading: boolean,
 *   error: Error|null, trouble: Error|null, completeFrom: string|undefined, asOf: string|null, at: Date|null, next: () => void, showFresh: () => void,
 *   reload: () => void}} error is the first page's, trouble the next one's
 */
export function useFeed(params) {
  const ask = useAsk();
  const asked = [...params, ['limit', String(PAGE)]];
  const first = useApi('events', asked, { every: EVERY });
  const [feed, setFeed] = useState(NONE);
  const [trouble, setTrouble] = useState(null);
  const turning = useRef(null);

  useEffect(() => {
    if (!first.data) return;
    setFeed((before) => (before.question === first.answered ? refreshed(before, first.data) : begun(first.data, first.answered)));
  }, [first.data, first.answered]);

  useEffect(() => () => turning.current?.abort.abort(), []);

  const next = useCallback(() => {
    const { question, cursor } = feed;
    if (!cursor || turning.current?.question === question) return;
    turning.current?.abort.abort(); // another question's pages do not belong here
    const turn = { question, abort: new AbortController() };
    turning.current = turn;
    setTrouble(null);
    const [path, search] = question.split('?');
    ask(path, { params: [...new URLSearchParams(search), ['cursor', cursor]], signal: turn.abort.signal })
      .then(read)
      .then((page) => {
        if (turn.abort.signal.aborted) return;
        turning.current = null;
        setFeed((before) => (before.question === question
          ? { ...before, rows: before.rows.concat(page.data), cursor: page.next_cursor } : before));
      })
      .catch((error) => {
        if (turn.abort.signal.aborted) return;
        turning.current = null;
        setTrouble({ question, error });
      });
  }, [feed.question, feed.cursor, ask]);

  const showFresh = useCallback(() => {
    if (feed.gap) {
      turning.current?.abort.abort();
      turning.current = null;
    }
    setFeed((before) => (before.gap ? begun(before.first, before.question) : { ...before, rows: before.fresh.concat(before.rows), fresh: [] }));
  }, [feed.gap]);

  return useMemo(() => ({
    rows: feed.rows, fresh: feed.fresh.length, gap: feed.gap, more: feed.cursor !== null,
    // Until what has been answered is listed, it is awaited.
    stale: first.stale || (feed.question !== null && feed.question !== first.answered),
    loading: first.loading || (first.data !== undefined && feed.question === null),
    error: first.error, trouble: trouble?.question === feed.question ? trouble.error : null, completeFrom: first.data?.complete_from, asOf: first.asOf, at: first.at,
    next, showFresh, reload: first.reload,
  }), [feed, first, trouble, next, showFresh]);
}
