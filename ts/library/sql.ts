/** SQL text with parameters, from a tagged template. */
import { DatabaseError, quoteName } from '../session/index.js';
import type { Parameter } from './parameters.js';

/** A statement and the values of its parameters. */
export interface Sql {
  readonly text: string;
  readonly parameters: readonly Parameter[];
}

/** SQL text, or a template. */
export type Text = string | Sql;

/**
 * Returns the SQL text and the values of its parameters. Refuses what JavaScript callers may pass
 * by mistake.
 */
export function statementOf(sql: Text, parameters: readonly Parameter[]): Sql {
  if (!Array.isArray(parameters)) {
    invalid('expected an array of parameters, followed by the options');
  }
  if (typeof (sql as Sql | undefined)?.text !== 'string') {
    return { text: textOf(sql), parameters };
  }
  if (parameters.length > 0) {
    invalid('a template contains its parameters: pass [] as the second argument');
  }
  return sql as Sql;
}

/** Returns SQL text; refuses any other value. */
export function textOf(sql: unknown): string {
  return typeof sql === 'string' ? sql : invalid(`expected SQL text, found ${typeof sql}`);
}

function invalid(message: string): never {
  throw new DatabaseError({ code: 'InvalidValue', message });
}

/**
 * Creates a statement from a template. Values become parameters and never part of the SQL text:
 *
 *     await db.query(sql`SELECT * FROM trades WHERE symbol = ${symbol}`);
 *
 * Names of tables and columns cannot be parameters; use {@link identifier} for those.
 */
export function sql(strings: TemplateStringsArray, ...values: (Parameter | Identifier)[]): Sql {
  // JavaScript replaces a string that contains an invalid escape sequence with `undefined`.
  if (typeof strings === 'string' || strings.includes(undefined as never)) {
    invalid('invalid escape sequence in the template: write \\\\ for a backslash');
  }
  const parameters: Parameter[] = [];
  let text = strings[0] ?? '';
  values.forEach((value, index) => {
    if (value instanceof Identifier) {
      text += value.text;
    } else {
      parameters.push(value);
      text += `$${parameters.length}`;
    }
    text += strings[index + 1] ?? '';
  });
  return { text, parameters };
}

/** A quoted name of a table or column. */
class Identifier {
  readonly text: string;

  constructor(name: string) {
    this.text = quoteName(name);
  }
}

/** Returns a name of a table or column for the template of {@link sql}. */
export function identifier(name: string): Identifier {
  return new Identifier(name);
}
