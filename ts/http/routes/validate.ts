/**
 * GET and POST /api/v1/sql/validate: describes the result of a statement without running it.
 * Editors call it while the user types.
 */
import { KEYS } from '../../config/index.js';
import {
  DatabaseError,
  httpStatusOf,
  type PreparedStatement,
  type Session,
} from '../../session/index.js';
import type { HttpPaths } from '../paths.js';
import {
  answer,
  type HttpContext,
  type HttpServices,
  JSON_TYPE,
  keepAliveHeader,
  type Route,
} from '../route.js';
import {
  columnJson,
  errorBody,
  openSession,
  positionOf,
  prepareWhileConnected,
  readStatement,
  refusePlaceholders,
  STATEMENT_FORM,
} from '../response/statement-answer.js';

export function validateRoute(services: HttpServices, paths: HttpPaths): Route {
  const { config } = services;
  const keepAlive = keepAliveHeader(config);
  const readOnly = config.get(KEYS.httpReadOnly);
  return {
    path: paths.validate,
    methods: ['GET', 'POST'],
    access: 'data',
    errors: 'json',
    body: STATEMENT_FORM,
    about: 'describes the result of a statement without running it',
    handle: async (context) => {
      const text = readStatement(context, keepAlive);
      if (text === null) {
        return;
      }
      const session = openSession(context, services, readOnly);
      try {
        await validate(context, session, text);
      } catch (cause) {
        if (!isInline(context, cause)) {
          throw cause;
        }
        const body = errorBody(text, cause.message, positionOf(context, cause));
        answer(context, 200, JSON_TYPE, body);
      }
    },
  };
}

async function validate(context: HttpContext, session: Session, text: string): Promise<void> {
  const statement = await prepareWhileConnected(context, session, text);
  try {
    if (!refusePlaceholders(context, statement)) {
      await plan(context, session, statement);
      answer(context, 200, JSON_TYPE, describe(statement));
    }
  } finally {
    statement.close();
  }
}

/**
 * Whether to send an error with status 200. Browsers log every error status, and a statement that
 * is still being typed is often invalid.
 */
function isInline(context: HttpContext, cause: unknown): cause is DatabaseError {
  return (
    context.state.parameters.isTrue('inlineErrors') &&
    cause instanceof DatabaseError &&
    httpStatusOf(cause.code) === 400
  );
}

const EXPLAIN = 'EXPLAIN ';
const PLANNED = new Set(['SELECT', 'UPDATE']);

/**
 * Also plans the statement, because the planner refuses some statements that the binder accepts,
 * such as one with an invalid date.
 */
async function plan(
  context: HttpContext,
  session: Session,
  { description, text }: PreparedStatement,
): Promise<void> {
  if (!PLANNED.has(description.command)) {
    return;
  }
  try {
    (await prepareWhileConnected(context, session, EXPLAIN + text)).close();
  } catch (cause) {
    if (!(cause instanceof DatabaseError)) {
      throw cause;
    }
    const { code, message, start = 0, detail, hint } = cause;
    // The statement itself was parsed successfully. A syntax error therefore means that EXPLAIN
    // does not accept this kind of statement.
    if (code !== 'Syntax') {
      const at = Math.max(0, start - EXPLAIN.length);
      throw new DatabaseError({ code, message, start: at, detail, hint }, { cause });
    }
  }
}

/** Commands that return rows about a statement or a job, not rows of the tables that they name. */
const UNDESCRIBED = new Set(['EXPLAIN', 'COPY']);

/** Describes a query by its columns, any other statement by its name. */
function describe(statement: PreparedStatement): string {
  const { kind, command, columns, timestamp } = statement.description;
  if (kind !== 'select' || UNDESCRIBED.has(command)) {
    return JSON.stringify({ queryType: kind === 'empty' ? 'EMPTY' : command });
  }
  const described = columns.map(columnJson).join(',');
  const query = JSON.stringify(statement.text);
  return `{"query":${query},"columns":[${described}],"timestamp":${timestamp}}`;
}
