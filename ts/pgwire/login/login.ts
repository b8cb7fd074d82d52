/**
 * Logins over the wire protocol. An exchange receives the client's password messages, and returns
 * the bytes to send and whether the login is complete.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

import {
  type Caller,
  type Directory,
  type FailureLimiter,
  type Identity,
  type KnownLogin,
  type Login,
  LoginsBusy,
  NameSalts,
  scramVerifier,
  type ScramVerifier,
} from '../../auth/index.js';
import { decodeText } from '../protocol/client-messages.js';
import { ProtocolError } from '../protocol/protocol-error.js';
import { SCRAM_MECHANISM, SCRAM_PLUS_MECHANISM, ScramExchange } from './scram.js';
import {
  authenticationCleartext,
  authenticationSasl,
  authenticationSaslContinue,
  authenticationSaslFinal,
} from '../protocol/server-messages.js';

/** A user from the configuration, for servers without users in the database. */
export interface Account {
  readonly user: string;
  readonly password: string;
  readonly readOnly: boolean;
}

/** A user who has logged in. */
export interface Entered {
  readonly user: string;
  readonly readOnly: boolean;
  readonly identity: Identity;
  /** Checks whether the login is still valid; absent if the login always remains valid. */
  readonly renew?: NonNullable<KnownLogin['renew']>;
}

export type LoginMethod = 'scram' | 'cleartext';

/** A user who may log in. */
interface Entry {
  readonly entered: Entered;
  readonly verifier: ScramVerifier;
  /** Checks a password; takes the same time for every password. */
  fits(password: string): boolean | Promise<boolean>;
}

/** Login dependencies. */
interface LoginSetting {
  /** The database's users; absent without access control. */
  readonly directory?: Directory | undefined;
  /** Limiter for failed passwords, shared by all endpoints. */
  readonly failures: FailureLimiter;
}

/**
 * Salts for configured accounts. They survive reloads, so that accounts cannot be distinguished
 * from unknown names.
 */
const accountSalts = new NameSalts();

/**
 * Users who may log in: the database's users or, without access control, the configured accounts.
 */
export class LoginBook {
  readonly method: LoginMethod;
  private readonly setting: LoginSetting;
  private readonly key = randomBytes(32);
  private readonly entries = new Map<string, Entry>();

  private constructor(method: LoginMethod, setting: LoginSetting) {
    this.method = method;
    this.setting = setting;
  }

  static async of(
    accounts: readonly Account[],
    method: LoginMethod,
    setting: LoginSetting,
  ): Promise<LoginBook> {
    const book = new LoginBook(method, setting);
    for (const { user, password, readOnly } of setting.directory === undefined ? accounts : []) {
      const expected = book.digest(password);
      book.entries.set(user, {
        entered: { user, readOnly, identity: { name: user, kind: 'admin' } },
        verifier: await scramVerifier(password, accountSalts.of(user)),
        fits: (given) => timingSafeEqual(book.digest(given), expected),
      });
    }
    return book;
  }

  /**
   * Begins a login. `endPoint` is the channel binding data of the connection, if it is encrypted.
   */
  begin(user: string, caller: Caller, endPoint: Buffer | null = null): LoginExchange {
    const { directory, failures } = this.setting;
    const { address } = caller;
    refuseAfterFailures(failures, user, address);
    const entry =
      directory === undefined ? this.entries.get(user) : storedEntry(directory, user, caller);
    const mock = (): ScramVerifier => directory?.mockVerifier(user) ?? accountSalts.mock(user);
    return new LoginExchange(this.method, {
      entry,
      endPoint,
      verifier: entry?.verifier ?? mock(),
      fits: (password) => entry?.fits(password) ?? this.refuses(user, password, caller),
      mayEnter: ({ identity }) => directory?.mayConnect(identity, 'PGWIRE') !== false,
      count: (isRight) => {
        // Parallel attempts are limited too: an attempt that completes after the limit was reached
        // does not reveal its result.
        refuseAfterFailures(failures, user, address);
        failures[isRight ? 'succeeded' : 'failed'](user, address);
      },
    });
  }

  /** Checks a password for an unknown user; takes as long as for an existing user. */
  private async refuses(user: string, password: string, caller: Caller): Promise<false> {
    await this.setting.directory?.verifyPassword(user, password, caller);
    this.digest(password);
    return false;
  }

  private digest(password: string): Buffer {
    return createHmac('sha256', this.key).update(password).digest();
  }
}

function refuseAfterFailures(failures: FailureLimiter, user: string, address: string): void {
  if (failures.waitSeconds(user, address) > 0) {
    throw new ProtocolError('28000', 'too many failed logins; try again in a minute', true);
  }
}

function storedEntry(directory: Directory, user: string, caller: Caller): Entry | undefined {
  const verifier = directory.scramVerifier(user);
  const identity = directory.identityOf(user);
  if (verifier === null || identity === null) {
    return undefined;
  }
  // A password change creates a new verifier, and a deleted or disabled user has none.
  const renew = (): Login => {
    if (directory.scramVerifier(user) !== verifier) {
      return { kind: 'unknown' };
    }
    return directory.mayConnect(identity, 'PGWIRE')
      ? { kind: 'known', identity }
      : { kind: 'denied', identity, permission: 'PGWIRE' };
  };
  return {
    entered: { user, readOnly: false, identity, renew },
    verifier,
    fits: async (password) => (await directory.verifyPassword(user, password, caller)) !== null,
  };
}

/** The connection's next action. */
export interface LoginStep {
  readonly send: Buffer | null;
  /** Set when the client has authenticated. */
  readonly entered: Entered | null;
}

/** A client that wants to log in. */
interface Candidate {
  readonly entry: Entry | undefined;
  readonly endPoint: Buffer | null;
  readonly verifier: ScramVerifier;
  fits(password: string): boolean | Promise<boolean>;
  mayEnter(entered: Entered): boolean;
  /** Called with the result of each password check; throws after too many failures. */
  count(isRight: boolean): void;
}

export class LoginExchange {
  private readonly method: LoginMethod;
  private readonly candidate: Candidate;
  private scram: ScramExchange | null = null;

  constructor(method: LoginMethod, candidate: Candidate) {
    this.method = method;
    this.candidate = candidate;
  }

  /** The first message to the client. */
  challenge(): Buffer {
    return this.method === 'cleartext'
      ? authenticationCleartext()
      : authenticationSasl(this.mechanisms());
  }

  /** Supported mechanisms, in order of preference. */
  private mechanisms(): string[] {
    const { endPoint } = this.candidate;
    return endPoint === null ? [SCRAM_MECHANISM] : [SCRAM_PLUS_MECHANISM, SCRAM_MECHANISM];
  }

  /** Handles a password message. */
  async answer(body: Buffer): Promise<LoginStep> {
    if (this.method === 'cleartext') {
      return await this.cleartext(body);
    }
    if (this.scram === null) {
      return this.scramFirst(body);
    }
    const proved = this.scram.final(decodeText(body));
    this.candidate.count(proved !== null);
    if (proved === null) {
      throw this.refused();
    }
    return { send: authenticationSaslFinal(proved), entered: this.enter() };
  }

  private async cleartext(body: Buffer): Promise<LoginStep> {
    const end = body.indexOf(0);
    const password = decodeText(end < 0 ? body : body.subarray(0, end));
    const isRight = await this.fits(password);
    this.candidate.count(isRight);
    if (!isRight) {
      throw this.refused();
    }
    return { send: null, entered: this.enter() };
  }

  private async fits(password: string): Promise<boolean> {
    try {
      return await this.candidate.fits(password);
    } catch (error) {
      throw error instanceof LoginsBusy ? new ProtocolError('53300', error.message, true) : error;
    }
  }

  /**
   * Completes the login, because the password is correct; also checks the endpoint's permission.
   */
  private enter(): Entered {
    const { entry } = this.candidate;
    if (entry === undefined) {
      throw this.refused();
    }
    if (!this.candidate.mayEnter(entry.entered)) {
      throw new ProtocolError('42501', 'Access denied [PGWIRE]', true);
    }
    return entry.entered;
  }

  private scramFirst(body: Buffer): LoginStep {
    const end = body.indexOf(0);
    const mechanism = end < 0 ? '' : decodeText(body.subarray(0, end));
    if (!this.mechanisms().includes(mechanism)) {
      throw new ProtocolError(
        '28000',
        'client selected an invalid SASL authentication mechanism',
        true,
      );
    }
    const length = body.length >= end + 5 ? body.readInt32BE(end + 1) : -1;
    if (length !== body.length - end - 5) {
      throw new ProtocolError('08P01', 'malformed SCRAM message', true);
    }
    const { endPoint, verifier } = this.candidate;
    const chosen = mechanism === SCRAM_PLUS_MECHANISM;
    this.scram = new ScramExchange(verifier, endPoint === null ? null : { endPoint, chosen });
    const answer = this.scram.first(decodeText(body.subarray(end + 5)));
    return { send: authenticationSaslContinue(answer), entered: null };
  }

  private refused(): ProtocolError {
    return new ProtocolError('28P01', 'invalid username/password', true);
  }
}
