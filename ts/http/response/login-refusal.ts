/** Responses to failed logins: status, challenges and a message. */
import type { Authenticator, Login } from '../../auth/index.js';
import { answer, answerText, type HttpContext, JSON_TYPE } from '../route.js';

const BASIC = 'Basic realm="tidemark", charset="UTF-8"';

/** Refuses a request with two sets of credentials, which is ambiguous. */
export function refuseTwice(context: HttpContext, { challenges }: Authenticator): void {
  if (challenges.bearer) {
    context.set(
      'WWW-Authenticate',
      bearer('invalid_request', 'more than one Authorization header'),
    );
  }
  answerText(context, 400, 'Bad Request: more than one Authorization header');
}

export function refuseLogin(
  context: HttpContext,
  login: Exclude<Login, { kind: 'known' }>,
  authenticator: Authenticator,
): void {
  switch (login.kind) {
    case 'unavailable':
      // Status 401 is not used, because it would make clients discard their login.
      context.set('Retry-After', String(login.seconds));
      answerText(context, 503, 'Service Unavailable: the identity provider is not responding');
      return;
    case 'wait':
      context.set('Retry-After', String(login.seconds));
      answerText(context, 429, 'Too Many Requests');
      return;
    case 'busy':
      context.set('Retry-After', String(login.seconds));
      answerText(context, 503, 'Service Unavailable: too many concurrent logins');
      return;
    case 'insufficient scope':
      context.set(
        'WWW-Authenticate',
        bearer('insufficient_scope', 'the token does not allow access to user information'),
      );
      forbid(context, 'the scope of the token is insufficient: request openid');
      return;
    case 'denied':
      forbid(context, `Access denied [${login.permission}]`);
      return;
    case 'unknown':
      challenge(context, login.error, authenticator);
      answerText(context, 401, 'Unauthorized');
  }
}

/** Responds in the format of a statement error. */
function forbid(context: HttpContext, error: string): void {
  const query = context.state.parameters.get('query') ?? '';
  answer(context, 403, JSON_TYPE, JSON.stringify({ query, error, position: 0 }));
}

function challenge(
  context: HttpContext,
  error: string | undefined,
  { challenges }: Authenticator,
): void {
  const headers: string[] = [];
  if (challenges.bearer) {
    headers.push(error === undefined ? 'Bearer realm="tidemark"' : bearer('invalid_token', error));
  }
  // Only programs receive this challenge. A browser would prompt for a password and then also send
  // it with requests from other sites' pages.
  const browser = Object.keys(context.headers).some((name) => name.startsWith('sec-fetch-'));
  if (challenges.basic && !browser && !context.get('Accept').includes('text/html')) {
    headers.push(BASIC);
  }
  if (headers.length > 0) {
    context.set('WWW-Authenticate', headers);
  }
}

/** `description` must come from this server: no quotes, no client input. */
function bearer(error: string, description: string): string {
  return `Bearer realm="tidemark", error="${error}", error_description="${description}"`;
}
