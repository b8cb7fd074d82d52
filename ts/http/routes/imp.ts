/**
 * POST and PUT /imp: a text file into a table. The parts stream into `ts/ingest`; a body that
 * breaks off leaves no trace, because the import throws before it commits.
 */
import { KEYS } from '../../config/index.js';
import { type ImportAccess, importCsv, readImportParameters } from '../../ingest/index.js';
import { type Access, asDatabaseError, DatabaseError, httpStatusOf } from '../../session/index.js';
import { principalOf } from '../statement-answer.js';
import { multipartProblem, readParts } from '../multipart-parts.js';
import { BodyError } from '../request-body.js';
import type { HttpPaths } from '../paths.js';
import {
  answer,
  answerText,
  type HttpContext,
  type HttpServices,
  JSON_TYPE,
  type Route,
} from '../route.js';

export function impRoute(services: HttpServices, paths: HttpPaths): Route {
  const readOnly = services.config.get(KEYS.httpReadOnly);
  return {
    path: paths.import,
    methods: ['POST', 'PUT'],
    access: 'data',
    handle: async (context) => {
      const problem = multipartProblem(context.get('Content-Type'));
      if (problem !== null) {
        answerText(context, 400, problem);
        return;
      }
      try {
        await answerImport(context, services, readOnly);
      } catch (error) {
        if (error instanceof BodyError) {
          throw error;
        }
        answerFailure(context, asDatabaseError(error));
      }
    },
  };
}

async function answerImport(
  context: HttpContext,
  services: HttpServices,
  readOnly: boolean,
): Promise<void> {
  const parameters = readImportParameters(context.state.parameters.toSearchParams());
  const { database, guard } = services.sessions;
  const principal = principalOf(context, readOnly);
  const created = new Set<string>();
  const written = new Set<string>();
  const result = await importCsv(
    database,
    parameters,
    readParts(context.req, context.state.timeouts.bodyMs),
    {
      authorise: (access) => {
        if (readOnly) {
          throw new DatabaseError({ code: 'ReadOnly', message: 'this endpoint is read-only' });
        }
        // What an earlier part of the request created is the user's own.
        if (!created.has(access.table)) {
          guard?.authorise(principal, importAccesses(access));
        }
        written.add(access.table);
        if (access.creates) {
          created.add(access.table);
        }
      },
      analysedLines: services.config.get(KEYS.textAnalysisLines),
    },
  );
  for (const table of guard === undefined ? [] : created) {
    await guard?.own(principal, table);
  }
  for (const table of written) {
    guard?.ran(principal, `import into '${table}'`, { command: 'IMPORT' });
  }
  answer(context, result.status, result.contentType, result.body);
}

/** What the rows of an import take; structure that goes takes as much as dropping the table. */
function importAccesses({ table, creates, overwrites }: ImportAccess): readonly Access[] {
  if (creates) {
    return [{ table: '', columns: [], permission: 'CREATE TABLE' }];
  }
  const names = overwrites ? ['INSERT', 'TRUNCATE TABLE', 'DROP TABLE'] : ['INSERT'];
  return names.map((permission) => ({ table, columns: [], permission }));
}

/** The database failed, or refused; the status says so beside the text. */
function answerFailure(context: HttpContext, error: DatabaseError): void {
  context.app.emit('error', error, context);
  const status = httpStatusOf(error.code);
  if (context.state.parameters.get('fmt')?.toLowerCase() === 'json') {
    answer(context, status, JSON_TYPE, JSON.stringify({ status: error.message }));
  } else {
    answerText(context, status, error.message);
  }
}
