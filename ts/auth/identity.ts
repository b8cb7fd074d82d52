/** Who asks, and what a login can come to. */
import type { LoginSessions } from './login-sessions.js';

/**
 * Where a name is known: the administrator of the configuration, users and service accounts of
 * the database, or people whom an identity provider vouches for and nobody stores.
 */
export type IdentityKind = 'admin' | 'user' | 'service account' | 'external';

export interface Identity {
  readonly name: string;
  readonly kind: IdentityKind;
  /** What the identity provider calls the groups of someone external. */
  readonly externalGroups?: readonly string[];
}

/** What an `Authorization` value proves. */
export type Login =
  | { readonly kind: 'known'; readonly identity: Identity }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'wait'; readonly seconds: number }
  /** Nobody can tell at the moment: the identity provider does not answer. */
  | { readonly kind: 'unavailable'; readonly seconds: number };

export interface Authenticator {
  /** Whether requests must log in at all. */
  readonly required: boolean;
  /** Logins that a cookie stands for. */
  readonly sessions: LoginSessions;
  /** `address` is the socket's, never a header's. At once where nobody else is asked. */
  login(authorization: string | undefined, address: string): Login | Promise<Login>;
}
