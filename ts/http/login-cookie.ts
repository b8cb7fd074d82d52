/** The cookie of a login session: reading it, setting it, taking it back. */
import { SESSION_COOKIE, SESSION_SECONDS } from '../auth/index.js';
import { countHeader } from './request/origin-guard.js';
import type { HttpContext, HttpServices } from './route.js';

/** The token a request carries; of two it is unclear which is meant. */
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
 * A browser sends the cookie by itself, so the request must show that a page of this server made
 * it; `Sec-Fetch-Site: none` is a link that another site may have made.
 */
export function isFromOwnPage(context: HttpContext): boolean {
  // Foreign origins were refused before.
  const { origin = '', 'sec-fetch-site': site } = context.headers;
  return origin !== '' || site === 'same-origin';
}

/** `session=true` after a login begins a session, `session=false` ends it. */
export function followSession(context: HttpContext, services: HttpServices, path: string): void {
  const { login, parameters } = context.state;
  const { required, sessions } = services.authenticator;
  const asked = required ? parameters.get('session')?.toLowerCase() : undefined;
  if (login === null || asked === undefined) {
    return;
  }
  const token = sessionToken(context);
  if (asked === 'true') {
    const isNew = context.headers.authorization !== undefined;
    if (token !== null && isNew) {
      // A request with credentials gets a new session, and the one before ends.
      sessions.close(token);
    }
    if (isNew || token === null || sessions.find(token) === null) {
      setCookie(context, sessions.open(login), SESSION_SECONDS, path);
    }
  } else if (asked === 'false' && token !== null) {
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
