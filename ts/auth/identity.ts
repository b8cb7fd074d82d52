/** Who asks, and what a login can come to. */

/**
 * Where a name is known: the administrator of the configuration, users and service accounts of
 * the database, or people whom an identity provider vouches for and no database stores.
 */
type IdentityKind = 'admin' | 'user' | 'service account' | 'external';

export interface Identity {
  readonly name: string;
  readonly kind: IdentityKind;
  /** Of those whom the database keeps: tells them apart from others who had the name before. */
  readonly id?: string;
  /** What the identity provider calls the groups of someone external. */
  readonly externalGroups?: readonly string[];
  /** Of someone external: who vouches, and for whom. The name is what people chose to be called. */
  readonly issuer?: string;
  readonly subject?: string;
  /** Of a service account: whose session has become it, and needs the right to every time. */
  readonly assumedBy?: Identity;
}

/** Unique for an identity, whatever others are called. */
export function identityKey({ kind, name, id, issuer, subject }: Identity): string {
  return kind === 'external'
    ? `${kind} ${JSON.stringify([issuer ?? '', subject ?? name])}`
    : `${kind} ${id ?? name}`;
}

/** The identity is known. */
export interface KnownLogin {
  readonly kind: 'known';
  readonly identity: Identity;
  /**
   * Whether it still holds, for what lasts longer than a request. At once while what was found
   * out counts; absent where nothing can change.
   */
  readonly renew?: () => Login | Promise<Login>;
}

/** What credentials prove. */
export type Login =
  | KnownLogin
  /** No identity, or none any more; `error` describes what is wrong with the token. */
  | { readonly kind: 'unknown'; readonly error?: string }
  /** A known identity that may not enter here; `needs` names the permission. */
  | { readonly kind: 'denied'; readonly identity: Identity; readonly needs: string }
  /** A good token whose scope is too narrow to tell whose it is. */
  | { readonly kind: 'insufficient scope' }
  | { readonly kind: 'wait'; readonly seconds: number }
  /** More passwords are to be checked than can be. */
  | { readonly kind: 'busy'; readonly seconds: number }
  /** Undecided: the identity provider does not answer. */
  | { readonly kind: 'unavailable'; readonly seconds: number };
