/**
 * Verifies tokens, and the credentials of the configured user, stored users and an identity
 * provider's users.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

import { type Credentials, readCredentials } from './credentials.js';
import type { Directory, LoginEndpoint } from './directory.js';
import { FailureLimiter } from './failure-limiter.js';
import { type Caller, type LoginConnection, LoginsBusy } from './hash-pool.js';
import type { Identity, KnownLogin, Login } from './identity.js';
import type { Authenticator, SignOn } from './login-rules.js';
import { LoginSessions } from './login-sessions.js';
import type { IdentityProvider, Verdict } from './oidc/index.js';
import { StoredPasswords } from './stored-passwords.js';

/** `http.user` and `http.password`: a single superuser. */
interface Owner {
  readonly user: string;
  readonly password: string;
}

interface AuthenticatorOptions {
  /** The configured user; ignored if there is a directory. */
  readonly owner?: Owner;
  /** Present if users and grants are enabled. */
  readonly directory?: Directory;
  readonly provider?: IdentityProvider;
  /** Whether to offer Basic authentication to programs, with or without a directory. */
  readonly basicRealm?: boolean;
  readonly limiter?: FailureLimiter;
}

/** The identity for requests when no login is required. */
const OPEN: KnownLogin = { kind: 'known', identity: { name: 'admin', kind: 'admin' } };
const UNKNOWN: Login = { kind: 'unknown' };
/** One message for unknown names and wrong passwords. */
const WRONG: Login = { kind: 'unknown', error: 'unknown user or wrong password' };
const BAD_TOKEN = 'unknown, expired or revoked token';
const REST_TOKEN_PREFIX = 'tdm_';
/** Wire protocol user names that mark the password as a token. */
const TOKEN_USERS = new Set(['', '_sso']);
/**
 * Failures per minute from one address at the provider; prevents password spraying through this
 * server.
 */
const SPRAYED_PER_MINUTE = 60;

type NamePassword = Omit<Extract<Credentials, { scheme: 'basic' }>, 'scheme'>;

export function createAuthenticator(options: AuthenticatorOptions): Authenticator {
  return new Doorkeeper(options);
}

class Doorkeeper implements Authenticator {
  readonly sessions = new LoginSessions();
  readonly failures: FailureLimiter;
  readonly required: boolean;
  readonly challenges: Authenticator['challenges'];
  readonly #directory: Directory | undefined;
  readonly #provider: IdentityProvider | undefined;
  readonly #sprays = new FailureLimiter(undefined, SPRAYED_PER_MINUTE);
  readonly #stored: StoredPasswords | undefined;
  readonly #isOwner: (user: string, password: string) => boolean;
  readonly #owner: KnownLogin;

  constructor({ owner, directory, provider, basicRealm, limiter }: AuthenticatorOptions) {
    this.required = owner !== undefined || directory !== undefined;
    this.challenges = {
      basic: directory === undefined || basicRealm === true,
      bearer: directory !== undefined,
    };
    this.#directory = directory;
    this.#provider = provider;
    this.failures = limiter ?? new FailureLimiter();
    this.#stored = directory === undefined ? undefined : new StoredPasswords(directory);
    this.#isOwner = directory === undefined && owner !== undefined ? proofOf(owner) : () => false;
    this.#owner = { kind: 'known', identity: { name: owner?.user ?? '', kind: 'admin' } };
  }

  get signOn(): SignOn | null {
    const provider = this.#provider;
    return provider === undefined
      ? null
      : { settings: provider.settings, metadata: (waitMs) => provider.metadata(waitMs) };
  }

  login(
    authorization: string | undefined,
    address: string,
    connection?: LoginConnection,
  ): Login | Promise<Login> {
    if (!this.required) {
      return OPEN;
    }
    if (authorization === undefined) {
      return UNKNOWN;
    }
    const credentials = readCredentials(authorization);
    if (credentials === null) {
      return { kind: 'unknown', error: 'malformed credentials' };
    }
    return credentials.scheme === 'bearer'
      ? this.#token(credentials.token, 'HTTP')
      : this.#password(credentials, { address, connection }, 'HTTP');
  }

  needsPlainPassword(user: string): boolean {
    const settings = this.#provider?.settings;
    if (settings === undefined) {
      return false;
    }
    const asToken = settings.tokenAsPassword && TOKEN_USERS.has(user);
    return asToken || this.#usesProvider(user);
  }

  async passwordLogin(user: string, password: string, caller: Caller): Promise<Login> {
    const acceptsTokens = this.#provider?.settings.tokenAsPassword === true;
    return acceptsTokens && TOKEN_USERS.has(user)
      ? await this.#token(password, 'PGWIRE')
      : await this.#password({ user, password }, caller, 'PGWIRE');
  }

  // ---- names and passwords ----

  #password(
    { user, password }: NamePassword,
    caller: Caller,
    endpoint: LoginEndpoint,
  ): Login | Promise<Login> {
    const { address } = caller;
    const usesProvider = this.#usesProvider(user);
    const wait = (): Login | null => {
      const seconds = Math.max(
        this.failures.waitSeconds(user, address),
        usesProvider ? this.#sprays.waitSeconds('', address) : 0,
      );
      return seconds > 0 ? { kind: 'wait', seconds } : null;
    };
    const count = (login: Login): Login => {
      // The limit is checked again after verification, because attempts run in parallel. An attempt
      // that completes after the limit was reached must not reveal whether its password was
      // correct.
      const late = wait();
      if (late !== null) {
        return late;
      }
      if (login.kind === 'unknown') {
        this.failures.failed(user, address);
        if (usesProvider) {
          this.#sprays.failed('', address);
        }
      } else if (login.kind === 'known') {
        this.failures.succeeded(user, address);
      }
      return login;
    };
    const before = wait();
    if (before !== null) {
      return before;
    }
    const checked = this.#check({ user, password }, caller, endpoint);
    return checked instanceof Promise ? checked.catch(busy).then(count) : count(checked);
  }

  /**
   * Returns whether the identity provider verifies this user's password. It does if the password
   * flow is on and the directory does not contain the name.
   */
  #usesProvider(user: string): boolean {
    const flow = this.#provider?.settings.passwordFlow === true;
    return flow && this.#directory?.isKnown(user) === false;
  }

  #check(
    { user, password }: NamePassword,
    caller: Caller,
    endpoint: LoginEndpoint,
  ): Login | Promise<Login> {
    if (this.#stored === undefined || this.#directory === undefined) {
      return this.#isOwner(user, password) ? this.#owner : WRONG;
    }
    const provider = this.#provider;
    if (provider !== undefined && this.#usesProvider(user)) {
      const attempt = (): Login | Promise<Login> =>
        this.#judged(provider.password(user, password), WRONG, endpoint, attempt);
      return attempt();
    }
    const verifier = this.#directory.scramVerifier(user);
    const recheck = (identity: Identity): Login =>
      this.#directory?.scramVerifier(user) === verifier
        ? this.#admitted(identity, endpoint, () => recheck(identity))
        : WRONG;
    const loginOf = (identity: Identity | null): Login =>
      identity === null ? WRONG : recheck(identity);
    const identity = this.#stored.check(user, password, caller);
    return identity instanceof Promise ? identity.then(loginOf) : loginOf(identity);
  }

  // ---- tokens ----

  #token(token: string, endpoint: LoginEndpoint): Login | Promise<Login> {
    const refused: Login = { kind: 'unknown', error: BAD_TOKEN };
    const directory = this.#directory;
    if (directory === undefined) {
      return refused;
    }
    if (token.startsWith(REST_TOKEN_PREFIX)) {
      const attempt = (): Login => {
        const identity = directory.verifyRestToken(token);
        return identity === null ? refused : this.#admitted(identity, endpoint, attempt);
      };
      return attempt();
    }
    const provider = this.#provider;
    if (provider === undefined) {
      return refused;
    }
    const attempt = (): Login | Promise<Login> =>
      this.#judged(provider.token(token), refused, endpoint, attempt);
    return attempt();
  }

  // ---- verdicts ----

  #judged(
    verdict: Verdict | Promise<Verdict>,
    refused: Login,
    endpoint: LoginEndpoint,
    renew: () => Login | Promise<Login>,
  ): Login | Promise<Login> {
    const judge = (settled: Verdict): Login => {
      switch (settled.kind) {
        case 'known':
          return this.#admitted(settled.identity, endpoint, renew);
        case 'refused':
          return refused;
        case 'insufficient scope':
          return { kind: 'insufficient scope' };
        case 'unavailable':
          return { kind: 'unavailable', seconds: settled.seconds };
      }
    };
    return verdict instanceof Promise ? verdict.then(judge) : judge(verdict);
  }

  /** Checks on every login that a known identity also has the endpoint's permission. */
  #admitted(
    identity: Identity,
    endpoint: LoginEndpoint,
    renew: () => Login | Promise<Login>,
  ): Login {
    return this.#directory?.mayConnect(identity, endpoint) === false
      ? { kind: 'denied', identity, permission: endpoint }
      : { kind: 'known', identity, renew };
  }
}

/** Returns the response for a full queue, which does not count as a failed login. */
function busy(error: unknown): Login {
  if (error instanceof LoginsBusy) {
    return { kind: 'busy', seconds: 1 };
  }
  throw error;
}

/** Compares digests of equal length in constant time, for any input. */
function proofOf({ user, password }: Owner): (user: string, password: string) => boolean {
  const key = randomBytes(32);
  const digest = (name: string, secret: string): Buffer =>
    createHmac('sha256', key).update(`${name.length}:${name}${secret}`).digest();
  const expected = digest(user, password);
  return (name, secret) => timingSafeEqual(digest(name, secret), expected);
}
