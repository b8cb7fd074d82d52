/**
 * Logins that another service verifies: passwords of users known only to the identity provider, and
 * tokens sent as passwords. The server must see the password. It is therefore accepted only over
 * encrypted connections, unless configured otherwise.
 */
import type { Authenticator, Caller, Identity, Login } from '../../auth/index.js';
import type { Principal } from '../../session/index.js';
import { decodeText } from '../protocol/client-messages.js';
import type { Entered, LoginStep } from './login.js';
import { ProtocolError } from '../protocol/protocol-error.js';
import { authenticationCleartext } from '../protocol/server-messages.js';

export class ProvidedLogin {
  private readonly authenticator: Authenticator;
  private readonly user: string;
  private readonly caller: Caller;

  constructor(authenticator: Authenticator, user: string, caller: Caller) {
    this.authenticator = authenticator;
    this.user = user;
    this.caller = caller;
  }

  /** The first message to the client. */
  challenge(): Buffer {
    return authenticationCleartext();
  }

  /** Handles the password message. */
  async answer(body: Buffer): Promise<LoginStep> {
    const end = body.indexOf(0);
    const password = decodeText(end < 0 ? body : body.subarray(0, end));
    const login = await this.authenticator.passwordLogin(this.user, password, this.caller);
    if (login.kind !== 'known') {
      throw refusalOf(login, '28P01', 'invalid username/password');
    }
    const { identity, renew } = login;
    const entered = { user: identity.name, readOnly: false, identity };
    return { send: null, entered: renew === undefined ? entered : { ...entered, renew } };
  }
}

/** A session's user. The user's groups and permissions may change while the session lasts. */
export class SessionUser implements Principal {
  readonly name: string;
  readonly readOnly: boolean;
  /**
   * Whether only a permission change can end the login, because the login involves neither a token
   * nor another service.
   */
  readonly isLasting: boolean;
  identity: Identity;
  private readonly renew: Entered['renew'];

  constructor({ user, identity, renew }: Entered, readOnly: boolean, isProvided = false) {
    this.isLasting = !isProvided;
    this.name = user;
    this.readOnly = readOnly;
    this.identity = identity;
    this.renew = renew;
  }

  /**
   * Returns an error if no statement may start now. Synchronous unless another service must be
   * called.
   */
  refusal(): ProtocolError | null | Promise<ProtocolError | null> {
    const login = this.renew?.();
    if (login === undefined) {
      return null;
    }
    return login instanceof Promise
      ? login.then((renewed) => this.judge(renewed))
      : this.judge(login);
  }

  private judge(login: Login): ProtocolError | null {
    if (login.kind !== 'known') {
      return refusalOf(login, '28000', 'the login is no longer valid: log in again');
    }
    this.identity = login.identity;
    return null;
  }
}

/**
 * The error for a login that is no longer valid; fatal unless the identity provider is merely
 * unavailable.
 */
function refusalOf(
  login: Exclude<Login, { kind: 'known' }>,
  sqlState: string,
  message: string,
): ProtocolError {
  switch (login.kind) {
    case 'denied':
      return new ProtocolError('42501', `Access denied [${login.permission}]`, true);
    case 'wait':
      return new ProtocolError('28000', 'too many failed logins; try again in a minute', true);
    case 'busy':
      return new ProtocolError('53300', 'too many concurrent logins; try again later', true);
    case 'unavailable':
      return new ProtocolError('57P03', 'the identity provider is not responding', false);
    case 'unknown':
    case 'insufficient scope':
      return new ProtocolError(sqlState, message, true);
  }
}
