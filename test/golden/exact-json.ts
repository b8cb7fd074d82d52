/**
 * JSON that preserves how numbers are spelled. A 64-bit integer must not become a double, and
 * integers are compared differently from fractions.
 */

/** A number in its original spelling. */
export class NumberText {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  get value(): number {
    return Number(this.text);
  }

  get isInteger(): boolean {
    return /^-?\d+$/.test(this.text);
  }
}

export type Json =
  null | boolean | string | NumberText | readonly Json[] | { readonly [name: string]: Json };

const STRING_OR_NUMBER = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const MARK = '\u0000number:';

export function parseExact(text: string): Json {
  const marked = text.replace(STRING_OR_NUMBER, (token) =>
    token.startsWith('"') ? token : `"\\u0000number:${token}"`,
  );
  return JSON.parse(marked, (_name, value: unknown) =>
    typeof value === 'string' && value.startsWith(MARK)
      ? new NumberText(value.slice(MARK.length))
      : value,
  ) as Json;
}

/** Returns the spelling of `value`, for messages. */
export function printExact(value: Json | undefined): string {
  if (value instanceof NumberText) {
    return value.text;
  }
  if (Array.isArray(value)) {
    return `[${value.map(printExact).join(',')}]`;
  }
  if (typeof value === 'object' && value !== null) {
    const members = Object.entries(value as Record<string, Json>);
    const texts = members.map(([name, item]) => `${JSON.stringify(name)}:${printExact(item)}`);
    return `{${texts.join(',')}}`;
  }
  return value === undefined ? 'nothing' : JSON.stringify(value);
}

export function isObject(value: Json | undefined): value is { readonly [name: string]: Json } {
  return (
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    !(value instanceof NumberText)
  );
}

/**
 * Compares integers exactly, other numbers with a tolerance of 1e-9, and everything else for
 * equality.
 */
export function sameValue(left: Json | undefined, right: Json | undefined): boolean {
  if (left instanceof NumberText && right instanceof NumberText) {
    return sameNumber(left, right);
  }
  if (Array.isArray(left) && Array.isArray(right)) {
    const others = right as readonly Json[];
    return (
      left.length === right.length && left.every((item: Json, i) => sameValue(item, others[i]))
    );
  }
  if (isObject(left) && isObject(right)) {
    const names = Object.keys(left);
    return (
      names.length === Object.keys(right).length &&
      names.every((name) => name in right && sameValue(left[name], right[name]))
    );
  }
  return left === right;
}

function sameNumber(left: NumberText, right: NumberText): boolean {
  if (left.isInteger && right.isInteger) {
    return BigInt(left.text) === BigInt(right.text);
  }
  const [a, b] = [left.value, right.value];
  const tolerance = Math.max(1e-9 * Math.max(Math.abs(a), Math.abs(b)), 1e-12);
  return a === b || Math.abs(a - b) <= tolerance;
}
