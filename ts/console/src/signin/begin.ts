/**
 * Handles a redirect from the identity provider before the page is shown. The parameters are
 * removed from the URL immediately, so that neither the browser history nor a `Referer` header
 * contains the authorization code.
 */
import type { RedirectAnswer } from './complete.js';
import { signedOut } from './state.js';
import { texts } from '../texts.js';

const ANSWER_PARAMETERS = [
  'code',
  'state',
  'iss',
  'session_state',
  'error',
  'error_description',
  'error_uri',
];

export async function begin(): Promise<void> {
  const answer = takeAnswer();
  if (answer === undefined) {
    return;
  }
  try {
    const { complete } = await import('./complete.js');
    await complete(answer);
  } catch (cause) {
    signedOut(cause instanceof Error ? cause.message : texts.signIn.signInFailed);
  }
}

function takeAnswer(): RedirectAnswer | undefined {
  const given = new URLSearchParams(location.search);
  const state = given.get('state');
  if (state === null || !(given.has('code') || given.has('error'))) {
    return undefined;
  }
  const text = (name: string): string | undefined => given.get(name) ?? undefined;
  const answer = {
    state,
    code: text('code'),
    error: text('error'),
    description: text('error_description'),
    issuer: text('iss'),
  };
  for (const name of ANSWER_PARAMETERS) {
    given.delete(name);
  }
  const rest = given.toString();
  history.replaceState(null, '', location.pathname + (rest && `?${rest}`) + location.hash);
  return answer;
}
