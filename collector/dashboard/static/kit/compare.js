/** The period before, set beside a period bucket by bucket. */

const HOUR = 3600000;
const DAY = 24 * HOUR;

/** How long buckets are that have a place by the clock on the wall. Weeks and months are cut by periods: they go by their order. */
const LENGTHS = { hour: HOUR, day: DAY };

/** Tells what the clock on the wall shows, in ms as though it were UTC. @param {string} zone */
function wallClock(zone) {
  const formatter = new Intl.DateTimeFormat('en-GB', {
    timeZone: zone, hourCycle: 'h23', year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric', minute: 'numeric', second: 'numeric',
  });
  return (instant) => {
    const part = Object.fromEntries(formatter.formatToParts(instant).map(({ type, value }) => [type, Number(value)]));
    return Date.UTC(part.year, part.month - 1, part.day, part.hour, part.minute, part.second) + (instant % 1000);
  };
}

/**
 * For each bucket the one of the period before whose local time is the same so many days earlier, or null. An hour that the clock
 * repeats stands beside the same occurrence of it: its second has none where the day before has it once, and an hour that the clock
 * leaves out takes its partner with it. Periods that are not whole days apart go by the order of their buckets. Pure.
 * @template Bucket
 * @param {(Bucket & {from: string})[]} buckets
 * @param {(Bucket & {from: string})[]} previous
 * @param {string} interval hour, day, week or month
 * @param {string} zone of the IANA database
 * @returns {(Bucket|null)[]}
 */
export function before(buckets, previous, interval, zone) {
  const length = LENGTHS[interval];
  const days = length && buckets.length && previous.length ? daysApart(buckets[0].from, previous[0].from, zone) : null;
  if (days === null) return buckets.map((_, i) => previous[i] ?? null);
  const places = (list, shift) => {
    const wall = wallClock(zone);
    const met = new Map();
    return list.map(({ from }) => {
      const place = Math.floor(wall(Date.parse(from)) / length) * length + shift;
      met.set(place, (met.get(place) ?? 0) + 1);
      return `${place} ${met.get(place)}`;
    });
  };
  const found = new Map(places(previous, days * DAY).map((place, i) => [place, previous[i]]));
  return places(buckets, 0).map((place) => found.get(place) ?? null);
}

/** How many days lie between two beginnings, by the wall's clock or else as time goes; null where these are not whole days. */
function daysApart(from, previous, zone) {
  const wall = wallClock(zone);
  const [later, earlier] = [Date.parse(from), Date.parse(previous)];
  const apart = [wall(later) - wall(earlier), later - earlier].find((ms) => ms > 0 && ms % DAY === 0);
  return apart === undefined ? null : apart / DAY;
}
