/**
 * The period that a view is of. In the page's address it is one of the names below, or from and to as the read API takes them;
 * a request gets it as the read API's parameters.
 *
 * The last 7 and 30 days are whole local days, today among them: the API's period=7d begins at this minute seven days ago, which
 * would leave the first bar of a plot half.
 */

/** The periods with a name, in the order in which they are offered. */
export const NAMED = {
  '24h': 'Last 24 hours',
  today: 'Today',
  yesterday: 'Yesterday',
  '7d': 'Last 7 days',
  '30d': 'Last 30 days',
  month: 'This month',
};

/** The period of a view whose address names none. */
export const DEFAULT = '30d';

/**
 * The date that it is somewhere, as YYYY-MM-DD.
 * @param {Date} instant
 * @param {string} zone
 */
export function localDate(instant, zone) {
  const parts = new Intl.DateTimeFormat('en-GB', { timeZone: zone, year: 'numeric', month: '2-digit', day: '2-digit' })
    .formatToParts(instant);
  const part = (type) => parts.find((p) => p.type === type).value;
  return `${part('year')}-${part('month')}-${part('day')}`;
}

/** The date so many days later. @param {string} date YYYY-MM-DD @param {number} days */
function addDays(date, days) {
  const [year, month, day] = date.split('-').map(Number);
  return new Date(Date.UTC(year, month - 1, day + days)).toISOString().slice(0, 10);
}

/**
 * The period as the read API's parameters. What is no period goes there as it stands: the API says what would be right.
 * @param {URLSearchParams} params of the page's address
 * @param {string} zone the Property's
 * @param {Date} now
 * @param {string} [preset] the period where the address names none
 * @returns {[string, string][]}
 */
export function periodParams(params, zone, now, preset = DEFAULT) {
  const [from, to] = [params.get('from'), params.get('to')];
  if (from || to) return [['from', from], ['to', to]].filter(([, value]) => value);
  const name = params.get('period') || preset;
  const today = localDate(now, zone);
  switch (name) {
    case 'today': return [['from', today]];
    case 'yesterday': return [['from', addDays(today, -1)], ['to', addDays(today, -1)]];
    case '7d': return [['from', addDays(today, -6)]];
    case '30d': return [['from', addDays(today, -29)]];
    case 'month': return [['from', `${today.slice(0, 8)}01`]];
    default: return [['period', name]];
  }
}

/**
 * The interval in which a plot of the period has enough points, and not too many.
 * @param {[string, string][]} period as periodParams has it
 */
export function intervalFor(period, now = new Date()) {
  const given = Object.fromEntries(period);
  if (given.period === '24h') return 'hour';
  const from = Date.parse(given.from ?? '');
  const to = given.to ? Date.parse(given.to) + (given.to.length === 10 ? 86400000 : 0) : now.getTime();
  const days = (to - from) / 86400000;
  if (!(days > 2.5)) return given.from ? 'hour' : 'day';
  return days > 190 ? 'week' : 'day';
}
