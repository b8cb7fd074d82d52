/**
 * Fills the placeholders in texts from the catalogue. The compiler checks the placeholders. The
 * build replaces these calls with template strings and JSX (`inline-texts.mjs`).
 */
import type { JSX } from 'solid-js';

/** Names of the placeholders in a text: `'rows' | 'table'` for `'{rows} rows of {table}'`. */
type Names<Text extends string> = Text extends `${string}{${infer Name}}${infer Rest}`
  ? Name | Names<Rest>
  : never;

/** A value for each placeholder. A text without placeholders cannot be passed to `fill`. */
type Values<Text extends string, Value> = [Names<Text>] extends [never]
  ? never
  : Readonly<Record<Names<Text>, Value>>;

/** Fills a text with strings and numbers. */
export function fill<Text extends string>(
  text: Text,
  values: Values<Text, string | number>,
): string {
  const known: Readonly<Record<string, string | number>> = values;
  return text.replace(/\{(\w+)\}/g, (_placeholder, name: string) => String(known[name]));
}

/** Fills a text with elements. Returns strings and elements in the order of the text. */
export function fillNodes<Text extends string>(
  text: Text,
  values: Values<Text, JSX.Element>,
): JSX.Element[] {
  const known: Readonly<Record<string, JSX.Element>> = values;
  // Every second chunk is the name of a placeholder.
  return text.split(/\{(\w+)\}/).map((chunk, index) => (index % 2 === 0 ? chunk : known[chunk]));
}
