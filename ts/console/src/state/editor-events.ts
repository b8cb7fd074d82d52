/** What the editor asks and tells, answered by the session. */
import { aborted, query, SqlError, validate } from '../api/client.js';
import type { EditorEvents } from '../editor/editor.js';
import type { NameSource } from '../editor/names.js';
import type { Refusal } from '../editor/problems.js';
import { quoted } from '../schema/model.js';
import { parametersOf } from '../sql/parameters.js';
import type { Session } from './session.js';

export function editorEvents(session: Session): EditorEvents {
  return {
    changed: (tab, text) => session.edited(tab, text),
    run: () => void session.run(),
    runAll: () => void session.runAll(),
    names: nameSource(session),
    validate: refusalOf,
    problem: (tab, place, count) => session.setProblem(tab, place, count),
    statement: (text) => session.setParameters(parametersOf(text)),
  };
}

function nameSource({ schema }: Session): NameSource {
  const described = new Map<string, ReturnType<NameSource['describe']>>();
  return {
    names: () => schema.names(),
    asked: schema.asked,
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

/** Values of a column that are offered. */
const MOST_VALUES = 1000;

/** A server that refuses them, or is silent, offers none. */
async function valuesOf(table: string, column: string): Promise<readonly string[]> {
  const name = quoted(column);
  const distinct = `SELECT DISTINCT ${name} FROM ${quoted(table)}`;
  try {
    const { rows } = await query(`${distinct} ORDER BY ${name} LIMIT ${MOST_VALUES}`);
    return rows.flatMap(([value]) => (typeof value === 'string' ? [value] : []));
  } catch {
    return [];
  }
}

/** The server's objection to a statement. A server that is silent or has no say has none. */
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
