/** Replaces parts of a statement. The resulting tree keeps positions in the original SQL text. */
import { parse, type Tree } from '../sql/index.js';

export interface Replacement {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** `replacements` must not overlap. */
export function replaced(text: string, replacements: readonly Replacement[]): Tree {
  const sorted = [...replacements].sort((a, b) => a.start - b.start);
  let made = '';
  let from = 0;
  const moved: { readonly start: number; readonly end: number; readonly of: Replacement }[] = [];
  for (const one of sorted) {
    made += text.slice(from, one.start);
    moved.push({ start: made.length, end: made.length + one.text.length, of: one });
    made += one.text;
    from = one.end;
  }
  made += text.slice(from);
  const place = (position: number, isEnd: boolean): number => {
    const before = moved.findLast(({ start }) => start <= position);
    if (before === undefined) {
      return position;
    }
    const { end, of } = before;
    return position < end ? of[isEnd ? 'end' : 'start'] : of.end + position - end;
  };
  return withPlaces(parse(made), place) as Tree;
}

/** Copies a tree with every span mapped to a new position. */
function withPlaces(value: unknown, place: (position: number, isEnd: boolean) => number): unknown {
  if (Array.isArray(value)) {
    return value.map((one) => withPlaces(one, place));
  }
  if (typeof value !== 'object' || value === null) {
    return value;
  }
  if ('start' in value && typeof value.start === 'number' && 'end' in value) {
    return { start: place(value.start, false), end: place(Number(value.end), true) };
  }
  const moved = Object.entries(value).map(([name, one]) => [name, withPlaces(one, place)] as const);
  return Object.fromEntries(moved);
}
