/** What logins ask of the users and service accounts that the database keeps. */
import type { Identity } from './identity.js';
import type { ScramVerifier } from './scram-verifier.js';

/** A way in, each with a permission of the same name. */
export type LoginEndpoint = 'HTTP' | 'PGWIRE' | 'ILP';

export interface Directory {
  /** Null when there is no such principal, it is disabled, or it has no password. */
  scramVerifier(name: string): ScramVerifier | null;
  /** Takes as long for unknown names and for those without a password. */
  verifyPassword(name: string, password: string): Promise<Identity | null>;
  /**
   * Whose a REST token (`tdm_…`) is; null when it is unknown or expired, or its owner disabled.
   * One made with REFRESH lives on for its whole time from here.
   */
  verifyRestToken(token: string): Identity | null;
  /** Whether `identity` may enter there: the endpoint's permission. */
  mayConnect(identity: Identity, endpoint: LoginEndpoint): boolean;
  /** Whether the database keeps a principal of this name, whether it may log in or not. */
  isKnown(name: string): boolean;
}
