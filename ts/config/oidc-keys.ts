/** Keys for sign-on through an identity provider; `ts/auth/oidc` checks them together. */
import { bool, duration, key, OWN, secret, text } from './key.js';
import { parseInteger, ValueError } from './units.js';

const PORT_MAX = 65_535;
const ENTRIES_MAX = 1_000_000;

function between(least: number, most: number): (value: string) => number {
  return (value) => {
    const found = parseInteger(value);
    if (found < least || found > most) {
      throw new ValueError(`expected a number from ${least} to ${most}, found '${value}'`);
    }
    return found;
  };
}

export const OIDC_KEYS = {
  oidcEnabled: bool(
    'acl.oidc.enabled',
    false,
    'people sign on through an identity provider (OpenID Connect); needs acl.enabled=true',
  ),
  oidcConfigurationUrl: text(
    'acl.oidc.configuration.url',
    '',
    "address of the provider's discovery document, ends in /.well-known/openid-configuration; " +
      'replaces the keys of host, port and endpoints',
  ),
  oidcIssuer: text(
    'acl.oidc.issuer',
    '',
    'who must have made a token; needed where there is no discovery document',
    OWN,
  ),
  oidcHost: text('acl.oidc.host', '', 'host of the provider, without a discovery document'),
  oidcPort: key(
    'acl.oidc.port',
    'integer',
    '443',
    between(1, PORT_MAX),
    'port of the provider, without a discovery document',
  ),
  oidcTls: bool('acl.oidc.tls.enabled', true, 'the provider is asked over https only'),
  oidcVerify: bool(
    'acl.oidc.tls.validation.enabled',
    true,
    "the provider's certificate is checked; false lets anyone pose as the provider",
  ),
  oidcKeystore: text(
    'acl.oidc.tls.keystore.path',
    '',
    "PEM or PKCS#12 file with the authorities that sign the provider's certificate",
  ),
  oidcKeystorePassword: secret('acl.oidc.tls.keystore.password', '', 'of a PKCS#12 file'),
  oidcAuthorization: text(
    'acl.oidc.authorization.endpoint',
    '/as/authorization.oauth2',
    'path or address where people sign on',
  ),
  oidcToken: text(
    'acl.oidc.token.endpoint',
    '/as/token.oauth2',
    'path or address where tokens are got',
  ),
  oidcUserInfo: text(
    'acl.oidc.userinfo.endpoint',
    '/idp/userinfo.openid',
    'path or address that tells whose a token is',
  ),
  oidcPublicKeys: text(
    'acl.oidc.public.keys.endpoint',
    '/pf/JWKS',
    'path or address of the keys that tokens are signed with',
  ),
  oidcEndSession: text(
    'acl.oidc.end.session.endpoint',
    '',
    'path or address where people sign off; empty: only of this server',
    OWN,
  ),
  oidcClientId: text('acl.oidc.client.id', '', "the console's id at the provider; required"),
  oidcAudience: text(
    'acl.oidc.audience',
    '',
    'whom a token must be made for; empty is acl.oidc.client.id',
  ),
  oidcRedirectUri: text(
    'acl.oidc.redirect.uri',
    '',
    'where the provider sends people back to; empty is the address of the console',
  ),
  oidcScope: text('acl.oidc.scope', 'openid', 'asked for, with blanks between; openid among them'),
  oidcPkce: bool(
    'acl.oidc.pkce.enabled',
    true,
    'the console proves with S256 that it asked for a code',
  ),
  oidcState: bool(
    'acl.oidc.state.required',
    true,
    'consoles must send a state; ours always does',
    OWN,
  ),
  oidcPasswordFlow: bool(
    'acl.oidc.ropc.flow.enabled',
    false,
    'names and passwords of clients are checked by the provider (grant_type=password); it sees ' +
      'them, and so does this server',
  ),
  oidcTokenAsPassword: bool(
    'acl.oidc.pg.token.as.password.enabled',
    false,
    'the wire protocol takes an access token as the password of the user _sso',
  ),
  oidcPlainTextTokens: bool(
    'acl.oidc.pg.token.plain.text.enabled',
    false,
    'other machines may send tokens and passwords of the provider without encryption',
    OWN,
  ),
  oidcCacheTtl: duration(
    'acl.oidc.cache.ttl',
    '30s',
    'after so long the provider is asked again whose a token is',
  ),
  oidcCacheEntries: key(
    'acl.oidc.cache.max.entries',
    'integer',
    '10000',
    between(1, ENTRIES_MAX),
    'tokens remembered at once',
    OWN,
  ),
  oidcNegativeTtl: duration(
    'acl.oidc.negative.cache.ttl',
    '5s',
    'a token the provider refused is refused for so long without asking',
    OWN,
  ),
  oidcStale: duration(
    'acl.oidc.stale.if.error',
    '0',
    'while the provider does not answer, logins count for so long beyond acl.oidc.cache.ttl; 0: ' +
      'no longer',
    OWN,
  ),
  oidcSkew: duration('acl.oidc.clock.skew', '30s', 'clocks may differ by so much', OWN),
  oidcGroupsClaim: text('acl.oidc.groups.claim', 'groups', 'claim that lists groups'),
  oidcSubClaim: text('acl.oidc.sub.claim', 'sub', 'claim that is shown as the name'),
  oidcGroupsInToken: bool(
    'acl.oidc.groups.encoded.in.token',
    false,
    'groups are read from a signed token instead of user information',
  ),
  oidcTimeout: duration('acl.oidc.http.timeout', '30s', 'of one call to the provider'),
  oidcBasicRealm: bool(
    'acl.basic.auth.realm.enabled',
    false,
    'an answer 401 asks programs for name and password too',
  ),
} as const;
