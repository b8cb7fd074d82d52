/** Splits SQL text into statements. */
import { TokenKind, scan } from './lexer.js';

/** A statement, without its semicolon. */
export interface StatementText {
  readonly text: string;
  /** Offset of `text` in the whole text. */
  readonly start: number;
}

/** Returns the statements between top-level semicolons, without empty statements. */
export function splitStatements(text: string): StatementText[] {
  const tokens = scan(text, true);
  const statements: StatementText[] = [];
  let first = -1;
  for (let index = 0; index < tokens.kinds.length; index += 1) {
    const kind = tokens.kinds[index];
    const ends =
      kind === TokenKind.End || (kind === TokenKind.Mark && tokens.values[index] === ';');
    if (!ends) {
      if (first < 0) {
        first = index;
      }
    } else if (first >= 0) {
      const start = tokens.starts[first] ?? 0;
      statements.push({ text: text.slice(start, tokens.ends[index - 1]), start });
      first = -1;
    }
  }
  return statements;
}

/** Returns the offset of the first `?` that is a parameter; `null` if there is none. */
export function firstQuestionMark(text: string): number | null {
  const { kinds, starts, values } = scan(text);
  const index = kinds.findIndex((kind, at) => kind === TokenKind.Mark && values[at] === '?');
  return starts[index] ?? null;
}
