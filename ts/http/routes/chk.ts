/** GET /chk: reports whether a table exists; the status is always 200. */
import type { HttpPaths } from '../paths.js';
import { answer, answerText, type HttpServices, type Route } from '../route.js';
import { principalOf } from '../response/statement-answer.js';

export function chkRoute(services: HttpServices, paths: HttpPaths): Route {
  return {
    path: paths.tableStatus,
    methods: ['GET'],
    access: 'data',
    errors: 'text',
    about: 'checks whether a table exists',
    handle: async (context) => {
      const { parameters } = context.state;
      const name = parameters.get('j') ?? '';
      const json = parameters.get('f')?.toLowerCase() === 'json';
      if (name === '' && !json) {
        answerText(context, 200, 'table name missing');
        return;
      }
      const { database, guard } = services.sessions;
      const visibleTables = guard?.visibility(principalOf(context, true))?.tables;
      // A table that the user may not see is reported as missing.
      const isVisible = visibleTables == null || Object.hasOwn(visibleTables, name.toLowerCase());
      const table = name === '' || !isVisible ? null : await database.tableMetadata(name);
      const status = table === null ? 'Does not exist' : 'Exists';
      if (json) {
        answer(context, 200, 'application/json', JSON.stringify({ status }));
      } else {
        answerText(context, 200, status);
      }
    },
  };
}
