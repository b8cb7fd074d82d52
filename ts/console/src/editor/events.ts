/** Connects the events of the editor to the session. */
import { aborted, query, SqlError, validate } from '../api/client.js';
import type { EditorEvents } from './editor.js';
import type { NameSource } from './names.js';
import type { Refusal } from './problems.js';
import { quoted } from '../sql/names.js';
import { parametersOf } from '../sql/parameters.js';
import type { Statements } from '../state/statements.js';
import type { Tabs } from '../state/tabs.js';
import type { Problems } from '../state/problems.js';
import type { Schema } from '../state/schema.js';

interface EventTargets {
  readonly statements: Statements;
  readonly tabs: Tabs;
  readonly problems: Problems;
  readonly schema: Schema;
}

/** Returns the event handlers for the workspace's editor. */
export function editorEvents({ statements, tabs, problems, schema }: EventTargets): EditorEvents {
  return {
    changed: (tab, text) => tabs.edited(tab, text),
    run: () => void statements.run(),
    runAll: () => void statements.runAll(),
    names: nameSource(schema),
    validate: refusalOf,
    problem: (tab, report, count) => problems.set(tab, report, count),
    statement: (text) => statements.setParameters(parametersOf(text)),
  };
}

/** Provides the names in the server's schema to an editor. */
export function nameSource(schema: Schema): NameSource {
  const described = new Map<string, ReturnType<NameSource['describe']>>();
  return {
    names: () => schema.names(),
    requested: schema.requested,
    open: (table) => schema.open(table),
    describe: (query) => {
      let columns = described.get(query);
      if (!columns) {
        columns = validate(query).then(
          (answer) => answer.columns.map(({ name, type }) => ({ name, type, designated: false })),
          () => [],
        );
        described.set(query, columns);
      }
      return columns;
    },
    values: valuesOf,
  };
}

/** Maximum number of column values that completion offers. */
const MAX_VALUES = 1000;

/** Loads the distinct values of a column. Returns no values if the request fails. */
async function valuesOf(table: string, column: string): Promise<readonly string[]> {
  const name = quoted(column);
  const distinct = `SELECT DISTINCT ${name} FROM ${quoted(table)}`;
  try {
    const { rows } = await query(`${distinct} ORDER BY ${name} LIMIT ${MAX_VALUES}`);
    return rows.flatMap(([value]) => (typeof value === 'string' ? [value] : []));
  } catch {
    return [];
  }
}

/**
 * Returns the server's error for a statement. Returns `undefined` if the statement is valid or if
 * the server cannot check it.
 */
async function refusalOf(text: string, signal: AbortSignal): Promise<Refusal | undefined> {
  if (parametersOf(text).length > 0) {
    return undefined;
  }
  try {
    await validate(text, signal);
    return undefined;
  } catch (cause) {
    if (aborted(cause) || !(cause instanceof SqlError) || ![200, 400].includes(cause.status)) {
      return undefined;
    }
    const { message, position = 0 } = cause;
    return { message, position: Number.isFinite(position) ? position : 0 };
  }
}
