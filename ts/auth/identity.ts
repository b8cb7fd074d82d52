/** Identities, and the possible results of a login. */

/**
 * The source that defines an identity: the configuration, the database (users and service
 * accounts), or an identity provider, whose users are not stored in the database.
 */
type IdentityKind = 'admin' | 'user' | 'service account' | 'external';

export interface Identity {
  readonly name: string;
  readonly kind: IdentityKind;
  /**
   * For stored principals: an ID that distinguishes them from earlier principals of the same name.
   */
  readonly id?: string;
  /** For external users: their groups, as named by the identity provider. */
  readonly externalGroups?: readonly string[];
  /** For external users: the issuer and the subject. The display name is chosen by the user. */
  readonly issuer?: string;
  readonly subject?: string;
  /**
   * For a service account: the identity that assumed it. Its right to do so is checked each time.
   */
  readonly assumedBy?: Identity;
}

/** Returns a key that is unique per identity, even if several identities have the same name. */
export function identityKey({ kind, name, id, issuer, subject }: Identity): string {
  return kind === 'external'
    ? `${kind} ${JSON.stringify([issuer ?? '', subject ?? name])}`
    : `${kind} ${id ?? name}`;
}

/** A login whose identity is known. */
export interface KnownLogin {
  readonly kind: 'known';
  readonly identity: Identity;
  /**
   * Checks whether the login is still valid, for connections that outlive a request. The check is
   * synchronous while its result is cached. Absent if the login cannot change.
   */
  readonly renew?: () => Login | Promise<Login>;
}

/** The result of checking credentials. */
export type Login =
  | KnownLogin
  /**
   * The credentials do not identify a user, or are no longer valid; `error` describes the problem.
   */
  | { readonly kind: 'unknown'; readonly error?: string }
  /** A known identity without permission for this endpoint; `permission` names the permission. */
  | { readonly kind: 'denied'; readonly identity: Identity; readonly permission: string }
  /** A valid token whose scope is too narrow to identify its owner. */
  | { readonly kind: 'insufficient scope' }
  | { readonly kind: 'wait'; readonly seconds: number }
  /** The queue of password checks is full. */
  | { readonly kind: 'busy'; readonly seconds: number }
  /** The login could not be verified, because the identity provider is not responding. */
  | { readonly kind: 'unavailable'; readonly seconds: number };
