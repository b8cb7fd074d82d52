/** The result of verifying a credential. */
import type { Identity } from '../identity.js';

export type Verdict =
  | {
      readonly kind: 'known';
      readonly identity: Identity;
      /** Expiry of the token in milliseconds since 1970, if it has one. */
      readonly expires?: number;
    }
  /** The credential is invalid or no longer valid. */
  | { readonly kind: 'refused'; readonly reason: string }
  /** The token is valid, but its scope does not include user information. */
  | { readonly kind: 'insufficient scope' }
  /** The provider is unavailable, so the credential is neither accepted nor refused. */
  | { readonly kind: 'unavailable'; readonly reason: string; readonly seconds: number };

export function refused(reason: string): Verdict {
  return { kind: 'refused', reason };
}

/** Seconds until a client may retry, unless the provider specifies another time. */
const RETRY_SECONDS = 5;

export function unavailable(reason: string, seconds = RETRY_SECONDS): Verdict {
  return { kind: 'unavailable', reason, seconds };
}
