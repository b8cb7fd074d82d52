/** Reads the server's settings for the identity provider. */
import { texts } from '../texts.js';

export interface Provider {
  readonly clientId: string;
  readonly issuer: string | undefined;
  readonly authorizationEndpoint: string;
  readonly tokenEndpoint: string;
  readonly endSessionEndpoint: string | undefined;
  readonly redirectUri: string;
  readonly scope: string;
  /** True if PKCE is required. A provider known not to support S256 is then rejected. */
  readonly pkce: boolean;
  /**
   * True if requests must send the ID token, because the server reads the user's groups from it.
   */
  readonly sendsIdToken: boolean;
  /** Name of the claim that contains the user's name. */
  readonly nameClaim: string;
}

type Config = Readonly<Record<string, unknown>>;

export function hasProvider(config: Config): boolean {
  return config['acl.oidc.enabled'] === true;
}

/** Reads the provider's settings. Throws a user-readable error if the provider cannot be used. */
export function readProvider(config: Config): Provider {
  const text = (name: string): string | undefined => {
    const value = config[`acl.oidc.${name}`];
    return typeof value === 'string' && value !== '' ? value : undefined;
  };
  const authorizationEndpoint = text('authorization.endpoint');
  const tokenEndpoint = text('token.endpoint');
  const clientId = text('client.id');
  if (!authorizationEndpoint || !tokenEndpoint || !clientId) {
    throw new Error(texts.signIn.providerNotResponding);
  }
  const pkce = config['acl.oidc.pkce.required'] !== false;
  if (pkce && config['acl.oidc.pkce.supported'] === false) {
    throw new Error(texts.signIn.noPkce);
  }
  return {
    clientId,
    issuer: text('issuer'),
    authorizationEndpoint,
    tokenEndpoint,
    endSessionEndpoint: text('end.session.endpoint'),
    redirectUri: text('redirect.uri') ?? location.origin + location.pathname,
    scope: text('scope') ?? 'openid',
    pkce,
    sendsIdToken: config['acl.oidc.groups.encoded.in.token'] === true,
    nameClaim: text('sub.claim') ?? 'sub',
  };
}
