/**
 * The one way of every request: its address is read, common headers are set, Host check, CORS,
 * then what its route asks for (login and page check, permission, body) and the route itself.
 * A route is registered once. Koa's router finds it, or, where it is hot, a map of exact paths does
 * without Koa: what runs is the same function, which cannot tell who called it.
 */
import Router from '@koa/router';

import { type Config, type Endpoint, KEYS } from '../config/index.js';
import { LOOPBACK_NAMES, type OriginRules } from './request/origin-guard.js';
import type { HttpContext, HttpServices, Route } from './route.js';
import { readSmallBody } from './request/small-body.js';
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

/** Answers a request, whatever happens. */
type Serve = (context: HttpContext) => Promise<void>;

export interface Pipelines {
  readonly router: Router;
  /** What serves hot routes, by path and method. */
  readonly hot: ReadonlyMap<string, ReadonlyMap<string, Serve>>;
  /** Serves what the router found no route for, given what it found at the path. */
  readonly unserved: (context: HttpContext, layers: readonly object[]) => Promise<void>;
}

export function createPipelines(
  services: HttpServices,
  routes: readonly Route[],
  endpoint: Endpoint,
  anyPath?: Route,
): Pipelines {
  const { authenticator, config, observer } = services;
  const rules = originRules(services, endpoint);
  const first = firstSteps(config, rules);
  const access = checkAccess(authenticator, rules, observer);
  const logger = services.logger.child('http');

  const pipeline = (steps: readonly Step[], end: Route['handle']): Serve => {
    const all = [...first, ...steps];
    return async (context) => {
      try {
        for (const step of all) {
          const passed = step(context);
          // What is there at once is not waited for.
          if (!(typeof passed === 'boolean' ? passed : await passed)) {
            return;
          }
        }
        await end(context);
      } catch (error) {
        failRequest(context, error, logger);
      }
    };
  };
  const stepsOf = ({ access: needs, permission, body }: Route): Step[] => [
    ...(needs === 'data' ? [access] : []),
    ...(permission === undefined ? [] : [checkPermission(services, permission)]),
    ...(body === undefined ? [] : [readSmallBody(body)]),
  ];

  // Paths are taken as they are written, to the letter.
  const router = new Router({ strict: true, sensitive: true });
  const registered = new Map<object, Route>();
  const hot = new Map<string, Map<string, Serve>>();
  for (const route of routes) {
    const serve = pipeline(stepsOf(route), route.handle);
    const layer = router.register(literal(route.path), [...route.methods], (context) =>
      serve(context as unknown as HttpContext),
    );
    registered.set(layer, route);
    if (route.isHot === true) {
      hot.set(route.path, new Map(route.methods.map((method) => [method, serve])));
    }
  }
  const other = anyPath && pipeline(stepsOf(anyPath), anyPath.handle);
  return {
    router,
    hot,
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
