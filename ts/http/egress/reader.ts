/** Who reads: the login is looked at before each statement, since the connection outlives it. */
import type { Identity, KnownLogin, Login } from '../../auth/index.js';
import type { Principal } from '../../session/index.js';
import { type Failure, STATUS } from './failure.js';

export class Reader implements Principal {
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

  /** Why no statement may begin now. */
  async refusal(): Promise<Failure | null> {
    const login = await this.#renew?.();
    if (login === undefined) {
      return null;
    }
    if (login.kind !== 'known') {
      return { status: STATUS.securityError, message: why(login) };
    }
    this.identity = login.identity;
    return null;
  }
}

function why(login: Exclude<Login, { kind: 'known' }>): string {
  switch (login.kind) {
    case 'denied':
      return `Access denied [${login.needs}]`;
    case 'unavailable':
      return 'the identity provider does not answer';
    default:
      return 'the login has ended: sign on again';
  }
}
