/**
 * Dispatches requests to their pipelines. Koa and its router handle most routes. Frequently used
 * routes use `Exchange`, which does the same with less overhead.
 */
import Koa from 'koa';

import type { Endpoint } from '../config/index.js';
import { busyPoll } from '../sockets/index.js';
import type { Application } from './connection-gate.js';
import { Exchange } from './exchange.js';
import { createPipelines, type OtherRoutes, type Pipelines } from './pipeline.js';
import type { HttpContext, HttpServices, Route } from './route.js';
import { pathOf } from './steps.js';

/** Creates the application for a set of routes. */
export function createApplication(
  services: HttpServices,
  routes: readonly Route[],
  endpoint: Endpoint,
  fallbacks: OtherRoutes = {},
): Application {
  const logger = services.logger.child('http');
  const failed = (error: unknown): void => logger.debug('answer_failed', { error });
  const pipelines = createPipelines(services, routes, endpoint, fallbacks);
  const koa = throughKoa(pipelines);
  koa.on('error', failed);
  const throughRouter = koa.callback();
  const serveHot = async (serve: Serve, exchange: Exchange): Promise<void> => {
    try {
      await serve(exchange);
      exchange.finish();
    } catch (error) {
      failed(error);
      exchange.res.destroy();
    }
  };
  const answer: Application['answer'] = async (request, response) => {
    const { method = '', url = '' } = request;
    const at = url.indexOf('?');
    const serve = pipelines.hot.get(at < 0 ? url : url.slice(0, at))?.get(method);
    if (serve === undefined) {
      await throughRouter(request, response);
      return;
    }
    const pace = busyPoll.paceOf(request.socket);
    pace.received();
    await serveHot(serve, new Exchange(request, response));
    pace.answered();
  };
  return {
    answer,
    upgrade: async (request, response) => {
      const serve = pipelines.upgrades.get(pathOf(request.url ?? ''));
      await (serve === undefined
        ? answer(request, response)
        : serveHot(serve, new Exchange(request, response)));
    },
    webSockets: pipelines.webSockets,
  };
}

/** Answers a request; never rejects. */
type Serve = (exchange: Exchange) => Promise<void>;

/** Properties of Koa's context, besides the request, that the router reads and writes. */
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
    // Targets such as `http://host/path` and `*` match no route, but Koa would parse them as URLs.
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
