/**
 * The pipeline of every request. It parses the URL, sets common headers, and checks Host and CORS.
 * Then it runs the route's checks (login and page check, permission, body) and the route itself.
 * Each route is registered once. Koa's router finds most routes. Frequently used routes are found
 * in a map of exact paths instead, which bypasses Koa. Both ways call the same function, so a route
 * always behaves the same.
 */
import Router from '@koa/router';

import { type Config, type Endpoint, KEYS } from '../config/index.js';
import type { Logger } from '../observability/index.js';
import { answerAwaitingClient } from './request/early-answer.js';
import { LOOPBACK_NAMES, type OriginRules } from './request/origin-guard.js';
import type { ErrorForm, HttpContext, HttpServices, Route } from './route.js';
import { readSmallBody } from './request/small-body.js';
import type { WebSocketConnection } from './websocket/connection.js';
import type { WebSocketRoute } from './websocket/route.js';
import { serveUpgrade } from './websocket/upgrade.js';
import {
  allowOrigins,
  answerUnserved,
  checkAccess,
  checkHost,
  checkPermission,
  closeAfterwards,
  commonHeaders,
  failRequest,
  readAddress,
  type Step,
} from './steps.js';

/** Checks that a request must pass before its route runs. */
type RouteRequirements = Pick<Route, 'access' | 'permission' | 'body'>;

/** Answers a request; never rejects. */
type Serve = (context: HttpContext) => Promise<void>;

export interface Pipelines {
  readonly router: Router;
  /** Handlers for hot routes, keyed by path and method. */
  readonly hot: ReadonlyMap<string, ReadonlyMap<string, Serve>>;
  /**
   * Handles requests without a matching route; `layers` contains the router's matches for the path.
   */
  readonly unserved: (context: HttpContext, layers: readonly object[]) => Promise<void>;
  /** Handlers for WebSocket upgrade requests, keyed by path. */
  readonly upgrades: ReadonlyMap<string, Serve>;
  /** The open WebSockets. */
  readonly webSockets: ReadonlySet<WebSocketConnection>;
}

/** Special routes, in addition to the plain routes. */
export interface OtherRoutes {
  readonly webSockets?: readonly WebSocketRoute[];
  /** Answers GET requests on paths without a route. */
  readonly anyPath?: Route;
}

export function createPipelines(
  services: HttpServices,
  routes: readonly Route[],
  endpoint: Endpoint,
  { webSockets = [], anyPath }: OtherRoutes = {},
): Pipelines {
  const { authenticator, config, observer } = services;
  const rules = originRules(services, endpoint);
  const first = firstSteps(config, rules);
  const access = checkAccess(authenticator, rules, observer);
  const logger = services.logger.child('http');

  const pipeline = (
    steps: readonly Step[],
    end: Route['handle'],
    errors: ErrorForm = 'text',
  ): Serve => serveThrough([...first, ...steps], end, { errors, logger });
  const stepsOf = (route: RouteRequirements): Step[] => stepsBefore(route, access, services);

  // Paths are matched exactly, including case and slashes.
  const router = new Router({ strict: true, sensitive: true });
  const registered = new Map<object, Route>();
  const hot = new Map<string, Map<string, Serve>>();
  for (const route of routes) {
    const serve = pipeline(stepsOf(route), route.handle, route.errors);
    const layer = router.register(literal(route.path), [...route.methods], (context) =>
      serve(context as unknown as HttpContext),
    );
    registered.set(layer, route);
    if (route.isHot === true) {
      hot.set(route.path, new Map(route.methods.map((method) => [method, serve])));
    }
  }
  const open = new Set<WebSocketConnection>();
  const upgrade = (route: WebSocketRoute): Serve =>
    pipeline(stepsOf({ ...route, access: 'data' }), (context) =>
      serveUpgrade(context, route, { open, logger }),
    );
  const other = anyPath && pipeline(stepsOf(anyPath), anyPath.handle);
  return {
    router,
    hot,
    upgrades: new Map(webSockets.map((route) => [route.path, upgrade(route)])),
    webSockets: open,
    unserved: (context, layers) => {
      if (other !== undefined && layers.length === 0 && context.method === 'GET') {
        return other(context);
      }
      const here = layers.flatMap((layer) => registered.get(layer) ?? []);
      // If the path belongs to a data route, a wrong method is reported only after the login check.
      const steps = here.some((route) => route.access === 'data') ? [access] : [];
      return pipeline(steps, () => {
        answerUnserved(context, here);
      })(context);
    },
  };
}

function serveThrough(
  steps: readonly Step[],
  end: Route['handle'],
  { errors, logger }: { errors: ErrorForm; logger: Logger },
): Serve {
  return async (context) => {
    try {
      for (const step of steps) {
        const passed = step(context);
        // Avoids the cost of awaiting a synchronous result.
        if (!(typeof passed === 'boolean' ? passed : await passed)) {
          return;
        }
      }
      await end(context);
    } catch (error) {
      failRequest(context, error, errors, logger);
    } finally {
      answerAwaitingClient(context);
    }
  };
}

function stepsBefore(
  { access: requiredAccess, permission, body }: RouteRequirements,
  access: Step,
  services: HttpServices,
): Step[] {
  return [
    ...(requiredAccess === 'data' ? [access] : []),
    ...(permission === undefined ? [] : [checkPermission(services, permission)]),
    ...(body === undefined ? [] : [readSmallBody(body)]),
  ];
}

function firstSteps(config: Config, rules: OriginRules): Step[] {
  return [
    readAddress(config),
    commonHeaders(),
    ...(config.get(KEYS.httpServerKeepAlive) ? [] : [closeAfterwards()]),
    checkHost(rules),
    allowOrigins(rules),
  ];
}

/** Escapes a path, so that the router matches it literally. */
function literal(path: string): string {
  return path.replace(/[{}()[\]+?!:*\\]/g, '\\$&');
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
