/** What goes on by itself: asking again, and not while nobody looks. */
import { useEffect, useRef, useState } from './html.js';

/**
 * Calls back every so many milliseconds while the page is visible; at once when it becomes visible after longer than that.
 * @param {number|null} interval null stops it
 * @param {() => void} callback
 */
export function useEvery(interval, callback) {
  const latest = useRef(callback);
  latest.current = callback;
  useEffect(() => {
    if (!interval) return undefined;
    let timer;
    let due = Date.now() + interval;
    const tick = () => {
      due = Date.now() + interval;
      timer = setTimeout(tick, interval);
      latest.current();
    };
    const follow = () => {
      clearTimeout(timer);
      if (!document.hidden) timer = setTimeout(tick, Math.max(0, due - Date.now()));
    };
    follow();
    document.addEventListener('visibilitychange', follow);
    return () => {
      clearTimeout(timer);
      document.removeEventListener('visibilitychange', follow);
    };
  }, [interval]);
}

/**
 * Holds still what somebody reads: while the pointer is over the element, or the keyboard's focus in it, what is shown stays, however
 * often the same question is answered anew. Another question's answer is shown at once.
 * @param {any} data
 * @param {any} question what data answers
 * @returns {[object, any]} properties for the element, and what is to be shown
 */
export function useStill(data, question) {
  const [held, setHeld] = useState(false);
  const shown = useRef({ data, question });
  if (!held || shown.current.question !== question || shown.current.data === undefined) shown.current = { data, question };
  const hold = {
    onPointerEnter: () => setHeld(true),
    onPointerLeave: (event) => setHeld(event.currentTarget.querySelector(':focus-visible') !== null),
    onFocusIn: (event) => setHeld((before) => before || event.target.matches(':focus-visible')),
    onFocusOut: (event) => setHeld(event.currentTarget.matches(':hover')),
  };
  return [hold, shown.current.data];
}
