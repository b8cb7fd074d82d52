/** Mutated statements of the grammar table and the golden cases. */
import { scan } from '../../ts/sql/index.js';
import { goldenStatements } from './golden-statements.js';
import { ITEMS } from './grammar/index.js';

/** Returns a generator of random numbers below a bound; the same seed repeats a run. */
export function generator(start: number): (bound: number) => number {
  let state = start >>> 0;
  return (bound) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % bound;
  };
}

/** Statements to mutate. */
const texts = [
  ...new Set([...ITEMS.flatMap(({ statements }) => statements), ...goldenStatements().accepted]),
].filter((text) => text.length < 2_000);

type Below = (bound: number) => number;

/** Splits text into its tokens, each with the whitespace after it. */
function fragments(text: string): string[] {
  const { starts } = scan(text);
  return starts.map((start, index) => text.slice(start, starts[index + 1]));
}

const STRAY = ["'", '"', '(', ')', '[', ']', ',', ';', '--', '/*', '\0', '😀', ':', '@', '$', '#'];

const pick = (list: readonly string[], below: Below): string => list[below(list.length)] ?? '';

const MUTATIONS: readonly ((text: string, below: Below) => string)[] = [
  // Removes a token.
  (text, below) =>
    fragments(text)
      .toSpliced(below(fragments(text).length), 1)
      .join(''),
  // Duplicates a token.
  (text, below) => {
    const list = fragments(text);
    const at = below(list.length);
    return list.toSpliced(at, 0, list[at] ?? '', ' ').join('');
  },
  // Inserts a token from another statement, or replaces a token with it.
  (text, below) => {
    const list = fragments(text);
    const other = pick(fragments(pick(texts, below)), below);
    return list.toSpliced(below(list.length), below(2), other, ' ').join('');
  },
  // Swaps two tokens.
  (text, below) => {
    const list = fragments(text);
    const [a, b] = [below(list.length), below(list.length)];
    return list
      .with(a, list[b] ?? '')
      .with(b, list[a] ?? '')
      .join('');
  },
  // Truncates the end, possibly in the middle of a token.
  (text, below) => text.slice(0, below(text.length + 1)),
  // Removes the start.
  (text, below) => text.slice(below(text.length + 1)),
  // Inserts a random character.
  (text, below) => {
    const at = below(text.length + 1);
    return text.slice(0, at) + pick(STRAY, below) + text.slice(at);
  },
  // Joins the first half of one statement with the second half of another.
  (text, below) => {
    const [head, tail] = [fragments(text), fragments(pick(texts, below))];
    return [...head.slice(0, below(head.length)), ...tail.slice(below(tail.length))].join('');
  },
  // Repeats a sequence of tokens.
  (text, below) => {
    const list = fragments(text);
    const from = below(list.length);
    const part = list.slice(from, from + 1 + below(8));
    return list.toSpliced(from, 0, ...part, ...part, ...part).join('');
  },
];

/** Returns a statement with one to three mutations. */
export function malformed(below: Below): string {
  let text = pick(texts, below);
  for (let times = 1 + below(3); times > 0; times -= 1) {
    text = MUTATIONS[below(MUTATIONS.length)]?.(text, below) ?? text;
  }
  return text;
}
