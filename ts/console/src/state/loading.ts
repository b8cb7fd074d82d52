/** What is asked for: under way, there, or failed with a message. */
import { messageOf } from '../model/message.js';

export type Loading<T> =
  | { readonly state: 'loading' }
  | { readonly state: 'ready'; readonly value: T }
  | { readonly state: 'failed'; readonly message: string };

/** The outcome of asking, as a view shows it. Failures of the class `beyond` are not for a view. */
export async function settle<T>(
  ask: () => Promise<T>,
  beyond?: new (message: string) => Error,
): Promise<Loading<T>> {
  try {
    return { state: 'ready', value: await ask() };
  } catch (cause) {
    if (beyond && cause instanceof beyond) {
      throw cause;
    }
    return { state: 'failed', message: messageOf(cause) };
  }
}

/** The value, once it is there. */
export function readyOf<T>(loaded: Loading<T> | undefined): T | undefined {
  return loaded?.state === 'ready' ? loaded.value : undefined;
}

/** Why it is not there; nothing where it did not fail. */
export function failureOf(loaded: Loading<unknown> | undefined): string {
  return loaded?.state === 'failed' ? loaded.message : '';
}
