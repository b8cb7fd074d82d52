/**
 * POST /api/v1/import/preview: what `/imp` would make of a file, from its first bytes. Nothing is
 * written; the console shows the answer for people to change.
 */
import { ImportError, proposeImport } from '../../ingest/index.js';
import type { HttpPaths } from '../paths.js';
import { answer, type HttpContext, JSON_TYPE, type Route } from '../route.js';

const LARGEST_SAMPLE_BYTES = 16 * 1024 * 1024;

export function importPreviewRoute(paths: HttpPaths): Route {
  return {
    path: paths.importPreview,
    methods: ['POST'],
    access: 'data',
    body: { kind: 'bytes', limitBytes: LARGEST_SAMPLE_BYTES },
    about: 'what `/imp` would make of a file, from its first bytes',
    handle: async (context) => {
      try {
        answer(context, 200, JSON_TYPE, JSON.stringify(await propose(context)));
      } catch (error) {
        if (!(error instanceof ImportError)) {
          throw error;
        }
        answer(context, 400, JSON_TYPE, JSON.stringify({ error: error.message }));
      }
    },
  };
}

function propose(context: HttpContext): ReturnType<typeof proposeImport> {
  const { body, parameters } = context.state;
  const header = parameters.get('header');
  const delimiter = parameters.get('delimiter') ?? '';
  return proposeImport(body, {
    name: parameters.get('name') ?? '',
    delimiter: /^[^"\r\n\u0080-\uffff]$/.test(delimiter) ? delimiter : null,
    header: header === 'true' ? true : header === 'false' ? false : null,
    isWhole: parameters.get('whole') === 'true',
  });
}
