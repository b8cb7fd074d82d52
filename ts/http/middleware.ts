/**
 * What every request passes, in this order: the error funnel, common headers, the Host check,
 * CORS, 404 for unknown paths, login, the page check, 405 for wrong methods.
 */
import type Koa from 'koa';

import type { Authenticator, Login, LoginWitness } from '../auth/index.js';
import { type Config, KEYS } from '../config/index.js';
import type { Logger } from '../observability/index.js';
import { asDatabaseError, errorMeaning } from '../session/index.js';
import { ClientGone } from './body-writer.js';
import { isFromOwnPage, sessionToken } from './login-cookie.js';
import { refuseLogin, refuseTwice } from './login-refusal.js';
import { countHeader, hostAllowed, type OriginRules, pageAllowed } from './origin-guard.js';
import { Parameters } from './parameters.js';
import { BodyError } from './request-body.js';
import {
  answerText,
  type HttpContext,
  type RequestState,
  type Route,
  type TransferTimeouts,
} from './route.js';
import { answerStatementError } from './statement-answer.js';

export type HttpMiddleware = Koa.Middleware<RequestState>;

/** The one place where errors become answers. */
export function errorFunnel(logger: Logger): HttpMiddleware {
  return async (context, next) => {
    try {
      await next();
    } catch (error) {
      if (context.res.headersSent || context.res.destroyed) {
        logger.debug('answer_broken_off', { error });
        context.respond = false;
        context.res.destroy();
        return;
      }
      answerError(context, error, logger);
    }
  };
}

function answerError(context: HttpContext, error: unknown, logger: Logger): void {
  context.respond = true;
  if (error instanceof ClientGone) {
    context.respond = false;
    return;
  }
  if (error instanceof BodyError) {
    // What is left of the body must not be read as the next request.
    context.set('Connection', 'close');
    context.remove('Keep-Alive');
    answerText(context, error.status, error.message);
    return;
  }
  const failure = asDatabaseError(error);
  const { httpStatus, logLevel } = errorMeaning(failure.code);
  logger.log(logLevel, 'request_failed', {
    path: context.state.path,
    code: failure.code,
    message: failure.message,
    ...(failure.cause === undefined ? {} : { cause: failure.cause }),
  });
  context.remove('Content-Disposition');
  if (context.state.statement === null) {
    answerText(context, httpStatus, failure.message);
  } else {
    answerStatementError(context, failure);
  }
}

/** Splits the address without ever treating it as a URL: `//exec` is a path, not a host. */
export function readAddress(config: Config): HttpMiddleware {
  const timeouts: TransferTimeouts = {
    bodyMs: config.get(KEYS.httpBodyTimeout),
    sendMs: config.get(KEYS.httpSendTimeout),
  };
  return async (context, next) => {
    const target = context.req.url ?? '/';
    const at = target.indexOf('?');
    const path = at < 0 ? target : target.slice(0, at);
    const { state } = context;
    state.path = path.replace(/^\/{2,}/, '/');
    state.rawQuery = at < 0 ? '' : target.slice(at + 1);
    state.parameters = new Parameters();
    state.parameters.addEncoded(state.rawQuery);
    state.identity = null;
    state.login = null;
    state.timeouts = timeouts;
    state.authenticationNanos = 0;
    state.statement = null;
    await next();
  };
}

export function commonHeaders(): HttpMiddleware {
  return async (context, next) => {
    context.set('Server', 'tidemark');
    context.set('Date', new Date().toUTCString());
    context.set('X-Content-Type-Options', 'nosniff');
    context.set('Referrer-Policy', 'no-referrer');
    context.set('Cross-Origin-Resource-Policy', 'same-origin');
    context.set('Cache-Control', 'no-store');
    await next();
  };
}

export function closeAfterwards(): HttpMiddleware {
  return async (context, next) => {
    context.res.shouldKeepAlive = false;
    await next();
  };
}

/** Node leaves out headers beyond the limit without a word; one of them may matter. */
export function checkHeaderCount(limit: number): HttpMiddleware {
  return async (context, next) => {
    if (context.req.rawHeaders.length / 2 > limit) {
      context.set('Connection', 'close');
      answerText(context, 431, `Request Header Fields Too Large [limit=${limit}]`);
      return;
    }
    await next();
  };
}

export function checkHost(rules: OriginRules): HttpMiddleware {
  return async (context, next) => {
    if (!hostAllowed(context.req, rules)) {
      answerText(context, 421, 'Misdirected Request: add the name to http.allowed.hosts');
      return;
    }
    await next();
  };
}

export function allowOrigins(rules: OriginRules): HttpMiddleware {
  return async (context, next) => {
    const origin = context.get('Origin');
    if (rules.corsOrigins.size > 0) {
      context.vary('Origin');
    }
    const listed = rules.corsOrigins.has(origin);
    if (listed) {
      context.set('Access-Control-Allow-Origin', origin);
      context.set('Access-Control-Allow-Credentials', 'true');
      context.set('Access-Control-Expose-Headers', 'Content-Disposition, Retry-After');
      context.set('Cross-Origin-Resource-Policy', 'cross-origin');
    }
    if (listed && context.method === 'OPTIONS') {
      context.set('Access-Control-Allow-Methods', 'GET, HEAD, POST, PUT');
      context.set('Access-Control-Allow-Headers', 'Authorization, Content-Type, Statement-Timeout');
      context.set('Access-Control-Max-Age', '600');
      context.status = 204;
      return;
    }
    await next();
  };
}

/** The routes by path; several may share one. */
export type RouteTable = ReadonlyMap<string, readonly Route[]>;

export function routeTable(routes: readonly Route[]): RouteTable {
  const table = new Map<string, Route[]>();
  for (const route of routes) {
    table.set(route.path, [...(table.get(route.path) ?? []), route]);
  }
  return table;
}

export function checkPath(table: RouteTable): HttpMiddleware {
  return async (context, next) => {
    if (table.has(context.state.path)) {
      await next();
    } else {
      answerText(context, 404, 'Not Found');
    }
  };
}

/** Login, and no pages of other sites, where a path serves data. */
export function checkAccess(
  table: RouteTable,
  authenticator: Authenticator,
  rules: OriginRules,
  witness?: LoginWitness,
): HttpMiddleware {
  return async (context, next) => {
    const routes = table.get(context.state.path) ?? [];
    const method = context.method === 'HEAD' ? 'GET' : context.method;
    const meant = routes.filter(({ methods }) => methods.includes(method));
    // A wrong method on a data path is told about its login first.
    if (!(meant.length > 0 ? meant : routes).some(({ access }) => access === 'data')) {
      await next();
      return;
    }
    if (!pageAllowed(context.headers, rules)) {
      answerText(context, 403, 'Forbidden: the request comes from a page of another site');
      return;
    }
    if (countHeader(context.req, 'authorization') > 1) {
      refuseTwice(context, authenticator);
      return;
    }
    const started = process.hrtime.bigint();
    const { remoteAddress = '' } = context.req.socket;
    const login =
      (await sessionLogin(context, authenticator)) ??
      (await authenticator.login(context.headers.authorization, remoteAddress));
    context.state.authenticationNanos = Number(process.hrtime.bigint() - started);
    if (login.kind !== 'known') {
      if (login.kind !== 'unavailable' && context.headers.authorization !== undefined) {
        const name = login.kind === 'denied' ? login.identity.name : '';
        witness?.refusedLogin(name, 'HTTP', remoteAddress);
      }
      refuseLogin(context, login, authenticator);
      return;
    }
    context.state.login = login;
    context.state.identity = login.identity;
    witness?.signedIn(login.identity, 'HTTP', remoteAddress);
    await next();
  };
}

/**
 * A cookie counts where no credentials are sent, and for pages of this server alone. The session
 * ends with what began it: a token the provider takes no more, a user who is gone.
 */
function sessionLogin(
  context: HttpContext,
  { sessions }: Authenticator,
): Login | null | Promise<Login | null> {
  if (context.headers.authorization !== undefined || !isFromOwnPage(context)) {
    return null;
  }
  const token = sessionToken(context);
  const login = token === null ? null : sessions.find(token);
  if (token === null || login?.renew === undefined) {
    return login;
  }
  const settle = (renewed: Login): Login => {
    if (renewed.kind === 'unknown') {
      sessions.close(token);
    }
    return renewed;
  };
  const renewed = login.renew();
  return renewed instanceof Promise ? renewed.then(settle) : settle(renewed);
}

/** OPTIONS tells the methods; others than those get 405. */
export function checkMethod(table: RouteTable): HttpMiddleware {
  return async (context, next) => {
    const routes = table.get(context.state.path) ?? [];
    const allowed = new Set(routes.flatMap((route) => route.methods));
    if (allowed.has('GET')) {
      allowed.add('HEAD');
    }
    if (allowed.has(context.method)) {
      await next();
      return;
    }
    context.set('Allow', [...allowed, 'OPTIONS'].join(', '));
    if (context.method === 'OPTIONS') {
      context.status = 204;
    } else {
      answerText(context, 405, `Method ${context.method} not supported`);
    }
  };
}
