/** A funnel's steps as the read API writes them: a|b is either of two events, \| and \\ are the characters themselves. */

/**
 * The events of which one takes the step. Pure.
 * @param {string} text
 * @returns {string[]}
 */
export function readStep(text) {
  const names = [''];
  for (let i = 0; i < text.length; i++) {
    if (text[i] === '\\' && (text[i + 1] === '|' || text[i + 1] === '\\')) names[names.length - 1] += text[++i];
    else if (text[i] === '|') names.push('');
    else names[names.length - 1] += text[i];
  }
  return names;
}

/** @param {string[]} names @returns {string} */
export const writeStep = (names) => names.map((name) => name.replace(/[\\|]/g, '\\$&')).join('|');

/** The list with an element in another place. @template T @param {T[]} list @param {number} from @param {number} to @returns {T[]} */
export function moved(list, from, to) {
  const next = [...list];
  next.splice(to, 0, ...next.splice(from, 1));
  return next;
}
