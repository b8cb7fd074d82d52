/**
 * Configuration keys for sign-on through an identity provider; `ts/auth/oidc` checks them together.
 */
import { bool, duration, key, OWN, secret, text } from './key.js';
import { parseInteger, ValueError } from './units.js';

const PORT_MAX = 65_535;
const ENTRIES_MAX = 1_000_000;

function between(minimum: number, maximum: number): (value: string) => number {
  return (value) => {
    const parsed = parseInteger(value);
    if (parsed < minimum || parsed > maximum) {
      throw new ValueError(`expected a number from ${minimum} to ${maximum}, found '${value}'`);
    }
    return parsed;
  };
}

export const OIDC_KEYS = {
  oidcEnabled: bool(
    'acl.oidc.enabled',
    false,
    'let users sign in through an identity provider (OpenID Connect); requires acl.enabled=true',
  ),
  oidcConfigurationUrl: text(
    'acl.oidc.configuration.url',
    '',
    "URL of the provider's discovery document, ending in /.well-known/openid-configuration; " +
      'replaces the keys for host, port and endpoints',
  ),
  oidcIssuer: text(
    'acl.oidc.issuer',
    '',
    'expected token issuer; required if there is no discovery document',
    OWN,
  ),
  oidcHost: text('acl.oidc.host', '', 'provider host, if there is no discovery document'),
  oidcPort: key(
    'acl.oidc.port',
    'integer',
    '443',
    between(1, PORT_MAX),
    'provider port, if there is no discovery document',
  ),
  oidcTls: bool('acl.oidc.tls.enabled', true, 'connect to the provider only over https'),
  oidcVerify: bool(
    'acl.oidc.tls.validation.enabled',
    true,
    "verify the provider's certificate; if false, anyone can impersonate the provider",
  ),
  oidcKeystore: text(
    'acl.oidc.tls.keystore.path',
    '',
    'PEM or PKCS#12 file with certificate authorities for the provider',
  ),
  oidcKeystorePassword: secret(
    'acl.oidc.tls.keystore.password',
    '',
    'password of the PKCS#12 file',
  ),
  oidcAuthorization: text(
    'acl.oidc.authorization.endpoint',
    '/as/authorization.oauth2',
    'path or URL of the authorization endpoint',
  ),
  oidcToken: text(
    'acl.oidc.token.endpoint',
    '/as/token.oauth2',
    'path or URL of the token endpoint',
  ),
  oidcUserInfo: text(
    'acl.oidc.userinfo.endpoint',
    '/idp/userinfo.openid',
    'path or URL of the user information endpoint',
  ),
  oidcPublicKeys: text(
    'acl.oidc.public.keys.endpoint',
    '/pf/JWKS',
    'path or URL of the public keys for token signatures (JWKS)',
  ),
  oidcEndSession: text(
    'acl.oidc.end.session.endpoint',
    '',
    'path or URL of the sign-out endpoint; if empty, users sign out of this server only',
    OWN,
  ),
  oidcClientId: text('acl.oidc.client.id', '', 'client ID of the console; required'),
  oidcAudience: text(
    'acl.oidc.audience',
    '',
    'expected token audience; defaults to acl.oidc.client.id if empty',
  ),
  oidcRedirectUri: text(
    'acl.oidc.redirect.uri',
    '',
    'redirect URI after sign-in; defaults to the console URL if empty',
  ),
  oidcScope: text('acl.oidc.scope', 'openid', 'requested scopes, separated by spaces'),
  oidcPkce: bool('acl.oidc.pkce.enabled', true, 'use PKCE with S256 in the console'),
  oidcState: bool(
    'acl.oidc.state.required',
    true,
    'require a state parameter; the console always sends one',
    OWN,
  ),
  oidcPasswordFlow: bool(
    'acl.oidc.ropc.flow.enabled',
    false,
    'verify user names and passwords with the provider (grant_type=password); passwords pass ' +
      'through this server',
  ),
  oidcTokenAsPassword: bool(
    'acl.oidc.pg.token.as.password.enabled',
    false,
    'accept an access token as the password of the user _sso over the PostgreSQL wire protocol',
  ),
  oidcPlainTextTokens: bool(
    'acl.oidc.pg.token.plain.text.enabled',
    false,
    'accept provider tokens and passwords from other machines without encryption',
    OWN,
  ),
  oidcCacheTtl: duration(
    'acl.oidc.cache.ttl',
    '30s',
    'time after which a token is verified with the provider again',
  ),
  oidcCacheEntries: key(
    'acl.oidc.cache.max.entries',
    'integer',
    '10000',
    between(1, ENTRIES_MAX),
    'maximum number of cached tokens',
    OWN,
  ),
  oidcNegativeTtl: duration(
    'acl.oidc.negative.cache.ttl',
    '5s',
    'how long a rejected token stays rejected without asking the provider again',
    OWN,
  ),
  oidcStale: duration(
    'acl.oidc.stale.if.error',
    '0',
    'how long logins outlive acl.oidc.cache.ttl while the provider is not responding; 0 ' +
      'disables this',
    OWN,
  ),
  oidcSkew: duration(
    'acl.oidc.clock.skew',
    '30s',
    'maximum clock difference from the provider',
    OWN,
  ),
  oidcGroupsClaim: text('acl.oidc.groups.claim', 'groups', 'claim that contains the groups'),
  oidcSubClaim: text('acl.oidc.sub.claim', 'sub', 'claim that contains the display name'),
  oidcGroupsInToken: bool(
    'acl.oidc.groups.encoded.in.token',
    false,
    'read groups from a signed token instead of the user information',
  ),
  oidcTimeout: duration('acl.oidc.http.timeout', '30s', 'timeout for a request to the provider'),
  oidcBasicRealm: bool(
    'acl.basic.auth.realm.enabled',
    false,
    'send a Basic authentication challenge in 401 responses to non-browser clients',
  ),
} as const;
