/** SQL text with parameters, from a tagged template. */
import { quoteName } from '../session/index.js';
import type { Parameter } from './parameters.js';

/** A statement and the values of its parameters; every method that accepts SQL text accepts it. */
export interface Sql {
  readonly text: string;
  readonly parameters: readonly Parameter[];
}

/**
 * Creates a statement from a template. Values become parameters and never part of the SQL text:
 *
 *     await db.query(sql`SELECT * FROM trades WHERE symbol = ${symbol}`);
 *
 * Names of tables and columns cannot be parameters; use {@link identifier} for those.
 */
export function sql(strings: TemplateStringsArray, ...values: (Parameter | Identifier)[]): Sql {
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
