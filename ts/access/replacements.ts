/**
 * Replaces parts of a statement. Positions in the resulting tree refer to the original SQL text.
 */
import { parse, type Tree } from '../sql/index.js';

export interface Replacement {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** Parses the text with the replacements, which must not overlap. */
export function parseWithReplacements(text: string, replacements: readonly Replacement[]): Tree {
  const sorted = [...replacements].sort((a, b) => a.start - b.start);
  let output = '';
  let from = 0;
  const moved: { readonly start: number; readonly end: number; readonly of: Replacement }[] = [];
  for (const replacement of sorted) {
    output += text.slice(from, replacement.start);
    moved.push({
      start: output.length,
      end: output.length + replacement.text.length,
      of: replacement,
    });
    output += replacement.text;
    from = replacement.end;
  }
  output += text.slice(from);
  const mapPosition = (position: number, isEnd: boolean): number => {
    const before = moved.findLast(({ start }) => start <= position);
    if (before === undefined) {
      return position;
    }
    const { end, of } = before;
    return position < end ? of[isEnd ? 'end' : 'start'] : of.end + position - end;
  };
  return mapSpans(parse(output), mapPosition) as Tree;
}

/** Copies a tree and maps every span to its new position. */
function mapSpans(
  value: unknown,
  mapPosition: (position: number, isEnd: boolean) => number,
): unknown {
  if (Array.isArray(value)) {
    return value.map((item) => mapSpans(item, mapPosition));
  }
  if (typeof value !== 'object' || value === null) {
    return value;
  }
  if ('start' in value && typeof value.start === 'number' && 'end' in value) {
    return { start: mapPosition(value.start, false), end: mapPosition(Number(value.end), true) };
  }
  const moved = Object.entries(value).map(
    ([name, item]) => [name, mapSpans(item, mapPosition)] as const,
  );
  return Object.fromEntries(moved);
}
