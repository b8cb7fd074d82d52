/**
 * The user directory for logins: users and service accounts, including the configured
 * administrator.
 */
import type { Caller } from './hash-pool.js';
import type { Identity } from './identity.js';
import type { ScramVerifier } from './scram-verifier.js';

/** Receives login events for the audit log. */
export interface LoginObserver {
  signedIn(identity: Identity, endpoint: LoginEndpoint, address: string): void;
  /** Called only for an explicit sign-out; most clients just disconnect. */
  signedOut(identity: Identity, endpoint: LoginEndpoint, address: string): void;
  /** `name` is the claimed user name, if any. */
  refusedLogin(name: string, endpoint: LoginEndpoint, address: string): void;
}

/** Endpoints for logins; each is also the name of the permission it requires. */
export type LoginEndpoint = 'HTTP' | 'PGWIRE' | 'ILP';

/** A public key on the P-256 curve, as JWK members. Only its owner has the private key. */
export interface PublicKey {
  readonly x: string;
  readonly y: string;
}

export interface Directory {
  /** The identity of a name whose password was verified. */
  identityOf(name: string): Identity | null;
  /** The identity of a name verified without a password; `null` if it is disabled. */
  enabledIdentity(name: string): Identity | null;
  /** `null` if the principal does not exist, is disabled, or has no password. */
  scramVerifier(name: string): ScramVerifier | null;
  /** The public key that verifies an ILP client; `null` if the client has none or is disabled. */
  publicKey(name: string): PublicKey | null;
  /** A verifier for unknown names, indistinguishable from a real one. */
  mockVerifier(name: string): ScramVerifier;
  /**
   * Verifies a password. Takes the same time for unknown names and for users without a password.
   * Rejects with `LoginsBusy` or `CallerDisconnected`.
   */
  verifyPassword(name: string, password: string, caller: Caller): Promise<Identity | null>;
  /**
   * The owner of a REST token (`tdm_…`). Returns `null` if the token is unknown or expired, or its
   * owner is disabled. If the token was created with REFRESH, extends it by its full lifetime.
   */
  verifyRestToken(token: string): Identity | null;
  /** Whether `identity` has the endpoint's permission. */
  mayConnect(identity: Identity, endpoint: LoginEndpoint): boolean;
  /** Whether a principal with this name is stored, even if it may not log in. */
  isKnown(name: string): boolean;
  /** The principal or group that currently has this name; `key` has the format of `identityKey`. */
  principal(name: string): { readonly key: string; readonly kind: string } | null;
  /** Keys of the groups that `identity` belongs to. */
  groupKeys(identity: Identity): readonly string[];
  /** Whether `identity` has all rights. */
  isAdministrator(identity: Identity): boolean;
}
