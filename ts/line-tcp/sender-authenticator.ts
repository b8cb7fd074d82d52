/**
 * Decides who may use the line protocol over TCP: anyone if no login is required, otherwise key
 * owners.
 */
import type { Directory, LoginObserver } from '../auth/index.js';
import { DatabaseError, type Guard, type Principal } from '../session/index.js';
import type { KeyStore } from './key-store.js';
import { KeyLogin, type Proof } from './key-login.js';

/** A sender that has logged in. */
export interface Sender {
  readonly principal: Principal;
  /** How the sender proved its identity; absent if no login is required. */
  readonly proof?: Proof;
}

interface SenderAuthenticatorOptions {
  readonly guard: Guard | undefined;
  readonly directory: Directory | undefined;
  readonly observer: LoginObserver | undefined;
}

export class SenderAuthenticator {
  /** `null` if no login is required. */
  keys: KeyStore | null;
  readonly #options: SenderAuthenticatorOptions;

  constructor(keys: KeyStore | null, options: SenderAuthenticatorOptions) {
    this.keys = keys;
    this.#options = options;
  }

  get guard(): Guard | undefined {
    return this.#options.guard;
  }

  /** The login that a new connection must pass; `null` if none is required. */
  login(): KeyLogin | null {
    return this.keys === null ? null : new KeyLogin(this.keys);
  }

  anonymous(): Sender {
    return { principal: { name: 'admin', readOnly: false } };
  }

  /** Returns the sender that owns a key; `null` if its owner may not send lines. */
  authenticate(proof: Proof, address: string): Sender | null {
    const { directory, observer } = this.#options;
    const { name } = proof;
    if (directory === undefined) {
      return { principal: { name, readOnly: false }, proof };
    }
    const identity = directory.enabledIdentity(name);
    if (identity === null || !directory.mayConnect(identity, 'ILP')) {
      return null;
    }
    observer?.signedIn(identity, 'ILP', address);
    return { principal: { name, readOnly: false, identity }, proof };
  }

  refused(name: string, address: string): void {
    this.#options.observer?.refusedLogin(name, 'ILP', address);
  }

  /** Throws if a sender's access was revoked. */
  check({ principal: { identity }, proof }: Sender): void {
    const { directory } = this.#options;
    if (this.keys !== null && (proof === undefined || !this.keys.has(proof.name, proof.key))) {
      throw denied('the key is no longer valid');
    }
    if (directory === undefined || identity === undefined) {
      return;
    }
    const now = directory.enabledIdentity(identity.name);
    if (now?.id !== identity.id || now === null || !directory.mayConnect(now, 'ILP')) {
      throw denied('Access denied [ILP]');
    }
  }
}

function denied(message: string): DatabaseError {
  return new DatabaseError({ code: 'AccessDenied', message });
}
