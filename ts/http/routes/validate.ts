/**
 * GET and POST /api/v1/sql/validate: what a statement would give, without running it. Editors ask
 * while their user types.
 */
import { KEYS } from '../../config/index.js';
import type { PreparedStatement } from '../../session/index.js';
import type { HttpPaths } from '../paths.js';
import { answer, type HttpServices, JSON_TYPE, keepAliveHeader, type Route } from '../route.js';
import {
  columnJson,
  openSession,
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
    body: STATEMENT_FORM,
    about: 'what a statement would give, without running it',
    handle: async (context) => {
      const text = readStatement(context, keepAlive);
      if (text === null) {
        return;
      }
      const session = openSession(context, services, readOnly);
      const statement = await prepareWhileConnected(context, session, text);
      try {
        if (!refusePlaceholders(context, statement)) {
          answer(context, 200, JSON_TYPE, describe(statement));
        }
      } finally {
        statement.close();
      }
    },
  };
}

/** Their rows tell of something else than the tables they name. */
const UNDESCRIBED = new Set(['EXPLAIN', 'COPY']);

/** A query by its columns, anything else by its name. */
function describe(statement: PreparedStatement): string {
  const { kind, command, columns, timestamp } = statement.description;
  if (kind !== 'select' || UNDESCRIBED.has(command)) {
    return JSON.stringify({ queryType: kind === 'empty' ? 'EMPTY' : command });
  }
  const described = columns.map(columnJson).join(',');
  const query = JSON.stringify(statement.text);
  return `{"query":${query},"columns":[${described}],"timestamp":${timestamp}}`;
}
