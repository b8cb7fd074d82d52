/** Small responses: warnings, ping, health and metrics. */
import { timingSafeEqual } from 'node:crypto';

import { KEYS } from '../../config/index.js';
import { hostWarnings } from '../../observability/index.js';
import {
  answer,
  answerText,
  type HttpContext,
  type HttpServices,
  JSON_TYPE,
  type Route,
  type StatusSource,
} from '../route.js';

/** Below the base path. */
export const STATUS_PATH = '/api/v1/status';
const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

/** GET /warnings: host limits that the operator should raise. */
export function warningsRoute(path: string): Route {
  // Read once, because the limits of a process do not change after it has started.
  const body = JSON.stringify(hostWarnings());
  return {
    path,
    methods: ['GET'],
    access: 'open',
    errors: 'text',
    about: 'lists host limits that are too low for a large database',
    handle: (context) => {
      answer(context, 200, 'application/json', body);
    },
  };
}

export function pingRoute({ config }: HttpServices, path: string): Route {
  const version = config.get(KEYS.linePingVersion);
  return {
    path,
    methods: ['GET'],
    access: 'open',
    errors: 'text',
    about: 'returns 204, for clients that check whether the server is running',
    handle: (context) => {
      context.set('X-Influxdb-Version', version);
      context.status = 204;
    },
  };
}

/**
 * GET /status, /health, /metrics and /ready, on the main and the minimal port. A server is ready if
 * it accepts work, even with damaged tables. A stopping server refuses every request.
 */
export function healthRoutes(services: HttpServices, base = ''): Route[] {
  const health = (context: HttpContext): void => {
    const damages = services.sessions.database.damages();
    if (damages.length === 0) {
      answer(context, 200, 'text/plain', 'Status: Healthy');
      return;
    }
    const lines = damages.map(({ table, what }) => `table '${table}' is damaged: ${what}`);
    answer(context, 503, 'text/plain', ['Status: Unhealthy', ...lines].join('\n'));
  };
  const metrics = (context: HttpContext): void => {
    answer(context, 200, METRICS_TYPE, services.metrics.text());
  };
  const shown = services.config.get(KEYS.metricsEnabled);
  const answers = { status: health, health, metrics: shown ? metrics : health };
  const routes: Route[] = Object.entries(answers).map(([name, handle]) => ({
    path: `${base}/${name}`,
    methods: ['GET'],
    access: 'data',
    errors: 'text',
    about: 'returns health and metrics; also on port 9003',
    handle,
  }));
  const ready: Route = {
    path: `${base}/ready`,
    methods: ['GET'],
    access: 'open',
    errors: 'text',
    about:
      'returns 200 while the server accepts work, and 503 while it is stopping; also on port 9003',
    handle: (context) => {
      answer(context, 200, 'text/plain', 'Status: Ready');
    },
  };
  const { status } = services;
  return [...routes, ready, ...(status === undefined ? [] : [statusRoute(status, base)])];
}

/**
 * GET /api/v1/status: the figures of `tidemark status`. Its token is stored in a file that only the
 * server's OS user can read, so that an operator on the machine needs no database login.
 */
function statusRoute({ token, read }: StatusSource, base: string): Route {
  const expected = Buffer.from(`Bearer ${token}`);
  return {
    path: `${base}${STATUS_PATH}`,
    methods: ['GET'],
    access: 'open',
    errors: 'text',
    about: null,
    handle: async (context) => {
      const given = Buffer.from(context.get('Authorization'));
      if (given.length !== expected.length || !timingSafeEqual(given, expected)) {
        answerText(context, 401, 'Unauthorized: the token of ROOT/server.json is required');
        return;
      }
      answer(context, 200, JSON_TYPE, JSON.stringify(await read()));
    },
  };
}
