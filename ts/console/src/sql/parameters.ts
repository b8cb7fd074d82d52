/**
 * Finds the parameters of a statement: `$1`, `:name` and undeclared variables. The console prompts
 * for their values and inserts the values as literals before it sends the statement.
 */
import { scan, TokenKind } from '../../../sql/lexer/lexer.js';

interface ParameterSpan {
  readonly name: string;
  readonly start: number;
  readonly end: number;
}

function spansOf(text: string): ParameterSpan[] {
  const { kinds, values, starts, ends } = scan(text);
  const spans: ParameterSpan[] = [];
  const declared = new Set<string>();
  kinds.forEach((kind, index) => {
    const [start, end] = [starts[index] ?? 0, ends[index] ?? 0];
    const name = text.slice(start, end);
    if (kind === TokenKind.Variable && values[index + 1] === ':=') {
      declared.add(name.toLowerCase());
    }
    const isParameter =
      kind === TokenKind.Variable ||
      kind === TokenKind.NamedParameter ||
      (kind === TokenKind.Parameter && /^\$\d+$/.test(name));
    if (isParameter) {
      spans.push({ name, start, end });
    }
  });
  return spans.filter(({ name }) => !declared.has(name.toLowerCase()));
}

/** Returns the parameters of a statement in order of their first occurrence. */
export function parametersOf(text: string): string[] {
  return [...new Set(spansOf(text).map(({ name }) => name))];
}

export interface Bound {
  readonly text: string;
  /** Converts an offset in the bound text to an offset in the original text. */
  readonly original: (offset: number) => number;
}

/** Replaces the parameters of a statement with their values. */
export function bind(text: string, values: Readonly<Record<string, string>>): Bound {
  const spans = spansOf(text);
  let bound = '';
  let from = 0;
  const ends: { readonly at: number; readonly start: number; readonly end: number }[] = [];
  for (const { name, start, end } of spans) {
    bound += text.slice(from, start) + literal(values[name] ?? '');
    from = end;
    ends.push({ at: bound.length, start, end });
  }
  bound += text.slice(from);
  const original = (offset: number): number => {
    let shift = 0;
    for (const { at, start, end } of ends) {
      if (offset < start - shift) {
        break;
      }
      if (offset < at) {
        return start;
      }
      shift = end - at;
    }
    return offset + shift;
  };
  return { text: bound, original };
}

const NUMBER = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?$/i;

/**
 * Converts a value to a SQL literal. Numbers, true, false, null and quoted strings remain
 * unchanged; any other text becomes a string literal.
 */
export function literal(value: string): string {
  const text = value.trim();
  const isWhole = NUMBER.test(text) || /^(?:true|false|null|'(?:[^']|'')*')$/i.test(text);
  return isWhole ? text : `'${value.replaceAll("'", "''")}'`;
}
