/** Seeded random numbers, and words for generated strings. */

/**
 * Returns random numbers in [0, 1) from mulberry32. A seed gives the same sequence on every
 * machine.
 */
export function randomNumbers(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** Returns a signed 64-bit hash of `index` and `salt`. */
export function hash64(index: number, salt: number): bigint {
  const high = scramble(index ^ Math.imul(salt, 0x9e3779b1));
  const low = scramble(high ^ Math.imul(index, 0x85ebca6b));
  return (BigInt(high | 0) << 32n) | BigInt(low);
}

/** Returns an unsigned 32-bit hash. */
export function scramble(value: number): number {
  let mixed = Math.imul(value ^ (value >>> 16), 0x45d9f3b);
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x45d9f3b);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}

const LATIN = ['ba', 'co', 'di', 'fu', 'ka', 'le', 'mi', 'no', 'pe', 'ra', 'si', 'to', 've', 'zu'];
const CYRILLIC = ['ба', 'ко', 'ди', 'ле', 'ми', 'но', 'пе', 'ра', 'си', 'то', 'ве', 'зу', 'ша', 'ры'];

/** Returns a word of two to four syllables, determined by the index. */
export function latinWord(index: number): string {
  return word(index, LATIN);
}

/** Returns `count` words, most of them Cyrillic, determined by the index. */
export function phrase(index: number, count: number): string {
  const words = [];
  for (let position = 0; position < count; position += 1) {
    const number = scramble(index + position * 7919);
    words.push(word(number, number % 5 === 0 ? LATIN : CYRILLIC));
  }
  return words.join(' ');
}

function word(index: number, syllables: readonly string[]): string {
  let rest = scramble(index);
  let text = '';
  for (let left = 2 + (rest % 3); left > 0; left -= 1) {
    text += syllables[rest % syllables.length] ?? '';
    rest = Math.floor(rest / syllables.length);
  }
  return text;
}
