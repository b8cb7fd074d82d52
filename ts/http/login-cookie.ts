/** Reads, sets and removes the login session cookie. */
import { SESSION_COOKIE, SESSION_SECONDS } from '../auth/index.js';
import { countHeader } from './request/origin-guard.js';
import type { HttpContext, HttpServices } from './route.js';

/**
 * Returns a request's session token; `null` if it has no session cookie, or more than one, which
 * would be ambiguous.
 */
export function sessionToken(context: HttpContext): string | null {
  const header = context.headers.cookie ?? '';
  if (header === '' || countHeader(context.req, 'cookie') > 1) {
    return null;
  }
  const values = header
    .split(';')
    .map((pair) => pair.trim().split('=', 2))
    .filter(([name]) => name === SESSION_COOKIE)
    .map(([, value]) => value ?? '');
  return values.length === 1 && values[0] !== '' ? (values[0] ?? null) : null;
}

/**
 * Whether a request comes from a page of this server. A browser sends the cookie automatically, so
 * the request must prove its origin. `Sec-Fetch-Site: none` proves nothing, because the user may
 * have followed a link from another site.
 */
export function isFromOwnPage(context: HttpContext): boolean {
  // Requests from other origins have already been refused.
  const { origin = '', 'sec-fetch-site': site } = context.headers;
  return origin !== '' || site === 'same-origin';
}

/** `session=true` starts a session after a login; `session=false` ends it. */
export function followSession(context: HttpContext, services: HttpServices, path: string): void {
  const { login, parameters } = context.state;
  const { required, sessions } = services.authenticator;
  const requested = required ? parameters.get('session')?.toLowerCase() : undefined;
  if (login === null || requested === undefined) {
    return;
  }
  const token = sessionToken(context);
  if (requested === 'true') {
    const isNew = context.headers.authorization !== undefined;
    if (token !== null && isNew) {
      // A request with credentials gets a new session, which replaces the previous one.
      sessions.close(token);
    }
    if (isNew || token === null || sessions.find(token) === null) {
      setCookie(context, sessions.open(login), SESSION_SECONDS, path);
    }
  } else if (requested === 'false' && token !== null) {
    sessions.close(token);
    setCookie(context, '', 0, path);
    const { remoteAddress = '' } = context.req.socket;
    services.observer?.signedOut(login.identity, 'HTTP', remoteAddress);
  }
}

function setCookie(context: HttpContext, value: string, seconds: number, path: string): void {
  const secure = 'encrypted' in context.req.socket ? '; Secure' : '';
  const traits = `HttpOnly; Path=${path}; SameSite=Strict; Max-Age=${seconds}${secure}`;
  context.append('Set-Cookie', `${SESSION_COOKIE}=${value}; ${traits}`);
}
