/** Unusable `acl.oidc.*` settings are refused at startup, with a suggested action. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import test from 'ava';

import { oidcAdvice, readOidcSettings } from '../../ts/auth/index.js';
import { ConfigError, loadConfig, ValueError } from '../../ts/config/index.js';
import { settingsOf, SIGN_ON } from './fakes.js';

const folder = mkdtempSync(join(tmpdir(), 'tidemark-oidc-'));
test.after.always(() => {
  rmSync(folder, { recursive: true, force: true });
});

function file(name: string, content: string | Buffer): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

const HOST = [
  'acl.enabled=true',
  'acl.oidc.enabled=true',
  'acl.oidc.client.id=console',
  'acl.oidc.host=id.example',
];

test('no settings are read if sign-on is disabled', (t) => {
  t.is(readOidcSettings(loadConfig({ set: ['acl.oidc.scope=nonsense'] })), null);
});

test('no endpoints are needed if a discovery URL is set', (t) => {
  const settings = settingsOf();
  t.is(settings.discoveryUrl, 'https://id.example/.well-known/openid-configuration');
  t.is(settings.endpoints, null);
  t.is(settings.audience, 'console');
  t.deepEqual([settings.cacheTtlMs, settings.timeoutMs, settings.skewMs], [30_000, 30_000, 30_000]);
  t.deepEqual(oidcAdvice(settings), []);
});

test('no discovery document is needed if host and paths are set', (t) => {
  const paths = ['acl.oidc.port=8443', 'acl.oidc.userinfo.endpoint=https://users.example/me'];
  const endpoints = readOidcSettings(loadConfig({ set: [...HOST, ...paths] }))?.endpoints;
  t.deepEqual(endpoints, {
    authorization: 'https://id.example:8443/as/authorization.oauth2',
    token: 'https://id.example:8443/as/token.oauth2',
    userInfo: 'https://users.example/me',
    publicKeys: 'https://id.example:8443/pf/JWKS',
    endSession: null,
  });
});

const REFUSED: readonly (readonly [readonly string[], RegExp])[] = [
  [[], /requires acl\.oidc\.configuration\.url, or acl\.oidc\.host/],
  [['acl.oidc.host=id.example'], /requires acl\.oidc\.client\.id/],
  [['acl.oidc.configuration.url=https://id.example/'], /ends in \/\.well-known/],
  [['acl.oidc.configuration.url=http://id.example/.well-known/openid-configuration'], /https/],
  [['acl.oidc.configuration.url=ftp://id.example/.well-known/openid-configuration'], /https/],
  [['acl.oidc.configuration.url=nonsense'], /expected a URL/],
  [['acl.oidc.configuration.url=https://a:b@id.example/'], /expected a URL/],
  [['acl.oidc.host=id.example', 'acl.oidc.token.endpoint=token'], /expected a path or a URL/],
  [['acl.oidc.host=id.example', 'acl.oidc.token.endpoint=http://x/'], /expected https/],
  [['acl.oidc.host=id.example/path@'], /expected a host name/],
];
for (const [set, why] of REFUSED) {
  test(`a configuration with ${set.join(' ') || 'nothing more'} is refused`, (t) => {
    const start = ['acl.enabled=true', 'acl.oidc.enabled=true'];
    const id = why.source.includes('client') ? [] : ['acl.oidc.client.id=console'];
    const config = loadConfig({ set: [...start, ...id, ...set] });
    t.throws(() => readOidcSettings(config), { instanceOf: ValueError, message: why });
  });
}

const REFUSED_ALSO: readonly (readonly [string, RegExp])[] = [
  ['acl.oidc.scope=profile', /must include 'openid'/],
  ['acl.oidc.redirect.uri=http://db.example/', /expected an https URL/],
  ['acl.oidc.redirect.uri=https://db.example/#here', /without '#'/],
  ['acl.oidc.redirect.uri=javascript:alert(1)', /expected an https URL/],
  ['acl.oidc.tls.keystore.path=/nowhere/ca.pem', /cannot read/],
];
for (const [setting, why] of REFUSED_ALSO) {
  test(`${setting} is refused`, (t) => {
    t.throws(() => settingsOf(setting), { instanceOf: ValueError, message: why });
  });
}

test('values out of range are refused when the configuration is read', (t) => {
  for (const setting of [
    'acl.oidc.port=0',
    'acl.oidc.port=65536',
    'acl.oidc.cache.ttl=soon',
    'acl.oidc.cache.max.entries=0',
    'acl.oidc.pkce.enabled=perhaps',
  ]) {
    t.throws(() => loadConfig({ set: [setting] }), { instanceOf: ConfigError }, setting);
  }
});

test('reading groups from tokens requires an expected issuer', (t) => {
  const set = [...HOST, 'acl.oidc.groups.encoded.in.token=true'];
  t.throws(() => readOidcSettings(loadConfig({ set })), { message: /requires acl\.oidc\.issuer/ });
  const issuer = 'acl.oidc.issuer=https://id.example';
  t.is(readOidcSettings(loadConfig({ set: [...set, issuer] }))?.issuer, 'https://id.example');
});

test('redirect URIs may use plain HTTP only for localhost', (t) => {
  t.is(settingsOf('acl.oidc.redirect.uri=http://localhost:9000/').redirectUri.length, 22);
  t.is(settingsOf('acl.oidc.redirect.uri=http://[::1]:9000/').redirectUri.length, 18);
});

test('a CA file must be in PEM or PKCS#12 format', (t) => {
  const pem = file('ca.pem', '-----BEGIN CERTIFICATE-----\n');
  t.truthy(settingsOf(`acl.oidc.tls.keystore.path=${pem}`).trust.ca);
  const p12 = file('ca.p12', Buffer.from([0x30, 0x82, 0, 0, 0]));
  const password = 'acl.oidc.tls.keystore.password=pw';
  const { trust } = settingsOf(`acl.oidc.tls.keystore.path=${p12}`, password);
  t.is(trust.passphrase, 'pw');
  const jks = file('ca.jks', Buffer.from([0xfe, 0xed, 0xfe, 0xed, 0]));
  t.throws(() => settingsOf(`acl.oidc.tls.keystore.path=${jks}`), { message: /is a JKS file/ });
});

test('every insecure setting is reported', (t) => {
  const weak = {
    'acl.oidc.tls.enabled=false': /sent to the identity provider unencrypted/,
    'acl.oidc.tls.validation.enabled=false': /certificate is not verified/,
    'acl.oidc.ropc.flow.enabled=true': /RFC 9700/,
    'acl.oidc.stale.if.error=1m': /logins stay valid/,
    'acl.oidc.pg.token.plain.text.enabled=true': /send tokens unencrypted/,
  };
  for (const [setting, advice] of Object.entries(weak)) {
    t.regex(oidcAdvice(settingsOf(setting)).join(), advice);
  }
});

test('sign-on requires access control', (t) => {
  const set = SIGN_ON.filter((setting) => !setting.startsWith('acl.enabled'));
  t.throws(() => readOidcSettings(loadConfig({ set })), { message: /requires acl\.enabled=true/ });
});
