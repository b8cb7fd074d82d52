/**
 * The user of a connection that may outlive the login. The login is therefore checked repeatedly.
 */
import type { Identity, KnownLogin, Login } from '../../auth/index.js';
import { DatabaseError, type Principal } from '../../session/index.js';
import type { HttpContext } from '../route.js';

export class LastingLogin implements Principal {
  readonly name: string;
  readonly readOnly: boolean;
  identity: Identity;
  readonly #renew: KnownLogin['renew'];

  constructor({ identity, renew }: KnownLogin, readOnly: boolean) {
    this.name = identity.name;
    this.readOnly = readOnly;
    this.identity = identity;
    this.#renew = renew;
  }

  /** Creates an instance for a WebSocket request, whose route always requires a login. */
  static of({ state }: HttpContext, readOnly: boolean): LastingLogin {
    if (state.login === null) {
      throw new DatabaseError({ code: 'Internal', message: 'the WebSocket has no login' });
    }
    return new LastingLogin(state.login, readOnly);
  }

  /**
   * Returns the reason if the login is no longer valid; called before each request on the
   * connection.
   */
  async refusal(): Promise<DatabaseError | null> {
    const login = await this.#renew?.();
    if (login === undefined) {
      return null;
    }
    if (login.kind !== 'known') {
      return refusalOf(login);
    }
    this.identity = login.identity;
    return null;
  }
}

function refusalOf(login: Exclude<Login, { kind: 'known' }>): DatabaseError {
  switch (login.kind) {
    case 'denied':
      return new DatabaseError({
        code: 'AccessDenied',
        message: `Access denied [${login.permission}]`,
      });
    case 'wait':
    case 'busy':
    case 'unavailable':
      // The login could not be verified, but may succeed later.
      return new DatabaseError({
        code: 'Busy',
        message: 'the login cannot be verified at present; try again later',
        retryable: true,
      });
    case 'unknown':
    case 'insufficient scope':
      return new DatabaseError({
        code: 'AccessDenied',
        message: 'the login is no longer valid: log in again',
      });
  }
}
