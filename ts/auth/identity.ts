/** Who asks, and what a login can come to. */
import type { FailureLimiter } from './failure-limiter.js';
import type { Caller, LoginConnection } from './hash-pool.js';
import type { LoginSessions } from './login-sessions.js';
import type { ProviderMetadata, OidcSettings } from './oidc/index.js';

/**
 * Where a name is known: the administrator of the configuration, users and service accounts of
 * the database, or people whom an identity provider vouches for and no database stores.
 */
type IdentityKind = 'admin' | 'user' | 'service account' | 'external';

export interface Identity {
  readonly name: string;
  readonly kind: IdentityKind;
  /** Of those whom the database keeps: tells them apart from others who had the name before. */
  readonly id?: string;
  /** What the identity provider calls the groups of someone external. */
  readonly externalGroups?: readonly string[];
  /** Of someone external: who vouches, and for whom. The name is what people chose to be called. */
  readonly issuer?: string;
  readonly subject?: string;
  /** Of a service account: whose session has become it, and needs the right to every time. */
  readonly assumedBy?: Identity;
}

/** Unique for an identity, whatever others are called. */
export function identityKey({ kind, name, id, issuer, subject }: Identity): string {
  return kind === 'external'
    ? `${kind} ${JSON.stringify([issuer ?? '', subject ?? name])}`
    : `${kind} ${id ?? name}`;
}

/** The identity is known. */
export interface KnownLogin {
  readonly kind: 'known';
  readonly identity: Identity;
  /**
   * Whether it still holds, for what lasts longer than a request. At once while what was found
   * out counts; absent where nothing can change.
   */
  readonly renew?: () => Login | Promise<Login>;
}

/** What credentials prove. */
export type Login =
  | KnownLogin
  /** No identity, or none any more; `error` describes what is wrong with the token. */
  | { readonly kind: 'unknown'; readonly error?: string }
  /** A known identity that may not enter here; `needs` names the permission. */
  | { readonly kind: 'denied'; readonly identity: Identity; readonly needs: string }
  /** A good token whose scope is too narrow to tell whose it is. */
  | { readonly kind: 'insufficient scope' }
  | { readonly kind: 'wait'; readonly seconds: number }
  /** More passwords are to be checked than can be. */
  | { readonly kind: 'busy'; readonly seconds: number }
  /** Undecided: the identity provider does not answer. */
  | { readonly kind: 'unavailable'; readonly seconds: number };

/** What clients may know of sign-on through a provider. */
export interface SignOn {
  readonly settings: OidcSettings;
  /** The provider's metadata if it arrives within `waitMs`, else `null`. */
  metadata(waitMs: number): Promise<ProviderMetadata | null>;
}

export interface Authenticator {
  /** Whether requests must log in at all. */
  readonly required: boolean;
  /** Logins that a cookie represents. */
  readonly sessions: LoginSessions;
  /** Wrong passwords, by whichever way in they came. */
  readonly failures: FailureLimiter;
  /** Which kinds of credentials a client without any is offered. */
  readonly challenges: { readonly basic: boolean; readonly bearer: boolean };
  readonly signOn: SignOn | null;
  /**
   * `address` is the socket's, never a header's. At once where no other service is asked. Rejects
   * with `CallerGone` when `connection` closed before it was this login's turn.
   */
  login(
    authorization: string | undefined,
    address: string,
    connection?: LoginConnection,
  ): Login | Promise<Login>;
  /** Whether a password of `user` can only be checked by seeing it: another service knows it. */
  needsPlainPassword(user: string): boolean;
  /** A name with a password, or with a token in its place, over the wire protocol. */
  passwordLogin(user: string, password: string, caller: Caller): Promise<Login>;
}
