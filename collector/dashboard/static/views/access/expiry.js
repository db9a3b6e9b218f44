/** Until when a key or token is valid. */

/** The choices, in the order in which they are offered: days, a date, or never. */
export const LENGTHS = [['7', '7 days'], ['30', '30 days'], ['90', '90 days'], ['365', 'a year'], ['date', 'until a date'], ['never', 'without an end']];

/** How far the clock of a zone is ahead of UTC at an instant. @param {number} instant @param {string} [zone] @returns {number} milliseconds */
function offset(instant, zone) {
  const parts = new Intl.DateTimeFormat('en-GB', { timeZone: zone, hourCycle: 'h23', year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric', minute: 'numeric', second: 'numeric' })
    .formatToParts(new Date(instant));
  const [year, month, day, hour, minute, second] = ['year', 'month', 'day', 'hour', 'minute', 'second'].map((type) => Number(parts.find((part) => part.type === type).value));
  return Date.UTC(year, month - 1, day, hour, minute, second) - instant;
}

/** The instant at which a day is over. @param {string} date YYYY-MM-DD @param {string} [zone] */
export function endOf(date, zone) {
  const midnight = Date.parse(`${date}T00:00:00Z`) + 86400000;
  const near = midnight - offset(midnight, zone); // but for an hour, where the clock is changed in between
  return new Date(midnight - offset(near, zone));
}

/**
 * When something that is made now expires, as RFC 3339; null for never, undefined as long as no date is chosen. Pure.
 * @param {string} length one of LENGTHS
 * @param {string} date YYYY-MM-DD, which is the last day
 * @param {string} [zone]
 * @param {Date} now
 */
export function expiry(length, date, zone, now) {
  if (length === 'never') return null;
  if (length === 'date' && !/^\d{4}-\d\d-\d\d$/.test(date)) return undefined;
  const at = length === 'date' ? endOf(date, zone) : new Date(now.getTime() + Number(length) * 86400000);
  return at.toISOString().replace(/\.\d+Z$/, 'Z');
}
