/** Keys and tokens, made here as the programs make them: the server is told nothing but a hash, by which it knows one again. */

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const RANDOM_DIGITS = 27; // 160 bits
const CHECKSUM_DIGITS = 6;

/** CRC-32 of IEEE 802.3. @param {string} text of ASCII @returns {number} */
function crc32(text) {
  let sum = ~0;
  for (let i = 0; i < text.length; i += 1) {
    sum ^= text.charCodeAt(i);
    for (let bit = 0; bit < 8; bit += 1) sum = (sum >>> 1) ^ (sum & 1 ? 0xedb88320 : 0);
  }
  return ~sum >>> 0;
}

/** The digits by which a key is told from what only looks like one. @param {string} text the prefix and the random digits */
export function checksum(text) {
  let sum = crc32(text);
  let digits = '';
  for (let i = 0; i < CHECKSUM_DIGITS; i += 1) {
    digits = DIGITS[sum % 62] + digits;
    sum = Math.floor(sum / 62);
  }
  return digits;
}

/**
 * A new key or token: the prefix, 27 random digits and a checksum.
 * @param {string} prefix wk_ or wt_
 * @param {(bytes: Uint8Array) => Uint8Array} [fill] fills bytes with randomness
 */
export function newSecret(prefix, fill = (bytes) => crypto.getRandomValues(bytes)) {
  let digits = '';
  while (digits.length < RANDOM_DIGITS) {
    // The six low bits, without the two values that no digit has: none is likelier than another.
    for (const byte of fill(new Uint8Array(2 * RANDOM_DIGITS))) {
      if ((byte & 63) < DIGITS.length && digits.length < RANDOM_DIGITS) digits += DIGITS[byte & 63];
    }
  }
  return prefix + digits + checksum(prefix + digits);
}

/** The SHA-256 of a text in hexadecimal digits. @param {string} text @returns {Promise<string>} */
export async function sha256(text) {
  const hash = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text));
  return [...new Uint8Array(hash)].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}
