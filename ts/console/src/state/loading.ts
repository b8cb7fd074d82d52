/** The state of a request: loading, ready, or failed with a message. */
import { messageOf } from '../model/message.js';

export type Loading<T> =
  | { readonly state: 'loading' }
  | { readonly state: 'ready'; readonly value: T }
  | { readonly state: 'failed'; readonly message: string };

/**
 * Converts the outcome of a request to a `Loading` value. Errors of class `rethrown` are rethrown.
 */
export async function settle<T>(
  request: () => Promise<T>,
  rethrown?: new (message: string) => Error,
): Promise<Loading<T>> {
  try {
    return { state: 'ready', value: await request() };
  } catch (cause) {
    if (rethrown && cause instanceof rethrown) {
      throw cause;
    }
    return { state: 'failed', message: messageOf(cause) };
  }
}

/** Returns the value if it is loaded. */
export function readyOf<T>(loaded: Loading<T> | undefined): T | undefined {
  return loaded?.state === 'ready' ? loaded.value : undefined;
}

/** Returns the error message of a failed request; empty otherwise. */
export function failureOf(loaded: Loading<unknown> | undefined): string {
  return loaded?.state === 'failed' ? loaded.message : '';
}
