/** The `acl.oidc.*` settings, checked together: an unusable combination is refused at startup. */
import { readFileSync } from 'node:fs';

import { type Config, isLoopback, KEYS, ValueError } from '../../config/index.js';

/** Configured endpoints: absolute URLs. */
interface ConfiguredEndpoints {
  readonly authorization: string;
  readonly token: string;
  readonly userInfo: string;
  readonly publicKeys: string;
  readonly endSession: string | null;
}

/** Trusted certificates for the provider, in addition to the defaults. */
interface TrustStore {
  readonly ca?: Buffer;
  readonly pfx?: Buffer;
  readonly passphrase?: string;
}

export interface OidcSettings {
  /** URL of the discovery document; `null` if `endpoints` is complete. */
  readonly discoveryUrl: string | null;
  readonly endpoints: ConfiguredEndpoints | null;
  /** The configured issuer; if `null`, discovery provides it. */
  readonly issuer: string | null;
  readonly clientId: string;
  readonly audience: string;
  readonly redirectUri: string;
  readonly scope: string;
  readonly pkce: boolean;
  readonly stateRequired: boolean;
  readonly passwordFlow: boolean;
  readonly tokenAsPassword: boolean;
  readonly plainTextTokens: boolean;
  readonly cacheTtlMs: number;
  readonly cacheEntries: number;
  readonly negativeTtlMs: number;
  readonly staleMs: number;
  readonly skewMs: number;
  readonly groupsClaim: string;
  readonly subClaim: string;
  readonly groupsInToken: boolean;
  readonly timeoutMs: number;
  readonly allowHttp: boolean;
  readonly verifyCertificate: boolean;
  readonly trust: TrustStore;
}

const DISCOVERY_PATH = '/.well-known/openid-configuration';

/** Returns `null` if sign-on is off. Throws `ValueError` with instructions. */
export function readOidcSettings(config: Config): OidcSettings | null {
  if (!config.get(KEYS.oidcEnabled)) {
    return null;
  }
  if (!config.get(KEYS.aclEnabled)) {
    throw new ValueError(
      'acl.oidc.enabled=true requires acl.enabled=true: external users get the permissions of ' +
        'their groups',
    );
  }
  const allowHttp = !config.get(KEYS.oidcTls);
  const discoveryUrl = readDiscoveryUrl(config, allowHttp);
  const endpoints = discoveryUrl === null ? readEndpoints(config, allowHttp) : null;
  const clientId = required(config.get(KEYS.oidcClientId), KEYS.oidcClientId.name);
  const issuer = config.get(KEYS.oidcIssuer) || null;
  const groupsInToken = config.get(KEYS.oidcGroupsInToken);
  if (groupsInToken && discoveryUrl === null && issuer === null) {
    throw new ValueError(
      `${KEYS.oidcGroupsInToken.name}=true requires ${KEYS.oidcIssuer.name} or ` +
        `${KEYS.oidcConfigurationUrl.name}: the expected token issuer must be known`,
    );
  }
  return {
    discoveryUrl,
    endpoints,
    issuer,
    clientId,
    audience: config.get(KEYS.oidcAudience) || clientId,
    redirectUri: readRedirectUri(config),
    scope: readScope(config),
    pkce: config.get(KEYS.oidcPkce),
    stateRequired: config.get(KEYS.oidcState),
    passwordFlow: config.get(KEYS.oidcPasswordFlow),
    tokenAsPassword: config.get(KEYS.oidcTokenAsPassword),
    plainTextTokens: config.get(KEYS.oidcPlainTextTokens),
    cacheTtlMs: config.get(KEYS.oidcCacheTtl),
    cacheEntries: config.get(KEYS.oidcCacheEntries),
    negativeTtlMs: config.get(KEYS.oidcNegativeTtl),
    staleMs: config.get(KEYS.oidcStale),
    skewMs: config.get(KEYS.oidcSkew),
    groupsClaim: config.get(KEYS.oidcGroupsClaim),
    subClaim: config.get(KEYS.oidcSubClaim),
    groupsInToken,
    timeoutMs: config.get(KEYS.oidcTimeout),
    allowHttp,
    verifyCertificate: config.get(KEYS.oidcVerify),
    trust: readTrust(config),
  };
}

/** Returns warnings about the sign-on configuration for the operator. */
export function oidcAdvice(settings: OidcSettings): string[] {
  const advice: string[] = [];
  if (settings.passwordFlow) {
    advice.push(
      'acl.oidc.ropc.flow.enabled=true: passwords pass through this server, which RFC 9700 forbids',
    );
  }
  if (settings.allowHttp) {
    advice.push('acl.oidc.tls.enabled=false: tokens are sent to the identity provider unencrypted');
  }
  if (!settings.verifyCertificate) {
    advice.push('acl.oidc.tls.validation.enabled=false: the provider certificate is not verified');
  }
  if (settings.staleMs > 0) {
    advice.push('acl.oidc.stale.if.error: logins stay valid while the provider is not responding');
  }
  if (settings.plainTextTokens) {
    advice.push('acl.oidc.pg.token.plain.text.enabled=true: clients can send tokens unencrypted');
  }
  return advice;
}

function readDiscoveryUrl(config: Config, allowHttp: boolean): string | null {
  const text = config.get(KEYS.oidcConfigurationUrl);
  if (text === '') {
    return null;
  }
  const { name } = KEYS.oidcConfigurationUrl;
  const url = readUrl(text, name, allowHttp);
  if (!url.pathname.endsWith(DISCOVERY_PATH) || url.search !== '') {
    throw new ValueError(`${name}: expected a URL that ends in ${DISCOVERY_PATH}`);
  }
  return url.href;
}

function readEndpoints(config: Config, allowHttp: boolean): ConfiguredEndpoints {
  const host = config.get(KEYS.oidcHost);
  if (host === '') {
    throw new ValueError(
      `acl.oidc.enabled=true requires ${KEYS.oidcConfigurationUrl.name}, ` +
        `or ${KEYS.oidcHost.name} with the endpoint paths`,
    );
  }
  if (!/^(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])$/.test(host)) {
    throw new ValueError(`${KEYS.oidcHost.name}: expected a host name, found '${host}'`);
  }
  const scheme = allowHttp ? 'http' : 'https';
  const base = readUrl(
    `${scheme}://${host}:${config.get(KEYS.oidcPort)}`,
    KEYS.oidcHost.name,
    allowHttp,
  );
  const at = (key: { readonly name: string }, path: string): string => {
    if (path.includes('://')) {
      return readUrl(path, key.name, allowHttp).href;
    }
    if (!path.startsWith('/')) {
      throw new ValueError(`${key.name}: expected a path or a URL, found '${path}'`);
    }
    return new URL(path, base).href;
  };
  const ended = config.get(KEYS.oidcEndSession);
  return {
    authorization: at(KEYS.oidcAuthorization, config.get(KEYS.oidcAuthorization)),
    token: at(KEYS.oidcToken, config.get(KEYS.oidcToken)),
    userInfo: at(KEYS.oidcUserInfo, config.get(KEYS.oidcUserInfo)),
    publicKeys: at(KEYS.oidcPublicKeys, config.get(KEYS.oidcPublicKeys)),
    endSession: ended === '' ? null : at(KEYS.oidcEndSession, ended),
  };
}

/**
 * Parses a provider URL. It must use https unless `allowHttp` is set, and must not contain user
 * information.
 */
export function readUrl(text: string, name: string, allowHttp: boolean): URL {
  const url = parseUrl(text);
  const bare = url?.username === '' && url.password === '' && url.hash === '';
  if (url === null || !bare) {
    throw new ValueError(`${name}: expected a URL such as https://id.example, found '${text}'`);
  }
  if (url.protocol !== 'https:' && !(allowHttp && url.protocol === 'http:')) {
    throw new ValueError(
      `${name}: expected https, found '${text}'; acl.oidc.tls.enabled=false allows http`,
    );
  }
  return url;
}

/** Parses a URL. `URL.parse` is not used, because some supported Node versions lack it. */
function parseUrl(text: string): URL | null {
  return URL.canParse(text) ? new URL(text) : null;
}

function readRedirectUri(config: Config): string {
  const text = config.get(KEYS.oidcRedirectUri);
  if (text === '') {
    return '';
  }
  const { name } = KEYS.oidcRedirectUri;
  const url = parseUrl(text);
  const plain = url?.protocol === 'http:' && isLoopback(url.hostname.replace(/^\[|\]$/g, ''));
  if (url === null || (url.protocol !== 'https:' && !plain) || url.hash !== '') {
    throw new ValueError(
      `${name}: expected an https URL without '#' (http for loopback hosts), found '${text}'`,
    );
  }
  return text;
}

function readScope(config: Config): string {
  const scopes = config.get(KEYS.oidcScope).split(/\s+/).filter(Boolean);
  if (!scopes.includes('openid')) {
    throw new ValueError(`${KEYS.oidcScope.name}: the scopes must include 'openid'`);
  }
  return scopes.join(' ');
}

function readTrust(config: Config): TrustStore {
  const path = config.get(KEYS.oidcKeystore);
  if (path === '') {
    return {};
  }
  const { name } = KEYS.oidcKeystore;
  let bytes;
  try {
    bytes = readFileSync(path);
  } catch (cause) {
    throw new ValueError(`${name}: cannot read '${path}'`, { cause });
  }
  if (bytes.includes('-----BEGIN CERTIFICATE-----')) {
    return { ca: bytes };
  }
  // Java's own key store format (JKS) is not supported.
  if (bytes.readUInt32BE(0) === 0xfe_ed_fe_ed) {
    throw new ValueError(`${name}: '${path}' is a JKS file: convert it to PEM or PKCS#12`);
  }
  return { pfx: bytes, passphrase: config.get(KEYS.oidcKeystorePassword) };
}

function required(value: string, name: string): string {
  if (value === '') {
    throw new ValueError(`acl.oidc.enabled=true requires ${name}`);
  }
  return value;
}
