/** What asking about a credential comes to. */
import type { Identity } from '../identity.js';

export type Verdict =
  | {
      readonly kind: 'known';
      readonly identity: Identity;
      /** Milliseconds since 1970 when the token ends, if it says so. */
      readonly expires?: number;
    }
  /** Not, or no longer, good. */
  | { readonly kind: 'refused'; readonly reason: string }
  /** Good, but its scope does not reach as far as user information. */
  | { readonly kind: 'insufficient scope' }
  /** Undecided. */
  | { readonly kind: 'unavailable'; readonly reason: string; readonly seconds: number };

export function refused(reason: string): Verdict {
  return { kind: 'refused', reason };
}

/** Seconds until a client may ask again when the provider said nothing else. */
const RETRY_SECONDS = 5;

export function unavailable(reason: string, seconds = RETRY_SECONDS): Verdict {
  return { kind: 'unavailable', reason, seconds };
}
