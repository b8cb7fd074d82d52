/** The request pipeline's steps; `pipeline.ts` orders them. */
import {
  type Authenticator,
  CallerDisconnected,
  type Login,
  type LoginObserver,
  readCredentials,
} from '../auth/index.js';
import { type Config, KEYS } from '../config/index.js';
import type { Logger } from '../observability/index.js';
import { asDatabaseError, errorMeaning } from '../session/index.js';
import { slotOf } from '../sockets/index.js';
import { ClientDisconnected } from './response/body-writer.js';
import { endBeforeBody } from './request/early-answer.js';
import { isFromOwnPage, sessionToken } from './login-cookie.js';
import { refuseLogin, refuseTwice } from './response/login-refusal.js';
import { countHeader, hostAllowed, type OriginRules, pageAllowed } from './request/origin-guard.js';
import { Parameters } from './request/parameters.js';
import { BodyError } from './request/request-body.js';
import {
  answer,
  answerText,
  type ErrorForm,
  type HttpContext,
  type HttpServices,
  JSON_TYPE,
  type Route,
  TEXT_TYPE,
  type TransferTimeouts,
} from './route.js';
import { answerStatementError, principalOf } from './response/statement-answer.js';

/** Runs a step. Returns false if the step sent the response, which ends the pipeline. */
export type Step = (context: HttpContext) => boolean | Promise<boolean>;

/** Converts every error to a response, in its route's format. */
export function failRequest(
  context: HttpContext,
  error: unknown,
  form: ErrorForm,
  logger: Logger,
): void {
  if (context.res.headersSent || context.res.destroyed) {
    logger.debug('answer_broken_off', { error });
    context.respond = false;
    context.res.destroy();
    return;
  }
  answerError(context, error, form, logger);
}

function answerError(context: HttpContext, error: unknown, form: ErrorForm, logger: Logger): void {
  context.respond = true;
  if (error instanceof ClientDisconnected || error instanceof CallerDisconnected) {
    context.respond = false;
    return;
  }
  if (error instanceof BodyError) {
    // The remainder of the body must not be parsed as the next request.
    context.set('Connection', 'close');
    context.remove('Keep-Alive');
    const { type, body } = errorIn(form, error.message);
    if (context.req.complete) {
      answer(context, error.status, type, body);
    } else {
      endBeforeBody(context, error.status, type, body);
    }
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
  if (httpStatus === 503) {
    context.set('Retry-After', '1');
  }
  if (context.state.statement === null) {
    const { type, body } = errorIn(form, failure.message);
    answer(context, httpStatus, type, body);
  } else {
    answerStatementError(context, failure);
  }
}

function errorIn(form: ErrorForm, message: string): { type: string; body: string } {
  return form === 'json'
    ? { type: JSON_TYPE, body: JSON.stringify({ error: message }) }
    : { type: TEXT_TYPE, body: `${message}\r\n` };
}

/**
 * Returns the path of a request target. The target is never parsed as a URL, in which `//exec`
 * would be a host.
 */
export function pathOf(target: string): string {
  const at = target.indexOf('?');
  const path = at < 0 ? target : target.slice(0, at);
  return path.startsWith('//') ? path.replace(/^\/+/, '/') : path;
}

const NO_BYTES = Buffer.alloc(0);

export function readAddress(config: Config): Step {
  const timeouts: TransferTimeouts = {
    bodyMs: config.get(KEYS.httpBodyTimeout),
    sendMs: config.get(KEYS.httpSendTimeout),
  };
  return (context) => {
    const target = context.req.url ?? '/';
    const at = target.indexOf('?');
    const rawQuery = at < 0 ? '' : target.slice(at + 1);
    const parameters = new Parameters();
    parameters.addEncoded(rawQuery);
    context.state = {
      path: pathOf(target),
      rawQuery,
      parameters,
      body: NO_BYTES,
      identity: null,
      login: null,
      timeouts,
      authenticationNanos: 0,
      statement: null,
    };
    return true;
  };
}

/** Sets the common headers; Node adds the date. */
export function commonHeaders(): Step {
  return (context) => {
    context.set('Server', 'tidemark');
    context.set('X-Content-Type-Options', 'nosniff');
    context.set('Referrer-Policy', 'no-referrer');
    context.set('Cross-Origin-Resource-Policy', 'same-origin');
    context.set('Cache-Control', 'no-store');
    return true;
  };
}

export function closeAfterwards(): Step {
  return (context) => {
    context.res.shouldKeepAlive = false;
    return true;
  };
}

export function checkHost(rules: OriginRules): Step {
  return (context) => {
    if (hostAllowed(context.req, rules)) {
      return true;
    }
    answerText(context, 421, 'Misdirected Request: unknown host; add it to http.allowed.hosts');
    return false;
  };
}

export function allowOrigins(rules: OriginRules): Step {
  return (context) => {
    if (rules.corsOrigins.size === 0) {
      return true;
    }
    const origin = context.get('Origin');
    context.vary('Origin');
    if (!rules.corsOrigins.has(origin)) {
      return true;
    }
    context.set('Access-Control-Allow-Origin', origin);
    context.set('Access-Control-Allow-Credentials', 'true');
    context.set('Access-Control-Expose-Headers', 'Content-Disposition, Retry-After');
    context.set('Cross-Origin-Resource-Policy', 'cross-origin');
    if (context.method !== 'OPTIONS') {
      return true;
    }
    context.set('Access-Control-Allow-Methods', 'GET, HEAD, POST, PUT');
    context.set('Access-Control-Allow-Headers', 'Authorization, Content-Type, Statement-Timeout');
    context.set('Access-Control-Max-Age', '600');
    context.status = 204;
    return false;
  };
}

/** Login results that say nothing about the credentials, because they were not checked. */
const UNJUDGED: ReadonlySet<Login['kind']> = new Set(['unavailable', 'busy']);

/**
 * Returns the user whose password is to be checked; empty for a token, which does not name a user.
 */
function claimedName(authorization: string): string {
  const credentials = readCredentials(authorization);
  return credentials?.scheme === 'basic' ? credentials.user : '';
}

/** Checks the login, and refuses requests from other sites' pages. */
export function checkAccess(
  authenticator: Authenticator,
  rules: OriginRules,
  observer?: LoginObserver,
): Step {
  const settle = (context: HttpContext, login: Login, started: bigint): boolean => {
    context.state.authenticationNanos = Number(process.hrtime.bigint() - started);
    const { remoteAddress = '' } = context.req.socket;
    if (login.kind !== 'known') {
      const { authorization } = context.headers;
      if (!UNJUDGED.has(login.kind) && authorization !== undefined) {
        const name = login.kind === 'denied' ? login.identity.name : claimedName(authorization);
        observer?.refusedLogin(name, 'HTTP', remoteAddress);
      }
      refuseLogin(context, login, authenticator);
      return false;
    }
    slotOf(context.req.socket)?.enter();
    context.state.login = login;
    context.state.identity = login.identity;
    observer?.signedIn(login.identity, 'HTTP', remoteAddress);
    return true;
  };
  return (context) => {
    if (!pageAllowed(context.headers, rules)) {
      answerText(context, 403, 'Forbidden: cross-origin request; see http.cors.origins');
      return false;
    }
    if (countHeader(context.req, 'authorization') > 1) {
      refuseTwice(context, authenticator);
      return false;
    }
    const started = process.hrtime.bigint();
    const login = loginOf(context, authenticator);
    return login instanceof Promise
      ? login.then((found) => settle(context, found, started))
      : settle(context, login, started);
  };
}

function loginOf(context: HttpContext, authenticator: Authenticator): Login | Promise<Login> {
  const fresh = (): Login | Promise<Login> => {
    const { socket, headers } = context.req;
    return authenticator.login(headers.authorization, socket.remoteAddress ?? '', socket);
  };
  const stored = sessionLogin(context, authenticator);
  return stored instanceof Promise ? stored.then((login) => login ?? fresh()) : (stored ?? fresh());
}

/**
 * Returns the login for a session cookie. The cookie is valid only without other credentials, and
 * only from pages of this server. The session ends when its login does: when the provider no longer
 * accepts the token, or when the user is deleted.
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

/** Refuses a request whose user lacks the route's permission. */
export function checkPermission({ sessions }: HttpServices, permission: string): Step {
  return (context) => {
    // Permissions are checked as if the server were not read-only.
    const principal = principalOf(context, false);
    sessions.guard?.authorise(principal, [{ table: '', columns: [], permission }]);
    return true;
  };
}

/**
 * Responds to a request without a matching route. If the path has no route, the status is 404.
 * Otherwise OPTIONS lists the methods of the path, and any other method gets 405.
 */
export function answerUnserved(context: HttpContext, routes: readonly Route[]): void {
  if (routes.length === 0) {
    answerText(context, 404, 'Not Found');
    return;
  }
  const methods = new Set(routes.flatMap((route) => route.methods));
  const heads = methods.has('GET') ? ['HEAD'] : [];
  context.set('Allow', [...methods, ...heads, 'OPTIONS'].join(', '));
  if (context.method === 'OPTIONS') {
    context.status = 204;
  } else {
    answerText(context, 405, `Method ${context.method} not supported`);
  }
}
