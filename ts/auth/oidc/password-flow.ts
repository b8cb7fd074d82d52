/**
 * Names and passwords that the provider verifies (`grant_type=password`). Neither is stored:
 * results are cached under a keyed digest, and the refresh token is discarded.
 */
import { createHmac, randomBytes } from 'node:crypto';

import type { Logger } from '../../observability/index.js';
import { parseClaims } from './claims.js';
import type { MetadataSource } from './metadata.js';
import type { OidcSettings } from './settings.js';
import { ProviderUnavailable, type Transport } from './transport.js';
import { refused, unavailable, type Verdict } from './verdict.js';

interface PasswordServices {
  readonly settings: OidcSettings;
  readonly metadata: MetadataSource;
  readonly transport: Transport;
  readonly logger: Logger;
}

const WRONG = 'the identity provider rejected the user name and password';

export class PasswordFlow {
  readonly #services: PasswordServices;
  readonly #key = randomBytes(32);

  constructor(services: PasswordServices) {
    this.#services = services;
  }

  /** Returns the cache key for a name and password; it is useless outside this process. */
  keyOf(user: string, password: string): string {
    return createHmac('sha256', this.#key).update(`${user}\u0000${password}`).digest('base64');
  }

  /** Requests a token and passes it to `identify`. Never rejects. */
  async request(
    user: string,
    password: string,
    identify: (tokens: PasswordTokens) => Promise<Verdict>,
  ): Promise<Verdict> {
    const { settings, metadata, transport, logger } = this.#services;
    const form = new URLSearchParams({
      grant_type: 'password',
      username: user,
      password,
      scope: settings.scope,
      client_id: settings.clientId,
    });
    try {
      const { token: url } = await metadata.get();
      const { status, body } = await transport.call({ url, form });
      const answer = parseClaims(body) ?? {};
      const access = answer['access_token'];
      if (status === 200 && typeof access === 'string') {
        const id = answer['id_token'];
        return await identify({ access, id: typeof id === 'string' ? id : null });
      }
      if (answer['error'] === 'invalid_grant') {
        return refused(WRONG);
      }
      // Any other error is a configuration problem, not a wrong password.
      logger.warn('password_flow_failed', { status, error: answer['error'] });
      return unavailable(`the token endpoint returned status ${status}`);
    } catch (error) {
      if (error instanceof ProviderUnavailable) {
        logger.warn('provider_unavailable', { reason: error.message });
        return unavailable(error.message, error.seconds);
      }
      throw error;
    }
  }
}

interface PasswordTokens {
  readonly access: string;
  readonly id: string | null;
}
