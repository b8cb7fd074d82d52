/** What decides on logins, whichever protocol they come by. */
import type { FailureLimiter } from './failure-limiter.js';
import type { Caller, LoginConnection } from './hash-pool.js';
import type { Login } from './identity.js';
import type { LoginSessions } from './login-sessions.js';
import type { ProviderMetadata, OidcSettings } from './oidc/index.js';

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
