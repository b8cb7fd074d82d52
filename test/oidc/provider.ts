/**
 * An identity provider for tests: `oidc-provider` over real HTTP, with users and groups, and with
 * faults injected in front of it.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createSecureServer, type ServerOptions } from 'node:https';
import type { AddressInfo } from 'node:net';

import { exportJWK, generateKeyPair, type JWK } from 'jose';
import { errors, type GrantContext, interactionPolicy, Provider } from 'oidc-provider';

interface Person {
  readonly password: string;
  readonly name: string;
  groups: unknown;
}

/** Fault injected for a path. */
type Fault =
  | { readonly kind: 'delay'; readonly ms: number }
  | {
      readonly kind: 'answer';
      readonly status: number;
      readonly type: string;
      readonly body: string;
    }
  | { readonly kind: 'redirect'; readonly to: string }
  /** Hangs until the fault is removed. */
  | { readonly kind: 'hang' };

interface ProviderOptions {
  readonly clientId?: string;
  readonly redirectUris?: readonly string[];
  readonly accessTokenSeconds?: number;
  /** Whether groups are also in ID tokens. */
  readonly claimsInIdToken?: boolean;
  /** TLS options; without them the provider uses plain HTTP. */
  readonly tls?: ServerOptions;
}

export const CLIENT_ID = 'console';
const REFRESH_SECONDS = 3600;

export class TestProvider {
  readonly users = new Map<string, Person>();
  readonly faults = new Map<string, Fault>();
  /** Number of requests by path. */
  readonly calls = new Map<string, number>();
  /** Whether user information requests are refused because of insufficient scope. */
  narrow = false;
  /** Rewrites redirect targets. */
  rewriteLocation: (location: string) => string = (location) => location;
  readonly #server: Server;
  readonly #options: ProviderOptions;
  #issuer = '';
  #handle: (request: IncomingMessage, response: ServerResponse) => void = () => undefined;
  #keyCount = 0;
  #redirectUris: readonly string[];

  private constructor(server: Server, options: ProviderOptions) {
    this.#server = server;
    this.#options = options;
    this.#redirectUris = options.redirectUris ?? ['http://127.0.0.1:9/'];
  }

  static async start(options: ProviderOptions = {}): Promise<TestProvider> {
    const server = options.tls === undefined ? createServer() : createSecureServer(options.tls);
    const provider = new TestProvider(server, options);
    server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      provider.#answer(request, response);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const host = options.tls === undefined ? 'http://127.0.0.1' : 'https://localhost';
    provider.#issuer = `${host}:${port}`;
    await provider.rotateKeys();
    return provider;
  }

  get issuer(): string {
    return this.#issuer;
  }

  get discoveryUrl(): string {
    return `${this.#issuer}/.well-known/openid-configuration`;
  }

  /** Returns the `--set` values for a server that uses this provider. */
  settings(...more: readonly string[]): string[] {
    return [
      'acl.oidc.enabled=true',
      `acl.oidc.configuration.url=${this.discoveryUrl}`,
      `acl.oidc.client.id=${this.#options.clientId ?? CLIENT_ID}`,
      ...(this.#options.tls === undefined ? ['acl.oidc.tls.enabled=false'] : []),
      ...more,
    ];
  }

  count(path: string): number {
    return this.calls.get(path) ?? 0;
  }

  addPerson(login: string, person: Partial<Person> = {}): void {
    this.users.set(login, { password: 'secret', name: `Name of ${login}`, groups: [], ...person });
  }

  setGroups(login: string, groups: unknown): void {
    const person = this.users.get(login);
    if (person !== undefined) {
      person.groups = groups;
    }
  }

  /** Registers the console's redirect URIs once they are known. */
  async allowRedirects(uris: readonly string[]): Promise<void> {
    this.#redirectUris = uris;
    await this.rotateKeys();
  }

  /** Signs with a new key from now on. Tokens issued earlier remain valid. */
  async rotateKeys(): Promise<void> {
    this.#keyCount += 1;
    const key = await generateKeyPair('RS256', { extractable: true });
    const jwk = { ...(await exportJWK(key.privateKey)), kid: `key-${this.#keyCount}` };
    this.#handle = this.#build({ ...jwk, alg: 'RS256', use: 'sig' }).callback();
  }

  /** Returns a token that a program obtained with a user name and password. */
  async token(login: string, password = 'secret'): Promise<{ access: string; id: string }> {
    const response = await fetch(`${this.#issuer}/token`, {
      method: 'POST',
      body: new URLSearchParams({
        grant_type: 'password',
        username: login,
        password,
        scope: 'openid',
        client_id: this.#options.clientId ?? CLIENT_ID,
      }),
    });
    const answer = (await response.json()) as { access_token: string; id_token: string };
    if (!response.ok) {
      throw new Error(JSON.stringify(answer));
    }
    return { access: answer.access_token, id: answer.id_token };
  }

  /** Aborts all running requests. */
  dropConnections(): void {
    this.#server.closeAllConnections();
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const path = (request.url ?? '').split('?')[0] ?? '';
    this.calls.set(path, this.count(path) + 1);
    if (this.narrow && path === '/me') {
      const challenge = 'Bearer error="insufficient_scope", scope="openid"';
      response
        .writeHead(403, { 'WWW-Authenticate': challenge })
        .end('{"error":"insufficient_scope"}');
      return;
    }
    const set = response.setHeader.bind(response);
    response.setHeader = (name, value) =>
      set(
        name,
        name.toLowerCase() === 'location' && typeof value === 'string'
          ? this.rewriteLocation(value)
          : value,
      );
    const fault = this.faults.get(path) ?? this.faults.get('*');
    switch (fault?.kind) {
      case 'hang':
        return;
      case 'answer':
        response.writeHead(fault.status, { 'Content-Type': fault.type }).end(fault.body);
        return;
      case 'redirect':
        response.writeHead(302, { Location: fault.to }).end();
        return;
      case 'delay':
        setTimeout(() => {
          this.#handle(request, response);
        }, fault.ms);
        return;
      default:
        this.#handle(request, response);
    }
  }

  #build(key: JWK): Provider {
    const policy = interactionPolicy.base();
    // The redirect URIs are on localhost, so the client counts as a native one.
    policy.get('consent').checks.remove('native_client_prompt');
    const provider = new Provider(this.#issuer, {
      clients: [
        {
          client_id: this.#options.clientId ?? CLIENT_ID,
          application_type: 'native',
          token_endpoint_auth_method: 'none',
          redirect_uris: this.#redirectUris,
          post_logout_redirect_uris: this.#redirectUris,
          grant_types: ['authorization_code', 'refresh_token', 'password'],
          response_types: ['code'],
        },
      ],
      jwks: { keys: [key] },
      interactions: { policy },
      cookies: { keys: ['one key of a test'] },
      claims: { openid: ['sub', 'name', 'groups'] },
      conformIdTokenClaims: this.#options.claimsInIdToken !== true,
      clientBasedCORS: () => true,
      clockTolerance: 0,
      pkce: { required: () => true },
      issueRefreshToken: () => Promise.resolve(true),
      rotateRefreshToken: true,
      ttl: {
        AccessToken: this.#options.accessTokenSeconds ?? 600,
        IdToken: 600,
        AuthorizationCode: 60,
        RefreshToken: REFRESH_SECONDS,
        Grant: REFRESH_SECONDS,
        Session: REFRESH_SECONDS,
        Interaction: REFRESH_SECONDS,
      },
      features: { devInteractions: { enabled: true }, rpInitiatedLogout: { enabled: true } },
      findAccount: (_context: unknown, login: string) => this.#account(login),
    });
    provider.registerGrantType('password', (context) => this.#passwordGrant(provider, context), [
      'username',
      'password',
      'scope',
    ]);
    return provider;
  }

  #account(login: string) {
    const person = this.users.get(login);
    return person === undefined
      ? undefined
      : {
          accountId: login,
          claims: () => ({ sub: login, name: person.name, groups: person.groups }),
        };
  }

  async #passwordGrant(provider: Provider, context: GrantContext): Promise<void> {
    const { client, params } = context.oidc;
    const { username = '', password, scope = 'openid' } = params;
    const person = this.users.get(username);
    if (person === undefined || person.password !== password) {
      throw new errors.InvalidGrant('invalid credentials');
    }
    const grant = new provider.Grant({ accountId: username, clientId: client.clientId });
    grant.addOIDCScope(scope);
    const grantId = await grant.save();
    const access = new provider.AccessToken({
      accountId: username,
      client,
      grantId,
      gty: 'password',
      scope,
    });
    const idToken = new provider.IdToken(
      { sub: username, name: person.name, groups: person.groups },
      { ctx: context, client },
    );
    Object.assign(idToken, { scope, mask: {}, rejected: [] });
    context.body = {
      access_token: await access.save(),
      id_token: await idToken.issue({ use: 'idtoken' }),
      expires_in: access.expiration,
      token_type: 'Bearer',
      scope,
    };
  }
}
