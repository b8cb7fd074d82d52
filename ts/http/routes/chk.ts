/** GET /chk: whether a table exists; always 200. */
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
      const seen = guard?.visibility(principalOf(context, true))?.tables;
      // A table that the user may not see is reported as missing.
      const isSeen = seen == null || Object.hasOwn(seen, name.toLowerCase());
      const table = name === '' || !isSeen ? null : await database.tableMetadata(name);
      const status = table === null ? 'Does not exist' : 'Exists';
      if (json) {
        answer(context, 200, 'application/json', JSON.stringify({ status }));
      } else {
        answerText(context, 200, status);
      }
    },
  };
}
