/** Who is signed in. */
import { useCallback, useEffect, useState } from './html.js';
import { ApiError, ask } from './api.js';

/** Stands in the address that the sign-in leads back to: whoever is not signed in even then is not sent there once more, and again. */
export const MARK = 'signed_in';

/** Takes the mark out of the address, and says whether it was there. */
function cameBack() {
  const params = new URLSearchParams(location.search);
  if (!params.has(MARK)) return false;
  params.delete(MARK);
  history.replaceState(null, '', location.pathname + (params.size ? `?${params}` : ''));
  return true;
}

/**
 * The session, which is asked for at once: {state: 'asked' | 'open' | 'closed' | 'failed'}; open, with what the server says of it; closed
 * and failed, with the error. look asks again, leave signs out.
 */
export function useSession() {
  const [session, setSession] = useState(() => ({ state: 'asked', back: cameBack() }));
  const look = useCallback(async ({ entered = false, left = false } = {}) => {
    try {
      const { data } = await (await ask('session')).json();
      setSession({ state: 'open', entered, ...data });
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      const closed = error.status === 401;
      setSession((before) => ({
        state: closed ? 'closed' : 'failed', error, left, back: before.back,
        ended: closed && !left && (before.state === 'open' || before.ended === true),
      }));
    }
  }, []);
  const leave = useCallback(async () => {
    const elsewhere = await ask('session', { method: 'DELETE' }).then((answer) => answer.json()).catch(() => null); // 204 has no JSON
    const out = elsewhere?.data?.end_session_url;
    if (/^https?:/.test(out ?? '')) location.replace(out);
    else look({ left: true });
  }, [look]);
  useEffect(() => { look(); }, [look]);
  return { session, look, leave };
}
