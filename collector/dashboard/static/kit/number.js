/** Numbers of the read API that a double cannot hold: they keep their digits. */

/** A number as it was written. Where a text is wanted, or JSON, it is exact; in arithmetic it is a double like any other. */
export class Exact {
  /** @param {string} source the number as JSON has it */
  constructor(source) {
    this.source = source;
  }

  toString() { return this.source; }

  valueOf() { return this.source; }

  toJSON() { return JSON.rawJSON?.(this.source) ?? Number(this.source); }
}

/** The digits that any double keeps. */
const SAFE = 15;

/** A number with more digits than that, somewhere in a text; it may be within a string, which does no harm. */
const LONG = /[:,[]\s*-?\d[\d.]{15}/;

const exact = (_, value, context) => {
  const source = typeof value === 'number' ? context?.source : undefined; // which a browser of before 2025 does not tell
  return source && source.replace(/\D/g, '').length > SAFE && String(value) !== source ? new Exact(source) : value;
};

/** Reads JSON; a number that a double does not hold is Exact. @param {string} text */
export const readJSON = (text) => JSON.parse(text, LONG.test(text) ? exact : undefined);

/** A number as a double, for a place on the screen; null stays null. @param {number|Exact|null} value */
export const plain = (value) => (value instanceof Exact ? Number(value.source) : value);
