/**
 * Who may enter, and with which proof. The exchange is a generator-like object: it is fed the
 * client's password messages and tells what to send and when it is over.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

import { mockVerifier, scramVerifier, type ScramVerifier } from '../auth/index.js';
import { decodeText } from './client-messages.js';
import { ProtocolError } from './protocol-error.js';
import { SCRAM_MECHANISM, SCRAM_PLUS_MECHANISM, ScramExchange } from './scram.js';
import {
  authenticationCleartext,
  authenticationSasl,
  authenticationSaslContinue,
  authenticationSaslFinal,
} from './server-messages.js';

/** One user who may log in. */
export interface Account {
  readonly user: string;
  readonly password: string;
  readonly readOnly: boolean;
}

export type LoginMethod = 'scram' | 'cleartext';

interface Entry {
  readonly account: Account;
  readonly digest: Buffer;
  readonly verifier: ScramVerifier;
}

/** Failures of one user from one address in this window… */
const WINDOW_MS = 60_000;
/** …before further tries are refused unseen. */
const FAILURES_MAX = 10;
const TRACKED_MAX = 10_000;

/** A clock that setting the machine's does not move. */
const monotonicMs = (): number => performance.now();

/** Counts failed logins per user and address. */
export class LoginThrottle {
  private readonly failures = new Map<string, { count: number; since: number }>();
  private readonly now: () => number;

  constructor(now: () => number = monotonicMs) {
    this.now = now;
  }

  check(user: string, address: string): void {
    const entry = this.failures.get(`${address} ${user}`);
    if (entry === undefined || this.now() - entry.since > WINDOW_MS) {
      return;
    }
    if (entry.count >= FAILURES_MAX) {
      throw new ProtocolError('28000', 'too many failed logins, try again in a minute', true);
    }
  }

  failed(user: string, address: string): void {
    const key = `${address} ${user}`;
    const entry = this.failures.get(key);
    if (entry !== undefined && this.now() - entry.since <= WINDOW_MS) {
      entry.count += 1;
      return;
    }
    this.failures.delete(key);
    if (this.failures.size >= TRACKED_MAX) {
      const oldest = this.failures.keys().next().value;
      if (oldest !== undefined) {
        this.failures.delete(oldest);
      }
    }
    this.failures.set(key, { count: 1, since: this.now() });
  }
}

/** The accounts of the configuration, their passwords turned into verifiers. */
export class LoginBook {
  readonly method: LoginMethod;
  readonly throttle: LoginThrottle;
  private readonly key = randomBytes(32);
  private readonly entries = new Map<string, Entry>();

  private constructor(method: LoginMethod, throttle = new LoginThrottle()) {
    this.method = method;
    this.throttle = throttle;
  }

  /** `before` is the book this one replaces: who failed too often there waits here as well. */
  static async of(
    accounts: readonly Account[],
    method: LoginMethod,
    before?: LoginBook,
  ): Promise<LoginBook> {
    const book = new LoginBook(method, before?.throttle);
    for (const account of accounts) {
      const verifier = await scramVerifier(account.password);
      book.entries.set(account.user, { account, digest: book.digest(account.password), verifier });
    }
    return book;
  }

  /** `endPoint`: what a login can be bound to on an encrypted connection. */
  begin(user: string, endPoint: Buffer | null = null): LoginExchange {
    const candidate = { user, entry: this.entries.get(user), endPoint };
    return new LoginExchange(this.method, candidate, (text) => this.digest(text));
  }

  private digest(password: string): Buffer {
    return createHmac('sha256', this.key).update(password).digest();
  }
}

/** What the exchange asks the connection to do. */
export interface LoginStep {
  readonly send: Buffer | null;
  /** Set when the client has proved who it is. */
  readonly account: Account | null;
}

/** Who wants to enter, and over what. */
interface Candidate {
  readonly user: string;
  readonly entry: Entry | undefined;
  readonly endPoint: Buffer | null;
}

export class LoginExchange {
  private readonly method: LoginMethod;
  private readonly user: string;
  private readonly entry: Entry | undefined;
  private readonly endPoint: Buffer | null;
  private readonly digest: (text: string) => Buffer;
  private scram: ScramExchange | null = null;

  constructor(method: LoginMethod, candidate: Candidate, digest: (text: string) => Buffer) {
    this.method = method;
    this.user = candidate.user;
    this.entry = candidate.entry;
    this.endPoint = candidate.endPoint;
    this.digest = digest;
  }

  /** What to ask the client first. */
  challenge(): Buffer {
    return this.method === 'cleartext'
      ? authenticationCleartext()
      : authenticationSasl(this.mechanisms());
  }

  /** Best first. */
  private mechanisms(): string[] {
    return this.endPoint === null ? [SCRAM_MECHANISM] : [SCRAM_PLUS_MECHANISM, SCRAM_MECHANISM];
  }

  /** Takes a password message. */
  answer(body: Buffer): LoginStep {
    if (this.method === 'cleartext') {
      return this.cleartext(body);
    }
    if (this.scram === null) {
      return this.scramFirst(body);
    }
    const proved = this.scram.final(decodeText(body));
    if (proved === null || this.entry === undefined) {
      throw this.refused();
    }
    return { send: authenticationSaslFinal(proved), account: this.entry.account };
  }

  private cleartext(body: Buffer): LoginStep {
    const end = body.indexOf(0);
    const password = decodeText(end < 0 ? body : body.subarray(0, end));
    const expected = this.entry?.digest ?? this.digest(`no such user ${this.user}`);
    const same = timingSafeEqual(this.digest(password), expected);
    if (!same || this.entry === undefined) {
      throw this.refused();
    }
    return { send: null, account: this.entry.account };
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
    const { endPoint } = this;
    const chosen = mechanism === SCRAM_PLUS_MECHANISM;
    this.scram = new ScramExchange(
      this.entry?.verifier ?? mockVerifier(this.user),
      endPoint === null ? null : { endPoint, chosen },
    );
    const answer = this.scram.first(decodeText(body.subarray(end + 5)));
    return { send: authenticationSaslContinue(answer), account: null };
  }

  private refused(): ProtocolError {
    return new ProtocolError('28P01', 'invalid username/password', true);
  }
}
