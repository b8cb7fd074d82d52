/** Provider metadata: the issuer and the endpoints. */
import type { Logger } from '../../observability/index.js';
import { type OidcSettings, readUrl } from './settings.js';
import { isLinkLocal, ProviderUnavailable, type Transport } from './transport.js';

export interface ProviderMetadata {
  /** `null` if no issuer is configured, in which case no check uses it. */
  readonly issuer: string | null;
  readonly authorization: string;
  readonly token: string;
  readonly userInfo: string;
  readonly publicKeys: string;
  readonly endSession: string | null;
  /** False if the provider lists its challenge methods and S256 is not among them. */
  readonly understandsS256: boolean;
}

/** Delay before the next attempt after a failure. */
const RETRY_MS = 2_000;

/** Discovers the endpoints once; retries only after a failure. */
export class MetadataSource {
  readonly #settings: OidcSettings;
  readonly #transport: Transport;
  readonly #logger: Logger;
  #known: ProviderMetadata | null = null;
  #asking: Promise<ProviderMetadata> | null = null;
  #failedAt = -Infinity;

  constructor(settings: OidcSettings, transport: Transport, logger: Logger) {
    this.#settings = settings;
    this.#transport = transport;
    this.#logger = logger;
    const { endpoints, issuer } = settings;
    if (endpoints !== null) {
      this.#known = { ...endpoints, issuer, understandsS256: true };
    }
  }

  /** Returns the provider's metadata if it arrives within `waitMs`, else `null`. */
  async within(waitMs: number): Promise<ProviderMetadata | null> {
    if (this.#known !== null) {
      return this.#known;
    }
    let late: NodeJS.Timeout | undefined;
    const nothing = new Promise<null>((resolve) => {
      late = setTimeout(resolve, waitMs, null);
    });
    const found = await Promise.race([this.get().catch(() => null), nothing]);
    clearTimeout(late);
    return found;
  }

  /** Returns the provider's metadata. Rejects with `ProviderUnavailable`. */
  async get(): Promise<ProviderMetadata> {
    if (this.#known !== null) {
      return this.#known;
    }
    if (this.#asking === null && performance.now() - this.#failedAt < RETRY_MS) {
      throw new ProviderUnavailable('the discovery document could not be read; try again later');
    }
    this.#asking ??= this.#discover().finally(() => {
      this.#asking = null;
    });
    return await this.#asking;
  }

  async #discover(): Promise<ProviderMetadata> {
    const url = this.#settings.discoveryUrl ?? '';
    try {
      const { status, body } = await this.#transport.call({ url });
      if (status !== 200) {
        throw new ProviderUnavailable(`the discovery endpoint returned status ${status}`);
      }
      this.#known = readMetadata(body, url, this.#settings);
      this.#logger.info('provider_found', { issuer: this.#known.issuer });
      return this.#known;
    } catch (error) {
      this.#failedAt = performance.now();
      const reason = error instanceof Error ? error.message : String(error);
      this.#logger.error('provider_not_found', { url, reason });
      throw error instanceof ProviderUnavailable
        ? error
        : new ProviderUnavailable(reason, { cause: error });
    }
  }
}

/** Parses a discovery document. Throws if it is invalid. */
function readMetadata(
  body: string,
  url: string,
  settings: Pick<OidcSettings, 'allowHttp' | 'issuer'>,
): ProviderMetadata {
  const document = parseDocument(body);
  const text = (name: string): string => {
    const value = document[name];
    if (typeof value !== 'string') {
      throw new ProviderUnavailable(`the discovery document does not contain '${name}'`);
    }
    return value;
  };
  const endpoint = (name: string): string => {
    const { href, hostname } = readUrl(text(name), name, settings.allowHttp);
    if (isLinkLocal(hostname)) {
      throw new ProviderUnavailable(`${name}: link-local address '${hostname}' is not allowed`);
    }
    return href;
  };
  const issuer = text('issuer');
  const expected = settings.issuer ?? url.slice(0, url.lastIndexOf('/.well-known/'));
  if (withoutSlash(issuer) !== withoutSlash(expected)) {
    throw new ProviderUnavailable(
      `the discovery document has a different issuer: expected '${expected}', found '${issuer}'`,
    );
  }
  const methods = document['code_challenge_methods_supported'];
  return {
    issuer,
    authorization: endpoint('authorization_endpoint'),
    token: endpoint('token_endpoint'),
    userInfo: endpoint('userinfo_endpoint'),
    publicKeys: endpoint('jwks_uri'),
    endSession: 'end_session_endpoint' in document ? endpoint('end_session_endpoint') : null,
    understandsS256: !Array.isArray(methods) || methods.includes('S256'),
  };
}

function parseDocument(body: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(body);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
      return value as Record<string, unknown>;
    }
  } catch {
    // Invalid JSON is reported below.
  }
  throw new ProviderUnavailable('the discovery document is not a JSON object');
}

/** Removes a trailing slash, because issuers that differ only in this slash count as equal. */
function withoutSlash(text: string): string {
  return text.endsWith('/') ? text.slice(0, -1) : text;
}
