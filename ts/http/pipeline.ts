/**
 * The one way of every request: its address is read, common headers are set, Host check, CORS,
 * then what its route asks for (login and page check, permission, body) and the route itself.
 * A route is registered once. Koa's router finds it, or, where it is hot, a map of exact paths does
 * without Koa: what runs is the same function, which cannot tell who called it.
 */
import Router from '@koa/router';

import { type Config, type Endpoint, KEYS } from '../config/index.js';
import type { Logger } from '../observability/index.js';
import { answerHeldBody } from './request/early-answer.js';
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

/** What a request passes before its route. */
type Needs = Pick<Route, 'access' | 'permission' | 'body'>;

/** Answers a request, whatever happens. */
type Serve = (context: HttpContext) => Promise<void>;

export interface Pipelines {
  readonly router: Router;
  /** What serves hot routes, by path and method. */
  readonly hot: ReadonlyMap<string, ReadonlyMap<string, Serve>>;
  /** Serves what the router found no route for, given what it found at the path. */
  readonly unserved: (context: HttpContext, layers: readonly object[]) => Promise<void>;
  /** What serves requests for a WebSocket, by path. */
  readonly upgrades: ReadonlyMap<string, Serve>;
  /** The WebSockets there are. */
  readonly webSockets: ReadonlySet<WebSocketConnection>;
}

/** What is served beside plain routes. */
export interface OtherRoutes {
  readonly webSockets?: readonly WebSocketRoute[];
  /** Answers GETs of paths that no route is at. */
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
  const stepsOf = (route: Needs): Step[] => stepsBefore(route, access, services);

  // Paths are taken as they are written, to the letter.
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
      // A wrong method on a data path needs its login first.
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
        // What is there at once is not waited for.
        if (!(typeof passed === 'boolean' ? passed : await passed)) {
          return;
        }
      }
      await end(context);
    } catch (error) {
      failRequest(context, error, errors, logger);
    } finally {
      answerHeldBody(context);
    }
  };
}

function stepsBefore(
  { access: needs, permission, body }: Needs,
  access: Step,
  services: HttpServices,
): Step[] {
  return [
    ...(needs === 'data' ? [access] : []),
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

/** A path in the router's language of patterns that means these characters and no others. */
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
