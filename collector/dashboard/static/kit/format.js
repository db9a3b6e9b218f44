/**
 * Numbers, money and times as people read them. The page computes no figure: it writes down what the read API says.
 *
 * Numbers that a double does not hold are Exact: Intl reads their text, so that no digit is lost. Nothing here adds.
 */

const LOCALE = 'en-GB';
const NOTHING = '–';

/** The text that stands where there is no value. */
export const nothing = NOTHING;

const counts = new Intl.NumberFormat(LOCALE, { maximumFractionDigits: 6 });
const compacts = new Intl.NumberFormat(LOCALE, { notation: 'compact', maximumFractionDigits: 1 });
const percents = new Intl.NumberFormat(LOCALE, { style: 'percent', maximumFractionDigits: 2 });
const changes = new Intl.NumberFormat(LOCALE, { style: 'percent', maximumFractionDigits: 1, signDisplay: 'exceptZero' });

/** @param {number|null|undefined} n */
export const count = (n) => (n == null ? NOTHING : counts.format(n));

/** 12,345 as 12.3K: for axes alone, where the exact number stands beside them. @param {number|null} n */
export const compact = (n) => (n == null ? NOTHING : compacts.format(n));

/** A fraction as a percentage. @param {number|null|undefined} fraction */
export const percent = (fraction) => (fraction == null ? NOTHING : percents.format(fraction));

/** By how much a figure has changed, as the API says it: a fraction with its sign, or null where there was nothing before. */
export const change = (fraction) => (fraction == null ? NOTHING : changes.format(fraction));

/** A currency's way to be written, which is dear to make and asked for by every row. */
const moneys = new Map();
function moneyOf(currency) {
  if (!moneys.has(currency)) moneys.set(currency, new Intl.NumberFormat(LOCALE, { style: 'currency', currency, maximumFractionDigits: 4 }));
  return moneys.get(currency);
}

/**
 * Money with its currency's sign and all decimals that it has.
 * @param {number|import('./number.js').Exact|null|undefined} amount
 * @param {string} currency of ISO 4217
 */
export function money(amount, currency) {
  if (amount == null) return NOTHING;
  try {
    return moneyOf(currency).format(amount);
  } catch {
    return `${counts.format(amount)} ${currency}`; // what is no currency to Intl
  }
}

/** A length of time, of at most two units. @param {number|null|undefined} seconds */
export function duration(seconds) {
  if (seconds == null) return NOTHING;
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${Math.round(seconds * 10) / 10} s`;
  const units = [['d', 86400], ['h', 3600], ['min', 60], ['s', 1]];
  const first = units.findIndex(([, length]) => seconds >= length);
  const [unit, length] = units[first];
  const [next, shorter] = units[first + 1];
  const rest = Math.floor((seconds % length) / shorter);
  return `${Math.floor(seconds / length)} ${unit}${rest ? ` ${rest} ${next}` : ''}`;
}

/**
 * The times of a Property, in its time zone whatever the reader's is.
 * @param {string} zone of the IANA database
 */
export function times(zone) {
  const format = (options) => {
    const formatter = new Intl.DateTimeFormat(LOCALE, { timeZone: zone, hourCycle: 'h23', ...options });
    return (instant) => (instant == null ? NOTHING : formatter.format(new Date(instant)));
  };
  const date = { day: 'numeric', month: 'short', year: 'numeric' };
  const clock = { hour: '2-digit', minute: '2-digit' };
  const offsets = new Intl.DateTimeFormat(LOCALE, { timeZone: zone, timeZoneName: 'short' });
  return {
    zone,
    /** 20 Nov 2026, 09:30:00 */
    moment: format({ ...date, ...clock, second: '2-digit' }),
    /** 20 Nov 2026, 09:30 */
    minute: format({ ...date, ...clock }),
    /** 09:30:00 */
    second: format({ ...clock, second: '2-digit' }),
    /** 09:30 */
    clock: format(clock),
    /** Fri 20 Nov */
    day: format({ weekday: 'short', day: 'numeric', month: 'short' }),
    /** 20 Nov */
    dayOfMonth: format({ day: 'numeric', month: 'short' }),
    /** 20 Nov 2026 */
    date: format(date),
    /** November 2026 */
    month: format({ month: 'long', year: 'numeric' }),
    /** CET, or GMT-4 */
    offset: (instant) => offsets.formatToParts(new Date(instant)).find(({ type }) => type === 'timeZoneName').value,
  };
}

/**
 * What a bucket of a series is called.
 * @param {{from: string, date?: string}} bucket
 * @param {string} interval hour, day, week or month
 */
export function bucketName(bucket, interval, { day, clock, date, month }) {
  switch (interval) {
    case 'hour': return `${day(bucket.from)}, ${clock(bucket.from)}`;
    case 'week': return `Week of ${date(bucket.from)}`;
    case 'month': return month(bucket.from);
    default: return day(bucket.from);
  }
}

/**
 * What the buckets of a series are called. An hour that there is twice, on the day on which the clock is put back, has its offset.
 * @param {{from: string, date?: string}[]} buckets
 * @param {string} interval hour, day, week or month
 * @param {ReturnType<typeof times>} zone
 */
export function bucketNames(buckets, interval, zone) {
  const names = buckets.map((bucket) => bucketName(bucket, interval, zone));
  return names.map((name, i) => (name === names[i - 1] || name === names[i + 1] ? `${name} ${zone.offset(buckets[i].from)}` : name));
}
