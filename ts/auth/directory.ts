/**
 * What logins ask of the users and service accounts that the database keeps; the administrator of
 * the configuration is among them.
 */
import type { Caller } from './hash-pool.js';
import type { Identity } from './identity.js';
import type { ScramVerifier } from './scram-verifier.js';

/** Receives logins, for the audit log. */
export interface LoginObserver {
  signedIn(identity: Identity, endpoint: LoginEndpoint, address: string): void;
  /** Only for an explicit sign-out; most clients just disconnect. */
  signedOut(identity: Identity, endpoint: LoginEndpoint, address: string): void;
  /** `name`: the one that was claimed, if any. */
  refusedLogin(name: string, endpoint: LoginEndpoint, address: string): void;
}

/** A way in, each with a permission of the same name. */
export type LoginEndpoint = 'HTTP' | 'PGWIRE' | 'ILP';

/** An elliptic-curve key on P-256, as members of a JWK; its other half is with its owner alone. */
export interface PublicKey {
  readonly x: string;
  readonly y: string;
}

export interface Directory {
  /** Who a name is that has proved its password. */
  identityOf(name: string): Identity | null;
  /** Who a name is that proves itself otherwise than by a password; null when it is disabled. */
  enabledIdentity(name: string): Identity | null;
  /** Null when there is no such principal, it is disabled, or it has no password. */
  scramVerifier(name: string): ScramVerifier | null;
  /** The key that a sender of lines signs with; null when it has none or is disabled. */
  publicKey(name: string): PublicKey | null;
  /** What is shown in place of one: looks like those that are. */
  mockVerifier(name: string): ScramVerifier;
  /**
   * Takes as long for unknown names and for those without a password. Rejects with `LoginsBusy`
   * or `CallerGone`.
   */
  verifyPassword(name: string, password: string, caller: Caller): Promise<Identity | null>;
  /**
   * Whose a REST token (`tdm_…`) is; null when it is unknown or expired, or its owner disabled.
   * One made with REFRESH lives on for its whole time from here.
   */
  verifyRestToken(token: string): Identity | null;
  /** Whether `identity` may enter there: the endpoint's permission. */
  mayConnect(identity: Identity, endpoint: LoginEndpoint): boolean;
  /** Whether the database keeps a principal of this name, whether it may log in or not. */
  isKnown(name: string): boolean;
  /** Who has a name now, groups included; `key` is as `identityKey` makes it. */
  principal(name: string): { readonly key: string; readonly kind: string } | null;
  /** Keys of the groups that `identity` is in. */
  groupKeys(identity: Identity): readonly string[];
  /** Whether nothing is refused to `identity`. */
  isAdministrator(identity: Identity): boolean;
}
