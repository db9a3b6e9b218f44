/** Long lists of which the document holds what can be seen, and little more. */
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from '../../kit/html.js';

/** How many rows are there above and below what can be seen. */
const BEYOND = 12;

/** The most rows that are there at a time, on whatever screen. */
const MOST = 180;

/**
 * Which rows are to be there.
 * @param {number} top how far the box is scrolled, in pixels
 * @param {number} height the box's
 * @param {number} row a row's height
 * @param {number} count of all rows
 * @returns {[number, number, number]} from the first to the one behind the last, and how many there are where the list is long enough
 */
export function windowOf(top, height, row, count) {
  const shown = Math.min(Math.ceil(height / row) + 2 * BEYOND, MOST);
  const from = Math.max(0, Math.min(Math.floor(top / row) - BEYOND, count - shown));
  return [from, Math.min(count, from + shown), shown];
}

/**
 * Follows a scrolling box.
 * @param {number} count of all rows
 * @param {number} row a row's height in pixels
 * @returns {{box: object, from: number, to: number, size: number, show: (index: number) => void}} box is the ref of the element that
 *   scrolls; size is how many rows are there at most; show scrolls to a row
 */
export function useWindow(count, row) {
  const box = useRef(null);
  const [seen, setSeen] = useState([0, 0, 1]);
  const measure = useCallback(() => {
    if (!box.current) return; // the browser tells of sizes later than the list may be gone
    const { scrollTop, clientHeight } = box.current;
    const next = windowOf(scrollTop, clientHeight, row, count);
    setSeen((before) => (before.every((n, i) => n === next[i]) ? before : next));
  }, [count, row]);
  useLayoutEffect(measure, [measure]);
  useEffect(() => {
    const element = box.current;
    const sizes = new ResizeObserver(measure);
    sizes.observe(element);
    element.addEventListener('scroll', measure, { passive: true });
    return () => {
      sizes.disconnect();
      element.removeEventListener('scroll', measure);
    };
  }, [measure]);
  const show = useCallback((index) => {
    const element = box.current;
    const head = element.querySelector('thead')?.offsetHeight ?? 0;
    const [above, below] = [index * row, (index + 1) * row + head];
    if (above < element.scrollTop) element.scrollTop = above;
    else if (below > element.scrollTop + element.clientHeight) element.scrollTop = below - element.clientHeight;
  }, [row]);
  const [from, to, size] = seen;
  return { box, from, to, size, show };
}
