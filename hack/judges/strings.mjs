// What the scripts that make consent strings share: numbers that are the same in each run, and strings bit by bit.

// random returns a source of numbers that a seed decides (mulberry32).
export const random = (seed) => {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (n) => Math.floor(next() * n);
  const chance = (share) => next() < share;
  return {
    below,
    chance,
    between: (low, high) => low + below(high - low + 1),
    pick: (list) => list[below(list.length)],
    // some of the numbers 1 to highest, each with the same chance, or a few runs of them.
    some: (highest, share) => {
      const ids = [];
      if (chance(0.5)) {
        for (let id = 1; id <= highest; id++) if (chance(share)) ids.push(id);
        return ids;
      }
      for (let id = 1 + below(5); id <= highest; id += 2 + below(40)) {
        for (const last = Math.min(highest, id + below(1 + 20 * share)); id <= last; id++) ids.push(id);
      }
      return ids;
    },
    letters: () => String.fromCharCode(65 + below(26), 65 + below(26)),
    shuffled: (list) => {
      const rest = [...list];
      return list.map(() => rest.splice(below(rest.length), 1)[0]);
    },
  };
};

export const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

// int is a number of so many bits.
export const int = (number, bits) => number.toString(2).padStart(bits, "0");

// letters is bits as base64url, padded to whole letters.
export const letters = (bits) =>
  (bits.match(/.{1,6}/g) ?? []).map((six) => alphabet[parseInt(six.padEnd(6, "0"), 2)]).join("");

// fibonacci is a number in Fibonacci coding.
export const fibonacci = (number) => {
  const summands = [1, 2];
  while (summands.at(-1) < number) summands.push(summands.at(-1) + summands.at(-2));
  let code = "";
  for (const summand of summands.reverse()) {
    const used = summand <= number;
    if (used) number -= summand;
    if (used || code) code = (used ? "1" : "0") + code;
  }
  return `${code}1`;
};

// ranges are pairs of a first and a last vendor as a TC string has them; a pair of one is a single vendor.
export const ranges = (pairs) =>
  int(pairs.length, 12) + pairs.map(([first, last]) => (last === undefined ? `0${int(first, 16)}` : `1${int(first, 16)}${int(last, 16)}`)).join("");

// vendors is a section of vendors in ranges.
export const vendors = (pairs, highest = Math.max(0, ...pairs.flat())) => `${int(highest, 16)}1${ranges(pairs)}`;

// restrictions are [purpose, type, pairs] as a TC string has them.
export const restrictions = (list) =>
  int(list.length, 12) + list.map(([purpose, type, pairs]) => int(purpose, 6) + int(type, 2) + ranges(pairs)).join("");

// runs are ascending numbers as pairs of a first and a last one.
export const runs = (ids) => {
  const found = [];
  for (const id of ids) {
    if (found.length && found.at(-1)[1] + 1 === id) found.at(-1)[1] = id;
    else found.push([id, id]);
  }
  return found;
};

// attempt is {read} of what a library reads, or {} where it refuses.
export const attempt = (read) => {
  try {
    return { read: read() };
  } catch {
    return {};
  }
};
