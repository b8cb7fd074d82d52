/**
 * POST and PUT /imp: imports a text file into a table, from a form part or from the whole body. It
 * streams the file into `ts/ingest`. An incomplete body adds no rows, because the import throws
 * before it commits.
 */
import { join } from 'node:path';

import { KEYS } from '../../config/index.js';
import type { Logger } from '../../observability/index.js';
import { importCsv, type ImportPart, readImportParameters } from '../../ingest/index.js';
import {
  asDatabaseError,
  type DatabaseError,
  httpStatusOf,
  WriteAuthorizer,
} from '../../session/index.js';
import { UPLOADS } from './import-file.js';
import { principalOf } from '../response/statement-answer.js';
import { multipartProblem, readParts } from '../request/multipart-parts.js';
import { isRawBody, readRawBody } from '../request/raw-body.js';
import { BodyError } from '../request/request-body.js';
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
  const logger = services.logger.child('http');
  return {
    path: paths.import,
    methods: ['POST', 'PUT'],
    access: 'data',
    errors: 'text',
    about: 'imports a text file into a table',
    handle: async (context) => {
      const type = context.get('Content-Type');
      const isRaw = isRawBody(type) && (context.state.parameters.get('name') ?? '') !== '';
      const problem = isRaw ? null : multipartProblem(type);
      if (problem !== null) {
        const hint = isRawBody(type) ? `: specify the table of the file with name=` : '';
        answerText(context, 400, `${problem}${hint}`);
        return;
      }
      try {
        const { bodyMs } = context.state.timeouts;
        const parts = (isRaw ? readRawBody : readParts)(context.req, bodyMs);
        await answerImport(context, services, parts, readOnly);
      } catch (error) {
        if (error instanceof BodyError) {
          throw error;
        }
        answerFailure(context, asDatabaseError(error), logger);
      }
    },
  };
}

async function answerImport(
  context: HttpContext,
  services: HttpServices,
  parts: AsyncIterable<ImportPart>,
  readOnly: boolean,
): Promise<void> {
  const parameters = readImportParameters(context.state.parameters.toSearchParams());
  const requested = context.state.parameters.get('owner') ?? '';
  const owner = requested === '' ? null : requested;
  const { database, guard } = services.sessions;
  const writeAuthorizer = new WriteAuthorizer(guard, {
    principal: principalOf(context, readOnly),
    owner,
  });
  const result = await importCsv(database, parameters, parts, {
    authorise: (target) => {
      writeAuthorizer.authorise(target);
    },
    commit: async (target, run) => {
      const report = await writeAuthorizer.commit(target, run);
      writeAuthorizer.committed(`import into '${target.table}'`, 'IMPORT');
      return report;
    },
    analysedLines: services.config.get(KEYS.textAnalysisLines),
    spoolDirectory: join(services.importRoot, UPLOADS),
  });
  answer(context, result.status, result.contentType, result.body);
}

/** Sends a database error: its message, with the matching status. */
function answerFailure(context: HttpContext, error: DatabaseError, logger: Logger): void {
  logger.debug('answer_failed', { error });
  const status = httpStatusOf(error.code);
  if (context.state.parameters.get('fmt')?.toLowerCase() === 'json') {
    answer(context, status, JSON_TYPE, JSON.stringify({ status: error.message }));
  } else {
    answerText(context, status, error.message);
  }
}
