/** Sends credentials to the server once. Afterwards, the server's session cookie replaces them. */
import { execAddress } from '../api/client.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

/**
 * Starts a session and returns the user's name on the server. The credentials are not stored.
 * Throws user-readable errors.
 */
export async function beginSession(authorization: string): Promise<string | undefined> {
  let response;
  try {
    response = await fetch(execAddress('select current_user()', { session: 'true' }), {
      headers: { Authorization: authorization },
      cache: 'no-store',
    });
  } catch (cause) {
    throw new Error(texts.common.notResponding, { cause });
  }
  if (!response.ok) {
    throw new Error(await refusal(response));
  }
  const { dataset } = (await response.json()) as { dataset?: unknown[][] };
  const name = dataset?.[0]?.[0];
  return typeof name === 'string' ? name : undefined;
}

/** Ends the session if the server can be reached. A failed request is not retried. */
export async function endSession(headers: Record<string, string>): Promise<void> {
  await fetch(execAddress('select 1', { session: 'false' }), { headers }).catch(() => undefined);
}

/** Returns a Basic authorization header for a name and password, encoded as UTF-8. */
export function basic(user: string, password: string): string {
  const bytes = new TextEncoder().encode(`${user}:${password}`);
  return `Basic ${btoa(String.fromCharCode(...bytes))}`;
}

async function refusal(response: Response): Promise<string> {
  const wait = response.headers.get('Retry-After') ?? texts.signIn.aFew;
  switch (response.status) {
    case 401:
      return texts.signIn.wrongPassword;
    case 403: {
      const text = await response.text();
      return fill(texts.signIn.noPermission, { reason: errorOf(text) }).trim();
    }
    case 429:
      return fill(texts.signIn.tooManyAttempts, { seconds: wait });
    case 503:
      return texts.signIn.providerNotResponding;
    default:
      return fill(texts.common.returnedStatus, { status: response.status });
  }
}

function errorOf(text: string): string {
  try {
    const { error } = JSON.parse(text) as { error?: unknown };
    return typeof error === 'string' ? error : '';
  } catch {
    return '';
  }
}
