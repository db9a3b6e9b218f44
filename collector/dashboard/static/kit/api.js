/** The read API of the Property, below the page's own address; the session's cookie authorises. */
import { createContext, useCallback, useContext, useEffect, useMemo, useRef, useState } from './html.js';
import { useEvery } from './live.js';
import { readJSON } from './number.js';

/** Why there is no answer. */
export class ApiError extends Error {
  /**
   * @param {number} status of HTTP; 0 where nothing answered
   * @param {string} message the API's, which says what would be right
   * @param {Record<string, string[]>} [fields] what is wrong by parameter
   * @param {number|null} [retryAfter] seconds
   * @param {object} [body] what else the answer says
   */
  constructor(status, message, fields = {}, retryAfter = null, body = {}) {
    super(message);
    Object.assign(this, { status, fields, retryAfter, body });
  }

  /** Whether the same question may be answered by itself a little later. */
  get passing() {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

const FALLBACK = {
  401: 'The session has ended.',
  403: 'The session’s token does not allow this.',
  404: 'This is not there any more.',
  429: 'Too many requests.',
  503: 'The numbers are being read; they will be there in a moment.',
};

async function failure(response) {
  const body = await response.json().catch(() => ({}));
  const wait = Number(response.headers.get('Retry-After'));
  const message = body.message || FALLBACK[response.status] || `The server answered ${response.status}.`;
  return new ApiError(response.status, message, body.errors ?? {}, wait > 0 ? wait : null, body);
}

/**
 * Asks the server.
 * @param {string} path relative to the page's address, such as api/events
 * @param {{params?: Iterable<[string, string]>, method?: string, body?: any, accept?: string, signal?: AbortSignal}} [options]
 * @returns {Promise<Response>} one that succeeded
 * @throws {ApiError}
 */
export async function ask(path, { params = [], method = 'GET', body, accept = 'application/json', signal } = {}) {
  const query = new URLSearchParams([...params]).toString();
  const headers = { Accept: accept };
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  let response;
  try {
    response = await fetch(path + (query ? `?${query}` : ''), {
      method, headers, signal, body: body === undefined ? undefined : JSON.stringify(body),
      cache: 'no-cache', credentials: 'same-origin', redirect: 'error', referrerPolicy: 'no-referrer',
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError(0, 'The server cannot be reached.');
  }
  if (!response.ok) throw await failure(response);
  return response;
}

/** What an answer says, whose numbers keep their digits. @param {Response} response @returns {Promise<any>} */
export const read = async (response) => readJSON(await response.text());

/** What is called when the session has ended: the shell shows the way in again. */
export const Unauthenticated = createContext(() => {});

/** ask, for whoever is in a view: where the session has ended, the shell learns of it. */
export function useAsk() {
  const ended = useContext(Unauthenticated);
  return useCallback((path, options) => ask(path, options).catch((error) => {
    if (error.status === 401) ended();
    throw error;
  }), [ended]);
}

/**
 * A question of the read API, asked again whenever it changes.
 *
 * data stays what it was while another question's answer is on its way, and stale says so: nothing jumps. An error that passes by itself
 * is asked again after what the server says, with growing pauses where it says nothing.
 *
 * @param {string|null} path below api/, such as analytics/summary; null asks nothing
 * @param {Iterable<[string, string]>} [params]
 * @param {{every?: number, below?: string}} [options] every asks again after so many milliseconds while the page is visible; below is
 *   what the path is below of instead
 * @returns {{data: any, answered: string, error: ApiError|null, loading: boolean, stale: boolean, at: Date|null,
 *   asOf: string|null, reload: () => void}} answered is the question that data answers; at, when; asOf is the time of the newest event
 *   that the answer knows of
 */
export function useApi(path, params = [], { every, below = 'api/' } = {}) {
  const asking = useAsk();
  const question = path === null ? null : `${below}${path}?${new URLSearchParams([...params])}`;
  const [state, setState] = useState({ data: undefined, answered: null, error: null, failed: null, at: null, asOf: null });
  const [round, setRound] = useState(0);
  const failures = useRef(0);
  const awaited = useRef(false); // an answer, or the end of a pause: who asks again meanwhile would get neither
  const reload = useCallback(() => setRound((n) => n + 1), []);

  useEffect(() => {
    if (question === null) return undefined;
    const abort = new AbortController();
    let timer;
    awaited.current = true;
    asking(question.replace(/\?$/, ''), { signal: abort.signal })
      .then(async (response) => [await read(response), response.headers.get('Weir-As-Of')])
      .then(([data, asOf]) => {
        if (abort.signal.aborted) return;
        failures.current = 0;
        awaited.current = false;
        setState({ data, answered: question, error: null, failed: null, at: new Date(), asOf });
      })
      .catch((cause) => {
        if (abort.signal.aborted) return;
        const error = cause instanceof ApiError ? cause : new ApiError(0, 'The server’s answer broke off.');
        awaited.current = error.passing;
        setState((before) => ({ ...before, error, failed: question }));
        if (error.passing) {
          failures.current += 1;
          timer = setTimeout(reload, 1000 * Math.min(error.retryAfter ?? 2 ** failures.current, 60));
        }
      });
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [question, round, asking, reload]);

  useEvery(every && question !== null ? every : null, () => { if (!awaited.current) reload(); });
  return useMemo(() => {
    const error = state.failed === question ? state.error : null; // another question's says nothing of this one
    return {
      data: question === null ? undefined : state.data, answered: state.answered, at: state.at, asOf: state.asOf, reload,
      error,
      loading: question !== null && state.data === undefined && !error,
      stale: state.data !== undefined && state.answered !== question,
    };
  }, [state, question, reload]);
}

/**
 * Several answers as one, whose data is the list of theirs once all are there.
 * @param {ReturnType<typeof useApi>[]} answers
 */
export function together(answers) {
  const complete = answers.every(({ data }) => data !== undefined);
  return {
    data: complete ? answers.map(({ data }) => data) : undefined,
    answered: answers.map(({ answered }) => answered).join('\n'),
    error: answers.find(({ error }) => error)?.error ?? null,
    loading: answers.some(({ loading }) => loading),
    stale: answers.some(({ stale }) => stale),
    at: answers[0].at,
    reload: () => answers.forEach(({ reload }) => reload()),
  };
}
