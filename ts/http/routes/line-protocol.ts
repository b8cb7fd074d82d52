/**
 * POST /write and /api/v2/write: where clients of the line protocol send rows. They learn at
 * once that this server does not read it; 404 would make them look for another path.
 */
import { answer, JSON_TYPE, type Route } from '../route.js';

const REFUSAL = JSON.stringify({
  code: 'unsupported',
  message: 'the line protocol is not supported here, use /imp, or INSERT over /exec or pgwire',
});

export function lineProtocolRoutes(paths: readonly string[]): Route[] {
  return paths.map((path) => ({
    path,
    methods: ['POST'],
    access: 'data',
    about: '501: the line protocol is not supported',
    handle: (context) => {
      answer(context, 501, JSON_TYPE, REFUSAL);
    },
  }));
}
