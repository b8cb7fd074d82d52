/**
 * From a request to its route. Koa carries requests and answers; those of hot paths are carried by
 * `Exchange`, which does the same with less. Steps and routes cannot tell which it was.
 */
import Koa from 'koa';

import { type Endpoint, KEYS } from '../config/index.js';
import { busyPoll } from '../sockets/index.js';
import type { Application } from './connection-gate.js';
import { Exchange } from './exchange.js';
import { LOOPBACK_NAMES, type OriginRules } from './origin-guard.js';
import { type HttpContext, type HttpServices, type Route } from './route.js';
import {
  allowOrigins,
  checkAccess,
  checkHost,
  checkMethod,
  checkPath,
  closeAfterwards,
  commonHeaders,
  failRequest,
  readAddress,
  routeTable,
  type Step,
} from './steps.js';

/** The request listener of a set of routes; tests call it without a socket's address. */
export function createApplication(
  services: HttpServices,
  routes: readonly Route[],
  endpoint: Endpoint,
  ...before: readonly Step[]
): Application {
  const logger = services.logger.child('http');
  const failed = (error: unknown): void => logger.debug('answer_failed', { error });
  const serve = service(services, routes, endpoint, before);
  const koa = new Koa();
  koa.silent = true;
  koa.on('error', failed);
  koa.use(serve);
  const slow = koa.callback();
  const hot = routes.filter(({ isHot }) => isHot === true).map(({ path }) => path);
  return async (request, response) => {
    if (!hot.some((path) => isAt(request.url, path))) {
      await slow(request, response);
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

/** Whether an address is exactly this path, with or without a query. */
function isAt(target: string | undefined, path: string): boolean {
  const { length } = path;
  return target?.startsWith(path) === true && (target.length === length || target[length] === '?');
}

type Service = (context: HttpContext) => Promise<void>;

/** Steps and route; what fails anywhere in them becomes an answer. */
function service(
  services: HttpServices,
  routes: readonly Route[],
  endpoint: Endpoint,
  before: readonly Step[],
): Service {
  const { authenticator, config, witness } = services;
  const rules = originRules(services, endpoint);
  const table = routeTable(routes);
  const steps: readonly Step[] = [
    readAddress(config),
    commonHeaders(),
    ...before,
    ...(config.get(KEYS.httpServerKeepAlive) ? [] : [closeAfterwards()]),
    checkHost(rules),
    allowOrigins(rules),
    checkPath(table),
    checkAccess(table, authenticator, rules, witness),
    checkMethod(table),
  ];
  const logger = services.logger.child('http');
  return async (context) => {
    try {
      for (const step of steps) {
        const passed = step(context);
        // What is there at once is not waited for.
        if (!(typeof passed === 'boolean' ? passed : await passed)) {
          return;
        }
      }
      await table.get(context.state.path)?.byMethod.get(context.method)?.handle(context);
    } catch (error) {
      failRequest(context, error, logger);
    }
  };
}

function originRules(services: HttpServices, endpoint: Endpoint): OriginRules {
  const { authenticator, config } = services;
  const bound = endpoint.host ?? '127.0.0.1';
  const hosts = [
    ...LOOPBACK_NAMES,
    bound.includes(':') ? `[${bound}]` : bound,
    ...config.get(KEYS.httpAllowedHosts),
  ];
  const anyHost = authenticator.required || config.get(KEYS.insecurePublic);
  return {
    hosts: anyHost ? null : new Set(hosts.map((host) => host.toLowerCase())),
    corsOrigins: new Set(config.get(KEYS.httpCorsOrigins)),
  };
}
