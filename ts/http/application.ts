/**
 * From a request to its pipeline. Koa and its router carry requests and answers; those of hot
 * routes are carried by `Exchange`, which does the same with less.
 */
import Koa from 'koa';

import type { Endpoint } from '../config/index.js';
import { busyPoll } from '../sockets/index.js';
import type { Application } from './connection-gate.js';
import { Exchange } from './exchange.js';
import { createPipelines, type Pipelines } from './pipeline.js';
import type { HttpContext, HttpServices, Route } from './route.js';
import { pathOf } from './steps.js';

/** The request listener of a set of routes. `anyPath` answers GETs of paths that none is at. */
export function createApplication(
  services: HttpServices,
  routes: readonly Route[],
  endpoint: Endpoint,
  anyPath?: Route,
): Application {
  const logger = services.logger.child('http');
  const failed = (error: unknown): void => logger.debug('answer_failed', { error });
  const pipelines = createPipelines(services, routes, endpoint, anyPath);
  const koa = throughKoa(pipelines);
  koa.on('error', failed);
  const answer = koa.callback();
  return async (request, response) => {
    const { method = '', url = '' } = request;
    const at = url.indexOf('?');
    const serve = pipelines.hot.get(at < 0 ? url : url.slice(0, at))?.get(method);
    if (serve === undefined) {
      await answer(request, response);
      return;
    }
    const exchange = new Exchange(request, response);
    const pace = busyPoll.paceOf(request.socket);
    pace.asked();
    try {
      await serve(exchange);
      exchange.finish();
      pace.answered();
    } catch (error) {
      failed(error);
      response.destroy();
    }
  };
}

/** What the router reads of Koa's context beside the request, and leaves there. */
interface Routed {
  newRouterPath?: string;
  matched?: readonly object[];
}

function throughKoa({ router, unserved }: Pipelines): Koa {
  const koa = new Koa();
  koa.silent = true;
  const find = router.routes();
  koa.use(async (context, next) => {
    const target = context.req.url ?? '';
    // Nothing is served at `http://host/path` and `*`, and Koa would read them as URLs.
    if (target.startsWith('/')) {
      (context as Routed).newRouterPath = pathOf(target);
      await find(context as unknown as Parameters<typeof find>[0], next);
    } else {
      await next();
    }
  });
  koa.use((context) =>
    unserved(context as unknown as HttpContext, (context as Routed).matched ?? []),
  );
  return koa;
}
