/** Login rules that all protocols share. */
import type { FailureLimiter } from './failure-limiter.js';
import type { Caller, LoginConnection } from './hash-pool.js';
import type { Login } from './identity.js';
import type { LoginSessions } from './login-sessions.js';
import type { ProviderMetadata, OidcSettings } from './oidc/index.js';

/** Sign-on settings that clients may read. */
export interface SignOn {
  readonly settings: OidcSettings;
  /** Returns the provider's metadata, or `null` if it does not arrive within `waitMs`. */
  metadata(waitMs: number): Promise<ProviderMetadata | null>;
}

export interface Authenticator {
  /** Whether requests must log in. */
  readonly required: boolean;
  /** Sessions identified by a cookie. */
  readonly sessions: LoginSessions;
  /** Counts failed passwords on all endpoints. */
  readonly failures: FailureLimiter;
  /** Authentication schemes to offer to a client without credentials. */
  readonly challenges: { readonly basic: boolean; readonly bearer: boolean };
  readonly signOn: SignOn | null;
  /**
   * Verifies credentials. `address` is the socket's address, never one from a header. Synchronous
   * if neither another service nor a password hash is needed. Rejects with `CallerDisconnected` if
   * `connection` closed while the login was queued.
   */
  login(
    authorization: string | undefined,
    address: string,
    connection?: LoginConnection,
  ): Login | Promise<Login>;
  /**
   * Whether checking the password of `user` requires the plain password, because another service
   * verifies it.
   */
  needsPlainPassword(user: string): boolean;
  /** For the wire protocol: verifies a name with a password, or with a token in its place. */
  passwordLogin(user: string, password: string, caller: Caller): Promise<Login>;
}
