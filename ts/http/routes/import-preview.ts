/**
 * POST /api/v1/import/preview: shows how `/imp` would import a file, from its first bytes. Nothing
 * is written; users can edit the result in the console.
 */
import { ImportError, proposeImport, tryColumn } from '../../ingest/index.js';
import { DatabaseError } from '../../session/index.js';
import type { HttpPaths } from '../paths.js';
import { answer, type HttpContext, type HttpServices, JSON_TYPE, type Route } from '../route.js';

const MAX_SAMPLE_BYTES = 16 * 1024 * 1024;

export function importPreviewRoute(services: HttpServices, paths: HttpPaths): Route {
  return {
    path: paths.importPreview,
    methods: ['POST'],
    access: 'data',
    errors: 'json',
    body: { kind: 'bytes', limitBytes: MAX_SAMPLE_BYTES },
    about: 'previews how `/imp` would import a file, based on its first bytes',
    handle: async (context) => {
      try {
        answer(context, 200, JSON_TYPE, JSON.stringify(await propose(context, services)));
      } catch (error) {
        if (!(error instanceof ImportError)) {
          throw error;
        }
        answer(context, 400, JSON_TYPE, JSON.stringify({ error: error.message }));
      }
    },
  };
}

async function propose(context: HttpContext, services: HttpServices): Promise<object> {
  const { database } = services.sessions;
  const { body, parameters } = context.state;
  const header = parameters.get('header');
  const delimiter = parameters.get('delimiter') ?? '';
  const hints = {
    name: parameters.get('name') ?? '',
    delimiter: /^[^"\r\n\u0080-\uffff]$/.test(delimiter) ? delimiter : null,
    header: header === 'true' ? true : header === 'false' ? false : null,
    isComplete: parameters.get('whole') === 'true',
  };
  const entry = parameters.get('trial');
  if (entry === undefined) {
    return await proposeImport(database, body, hints);
  }
  try {
    const index = Number(parameters.get('index'));
    return await tryColumn(database, body, hints, { index, entry });
  } catch (error) {
    // An incomplete pattern is not an error in the request, because the user may still be typing.
    if (error instanceof ImportError || error instanceof DatabaseError) {
      return { problem: error.message };
    }
    throw error;
  }
}
