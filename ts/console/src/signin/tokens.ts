/**
 * Tokens of the identity provider. They are stored only in memory and renewed shortly before they
 * expire, by one tab at a time.
 */
import { Unreachable } from '../api/client.js';
import { useTokens } from '../api/credentials.js';
import { type Claims, readIdToken } from './id-token.js';
import { beginSession } from './login.js';
import type { PendingRequest } from './memory.js';
import type { Provider } from './provider.js';
import { signedOut } from './state.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

interface TokenSet {
  readonly access: string;
  readonly id: string;
  readonly refresh: string | undefined;
  /** When to renew the tokens, on the clock of `performance.now()`. */
  readonly renewAt: number;
}

const RENEW_BEFORE_MS = 30_000;
const SILENT = texts.signIn.providerNotResponding;

/** The provider permanently refused to issue tokens. All other failures may be temporary. */
class GrantRefused extends Error {}

export class Tokens {
  readonly #provider: Provider;
  #set: TokenSet;
  #claims: Claims;
  #renewing: Promise<void> | undefined;

  private constructor(provider: Provider, set: TokenSet, claims: Claims) {
    this.#provider = provider;
    this.#set = set;
    this.#claims = claims;
  }

  /** Exchanges an authorization code for tokens. Throws user-readable errors. */
  static async ofCode(
    provider: Provider,
    code: string,
    { redirectUri, verifier, nonce }: PendingRequest,
  ): Promise<Tokens> {
    const { set, claims } = await requestTokens(
      provider,
      {
        grant_type: 'authorization_code',
        code,
        client_id: provider.clientId,
        redirect_uri: redirectUri,
        ...(provider.pkce ? { code_verifier: verifier } : {}),
      },
      nonce,
    );
    if (claims === undefined) {
      throw new Error(texts.signIn.noIdToken);
    }
    return new Tokens(provider, set, claims);
  }

  /** Sends these tokens with all further requests, and renews the tokens before they expire. */
  use(): void {
    useTokens(async () => {
      if (performance.now() >= this.#set.renewAt && this.#set.refresh !== undefined) {
        await (this.#renewing ??= this.#renew().finally(() => (this.#renewing = undefined)));
      }
      return this.authorization;
    });
    setCurrent(this);
  }

  get authorization(): string {
    const { access, id } = this.#set;
    return `Bearer ${this.#provider.sendsIdToken ? id : access}`;
  }

  /** The user's name, if the ID token contains it. */
  get name(): string | undefined {
    const value = this.#claims[this.#provider.nameClaim];
    return typeof value === 'string' ? value : undefined;
  }

  get idToken(): string {
    return this.#set.id;
  }

  async #renew(): Promise<void> {
    try {
      await alone(() => this.#refresh());
      // The cookie's session still refers to the old token.
      await beginSession(this.authorization);
    } catch (cause) {
      if (cause instanceof GrantRefused) {
        currentTokens = undefined;
        signedOut(texts.signIn.providerSessionEnded);
      }
      // Tokens that are still valid remain in use until they expire.
    }
  }

  async #refresh(): Promise<void> {
    const before = this.#set;
    const { set, claims } = await requestTokens(this.#provider, {
      grant_type: 'refresh_token',
      refresh_token: before.refresh ?? '',
      client_id: this.#provider.clientId,
    });
    if (claims !== undefined && claims['sub'] !== this.#claims['sub']) {
      throw new GrantRefused(texts.signIn.renewedForOtherUser);
    }
    this.#set = { ...set, id: set.id || before.id, refresh: set.refresh ?? before.refresh };
  }
}

let currentTokens: Tokens | undefined;

function setCurrent(tokens: Tokens): void {
  currentTokens = tokens;
}

/**
 * Discards the tokens. Returns the ID token, which tells the provider which user is signing out.
 */
export function forgetTokens(): string | undefined {
  const hint = currentTokens?.idToken;
  currentTokens = undefined;
  useTokens(undefined);
  return hint;
}

/**
 * Runs one renewal at a time across all tabs, because using a refresh token twice ends the sign-in.
 */
async function alone(work: () => Promise<void>): Promise<void> {
  // The Web Locks API is available only in secure contexts (HTTPS or localhost).
  const locks = (navigator as { locks?: LockManager }).locks;
  await (locks ? locks.request('tidemark.sign-in.refresh', work) : work());
}

interface Answer {
  readonly access_token?: string;
  readonly id_token?: string;
  readonly refresh_token?: string;
  readonly token_type?: string;
  readonly expires_in?: number;
  readonly error?: string;
  readonly error_description?: string;
}

async function requestTokens(
  provider: Provider,
  parameters: Record<string, string>,
  nonce?: string,
): Promise<{ set: TokenSet; claims: Claims | undefined }> {
  const started = performance.now();
  const answer = await post(provider.tokenEndpoint, parameters);
  const { access_token: access, id_token: id } = answer;
  if (!access || answer.token_type?.toLowerCase() !== 'bearer') {
    throw new Error(SILENT);
  }
  const now = Date.now() / 1000;
  const expected = { issuer: provider.issuer, clientId: provider.clientId, nonce, now };
  const claims = id ? await readIdToken(id, { ...expected, accessToken: access }) : undefined;
  const lifeMs = Math.max(answer.expires_in ?? 0, 0) * 1000;
  const early = Math.min(RENEW_BEFORE_MS, lifeMs / 10);
  const renewAt = lifeMs === 0 ? Infinity : started + lifeMs - early;
  return { set: { access, id: id ?? '', refresh: answer.refresh_token, renewAt }, claims };
}

async function post(address: string, parameters: Record<string, string>): Promise<Answer> {
  let response;
  let answer: Answer;
  try {
    response = await fetch(address, {
      method: 'POST',
      body: new URLSearchParams(parameters),
      credentials: 'omit',
      redirect: 'error',
    });
    answer = (await response.json()) as Answer;
  } catch (cause) {
    throw new Unreachable(SILENT, { cause });
  }
  if (!response.ok) {
    const reason =
      answer.error_description ??
      answer.error ??
      fill(texts.signIn.status, { status: response.status });
    throw response.status < 500
      ? new GrantRefused(fill(texts.signIn.providerRefused, { reason }))
      : new Unreachable(SILENT);
  }
  return answer;
}
