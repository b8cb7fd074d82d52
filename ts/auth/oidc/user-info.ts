/** Verifies bearer tokens by calling the provider's user information endpoint. */
import type { Logger } from '../../observability/index.js';
import { type Claims, identityOf, parseClaims, peekToken } from './claims.js';
import type { MetadataSource, ProviderMetadata } from './metadata.js';
import type { OidcSettings } from './settings.js';
import type { TokenProver } from './token-proof.js';
import { type ProviderAnswer, ProviderUnavailable, type Transport } from './transport.js';
import { refused, unavailable, type Verdict } from './verdict.js';
import type { Clocks } from './verdict-cache.js';

/** HTTP statuses that providers return for an invalid token, including one that is too long. */
const REFUSALS = new Set([400, 401, 413, 431]);

interface UserInfoServices {
  readonly settings: OidcSettings;
  readonly metadata: MetadataSource;
  readonly transport: Transport;
  /** Verifies signed responses. */
  readonly prover: TokenProver;
  readonly logger: Logger;
  readonly clocks: Clocks;
}

export class UserInfo {
  readonly #services: UserInfoServices;
  readonly #logged = new Set<string>();

  constructor(services: UserInfoServices) {
    this.#services = services;
  }

  /** Identifies the owner of `token`. Never rejects. */
  async request(token: string): Promise<Verdict> {
    const { metadata, transport, settings } = this.#services;
    try {
      const provider = await metadata.get();
      const wrong = this.#endedOrForeign(token, provider);
      if (wrong !== null) {
        return refused(wrong);
      }
      const answer = await transport.call({
        url: provider.userInfo,
        headers: { Authorization: `Bearer ${token}` },
      });
      if (answer.status !== 200) {
        return this.#refusal(answer);
      }
      const claims = await this.#claims(answer);
      const identity = claims === null ? null : identityOf(claims, settings, provider.issuer);
      if (identity === null) {
        this.#once('user_info_unusable', { type: answer.contentType });
        return refused('the identity provider returned no user name');
      }
      const expires = expiryOf(token);
      return { kind: 'known', identity, ...(expires === null ? {} : { expires }) };
    } catch (error) {
      if (error instanceof ProviderUnavailable) {
        this.#services.logger.warn('provider_unavailable', { reason: error.message });
        return unavailable(error.message, error.seconds);
      }
      throw error;
    }
  }

  async #claims(answer: ProviderAnswer): Promise<Claims | null> {
    if (answer.contentType.startsWith('application/jwt')) {
      return await this.#services.prover.signedAnswer(answer.body);
    }
    return parseClaims(answer.body);
  }

  /**
   * Returns the reason to reject a token because of its own claims; `null` if there is no reason.
   * The user information response does not include the audience. A readable token must therefore be
   * intended for this server, come from this provider, and not be expired.
   */
  #endedOrForeign(token: string, provider: ProviderMetadata): string | null {
    const claims = peekToken(token)?.claims;
    if (claims === undefined) {
      this.#once('opaque_tokens', {
        notice: 'the audience of opaque tokens is unknown: tokens from any client are accepted',
      });
      return null;
    }
    const { clientId, audience, skewMs } = this.#services.settings;
    const expires = expiryOf(token);
    if (expires !== null && expires + skewMs <= this.#services.clocks.wall()) {
      return 'the token has expired';
    }
    if (provider.issuer !== null && claims['iss'] !== provider.issuer) {
      return 'the token has a different issuer';
    }
    const named = [claims['aud'], claims['azp'], claims['client_id']].flat();
    return named.includes(audience) || named.includes(clientId)
      ? null
      : 'the token is intended for a different application';
  }

  #refusal({ status, challenge }: ProviderAnswer): Verdict {
    if (REFUSALS.has(status)) {
      return refused('the identity provider rejected the token');
    }
    if (status === 403) {
      return challenge.includes('insufficient_scope')
        ? { kind: 'insufficient scope' }
        : refused('the identity provider rejected the token');
    }
    this.#services.logger.warn('provider_unavailable', { status });
    return unavailable(`the user information endpoint returned status ${status}`);
  }

  /** Logs each provider anomaly once. */
  #once(event: string, fields: Readonly<Record<string, unknown>>): void {
    if (!this.#logged.has(event)) {
      this.#logged.add(event);
      this.#services.logger.warn(event, fields);
    }
  }
}

/** Returns the expiry in a token, in milliseconds since 1970. */
function expiryOf(token: string): number | null {
  const expires = peekToken(token)?.claims['exp'];
  return typeof expires === 'number' ? expires * 1000 : null;
}
