/** Verifies signed tokens. */
import { errors, type JWTPayload, jwtVerify, type JWTVerifyGetKey } from 'jose';

import type { Logger } from '../../observability/index.js';
import { type Claims, identityOf } from './claims.js';
import type { MetadataSource } from './metadata.js';
import type { OidcSettings } from './settings.js';
import { ProviderUnavailable } from './transport.js';
import { refused, unavailable, type Verdict } from './verdict.js';
import { type Clocks, SYSTEM_CLOCKS } from './verdict-cache.js';

const ALGORITHMS = ['RS256', 'PS256', 'ES256', 'EdDSA', 'Ed25519'];
/** Includes `undefined`, because providers omit the type in ID tokens. */
const TYPES = new Set([undefined, 'jwt', 'at+jwt', 'application/at+jwt', 'application/jwt']);

interface ProverServices {
  readonly settings: OidcSettings;
  readonly metadata: MetadataSource;
  readonly findKey: JWTVerifyGetKey;
  readonly logger: Logger;
  readonly clocks?: Clocks;
}

export class TokenProver {
  readonly #services: ProverServices;
  readonly #clocks: Clocks;

  constructor(services: ProverServices) {
    this.#services = services;
    this.#clocks = services.clocks ?? SYSTEM_CLOCKS;
  }

  /** Identifies the owner of `token`. Never rejects. */
  async prove(token: string): Promise<Verdict> {
    try {
      const claims = await this.#verify(token, { mustExpire: true });
      const identity = identityOf(claims, this.#services.settings);
      if (identity === null) {
        return refused('the token contains no user name');
      }
      return { kind: 'known', identity, expires: (claims.exp ?? 0) * 1000 };
    } catch (error) {
      if (error instanceof ProviderUnavailable) {
        this.#services.logger.warn('provider_unavailable', { reason: error.message });
        return unavailable(error.message, error.seconds);
      }
      return refused(reasonOf(error));
    }
  }

  /** Returns the claims of a signed response from the provider; `null` if verification fails. */
  async signedAnswer(text: string): Promise<Claims | null> {
    try {
      return await this.#verify(text.trim(), { mustExpire: false });
    } catch (error) {
      if (error instanceof ProviderUnavailable) {
        throw error;
      }
      return null;
    }
  }

  async #verify(token: string, { mustExpire }: { mustExpire: boolean }): Promise<JWTPayload> {
    const { settings, metadata, findKey } = this.#services;
    const { issuer } = await metadata.get();
    const { payload, protectedHeader } = await jwtVerify(token, findKey, {
      algorithms: ALGORITHMS,
      clockTolerance: settings.skewMs / 1000,
      currentDate: new Date(this.#clocks.wall()),
      requiredClaims: mustExpire ? ['sub', 'exp'] : ['sub'],
      ...(issuer === null ? {} : { issuer }),
    });
    if (!TYPES.has(protectedHeader.typ?.toLowerCase())) {
      throw new errors.JWTClaimValidationFailed('typ', payload, 'typ', 'check_failed');
    }
    this.#checkAudience(payload);
    this.#checkIssueTime(payload);
    return payload;
  }

  /**
   * Checks that the token was issued for this server, or requested by our client. If it has several
   * audiences, or is for the client itself, its authorized party (`azp`) must be our client. Tokens
   * issued to other clients are refused.
   */
  #checkAudience(payload: JWTPayload): void {
    const { audience, clientId } = this.#services.settings;
    const audiences = [payload.aud].flat();
    const party = payload['azp'];
    const meant = audiences.includes(audience);
    const ours = party === clientId || payload['client_id'] === clientId;
    const isForClient = audiences.length > 1 || audiences.includes(clientId);
    const isOtherParty = party !== undefined && party !== clientId;
    if ((!meant && !ours) || (isForClient && isOtherParty)) {
      throw new errors.JWTClaimValidationFailed('aud', payload, 'aud', 'check_failed');
    }
  }

  #checkIssueTime({ iat }: JWTPayload): void {
    if (iat !== undefined && iat * 1000 > this.#clocks.wall() + this.#services.settings.skewMs) {
      throw new errors.JWTClaimValidationFailed('iat', {}, 'iat', 'check_failed');
    }
  }
}

/** Returns the reason to show to users; it reveals nothing about the token's content. */
function reasonOf(error: unknown): string {
  if (error instanceof errors.JWTExpired) {
    return 'the token has expired';
  }
  if (error instanceof errors.JWTClaimValidationFailed) {
    return `the token has an invalid claim '${error.claim}'`;
  }
  return error instanceof errors.JOSEError ? 'the token cannot be verified' : 'malformed token';
}
