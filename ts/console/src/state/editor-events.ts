/** What the editor asks and tells, answered by the session. */
import { aborted, SqlError, validate } from '../api/client.js';
import type { NameSource } from '../editor/completion.js';
import type { EditorEvents } from '../editor/editor.js';
import type { Refusal } from '../editor/problems.js';
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
  };
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
    if (aborted(cause) || !(cause instanceof SqlError) || cause.status !== 400) {
      return undefined;
    }
    const { message, position = 0 } = cause;
    return { message, position: Number.isFinite(position) ? position : 0 };
  }
}
