/** Sign-on components without a network: settings, a provider with scripted responses, tokens. */
import {
  exportJWK,
  generateKeyPair,
  type JWTPayload,
  SignJWT,
  type JWTHeaderParameters,
} from 'jose';

import {
  type Directory,
  type Identity,
  NameSalts,
  type ScramVerifier,
} from '../../ts/auth/index.js';
import { readOidcSettings } from '../../ts/auth/index.js';
import { type OidcSettings } from '../../ts/auth/oidc/settings.js';
import type { ProviderAnswer, ProviderCall, Transport } from '../../ts/auth/oidc/transport.js';
import type { Clocks } from '../../ts/auth/oidc/verdict-cache.js';
import { loadConfig } from '../../ts/config/index.js';

export const ISSUER = 'https://id.example';
export const SIGN_ON = [
  'acl.enabled=true',
  'acl.oidc.enabled=true',
  `acl.oidc.configuration.url=${ISSUER}/.well-known/openid-configuration`,
  'acl.oidc.client.id=console',
];

export function settingsOf(...set: readonly string[]): OidcSettings {
  const settings = readOidcSettings(loadConfig({ set: [...SIGN_ON, ...set] }));
  if (settings === null) {
    throw new Error('sign-on is off');
  }
  return settings;
}

/** Clocks that advance only on request. */
export class HandClock implements Clocks {
  #ms = 1_000_000;
  readonly monotonic = (): number => this.#ms;
  readonly wall = (): number => 1_700_000_000_000 + this.#ms;

  pass(ms: number): void {
    this.#ms += ms;
  }

  get seconds(): number {
    return Math.floor(this.wall() / 1000);
  }
}

type Reply = Partial<ProviderAnswer> | Error;

/**
 * A transport with responses by path. By default it returns a matching discovery document or key
 * set.
 */
export class FakeTransport implements Transport {
  readonly calls: ProviderCall[] = [];
  readonly replies = new Map<string, (call: ProviderCall) => Reply | Promise<Reply>>();
  keys: readonly object[] = [];

  async call(call: ProviderCall): Promise<ProviderAnswer> {
    this.calls.push(call);
    const { pathname } = new URL(call.url);
    const reply = (await this.replies.get(pathname)?.(call)) ?? this.#usual(pathname);
    if (reply instanceof Error) {
      throw reply;
    }
    return { status: 200, contentType: 'application/json', body: '', challenge: '', ...reply };
  }

  count(path: string): number {
    return this.calls.filter(({ url }) => new URL(url).pathname === path).length;
  }

  json(path: string, value: unknown, status = 200): void {
    this.replies.set(path, () => ({ status, body: JSON.stringify(value) }));
  }

  #usual(path: string): Reply {
    const documents: Readonly<Record<string, unknown>> = {
      '/.well-known/openid-configuration': discovery(),
      '/jwks': { keys: this.keys },
    };
    const document = documents[path];
    return document === undefined ? { status: 404 } : { body: JSON.stringify(document) };
  }
}

export function discovery(changes: Readonly<Record<string, unknown>> = {}): object {
  return {
    issuer: ISSUER,
    authorization_endpoint: `${ISSUER}/auth`,
    token_endpoint: `${ISSUER}/token`,
    userinfo_endpoint: `${ISSUER}/me`,
    jwks_uri: `${ISSUER}/jwks`,
    code_challenge_methods_supported: ['S256'],
    ...changes,
  };
}

export interface Signer {
  readonly jwk: object;
  sign(claims: JWTPayload, header?: Partial<JWTHeaderParameters>): Promise<string>;
}

export async function signer(kid = 'one', alg = 'RS256'): Promise<Signer> {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
  return {
    jwk: { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' },
    sign: (claims, header = {}) =>
      new SignJWT(claims).setProtectedHeader({ alg, kid, ...header }).sign(privateKey),
  };
}

/** An in-memory directory of users and tokens. */
export class FakeDirectory implements Directory {
  readonly passwords = new Map<string, string>();
  readonly tokens = new Map<string, string>();
  /** External groups whose members may log in. */
  readonly allowedGroups = new Set(['writers']);
  checks = 0;
  readonly #verifiers = new Map<string, ReturnType<Directory['scramVerifier']>>();

  enabledIdentity(name: string): Identity | null {
    return this.passwords.has(name) ? { kind: 'user', name } : null;
  }

  scramVerifier(name: string): ReturnType<Directory['scramVerifier']> {
    if (!this.passwords.has(name)) {
      return null;
    }
    const verifier = this.#verifiers.get(name) ?? {
      salt: Buffer.alloc(16),
      iterations: 4096,
      storedKey: Buffer.alloc(32),
      serverKey: Buffer.alloc(32),
    };
    this.#verifiers.set(name, verifier);
    return verifier;
  }

  publicKey(): null {
    return null;
  }

  mockVerifier(name: string): ScramVerifier {
    return new NameSalts(Buffer.alloc(32)).mock(name, 4096);
  }

  setPassword(name: string, password: string): void {
    this.passwords.set(name, password);
    this.#verifiers.delete(name);
  }

  async verifyPassword(name: string, password: string): Promise<Identity | null> {
    this.checks += 1;
    await Promise.resolve();
    return this.passwords.get(name) === password ? { kind: 'user', name } : null;
  }

  verifyRestToken(token: string): Identity | null {
    const name = this.tokens.get(token);
    return name === undefined ? null : { kind: 'user', name };
  }

  mayConnect({ kind, externalGroups = [] }: Identity): boolean {
    return kind !== 'external' || externalGroups.some((group) => this.allowedGroups.has(group));
  }

  isKnown(name: string): boolean {
    return this.passwords.has(name);
  }

  principal(name: string): { key: string; kind: string } | null {
    return this.isKnown(name) ? { key: `user ${name}`, kind: 'user' } : null;
  }

  groupKeys(): readonly string[] {
    return [];
  }

  isAdministrator(): boolean {
    return false;
  }

  identityOf(name: string): Identity | null {
    return this.isKnown(name) ? { kind: 'user', name } : null;
  }
}
