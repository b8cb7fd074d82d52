/**
 * Determines whether an endpoint is encrypted, and with which files. The endpoint's own keys take
 * precedence over `tls.*`.
 */
import { type Config, ConfigError, type Key, KEYS } from '../config/index.js';

export type TlsEndpoint = 'http' | 'http.min' | 'pg' | 'line.tcp';

export interface CertificateFiles {
  /** PEM file: the server's certificate, followed by its chain to the root. */
  readonly certificate: string;
  /** PEM file: the private key, without a password. */
  readonly key: string;
}

interface EndpointKeys {
  readonly enabled: Key<boolean>;
  readonly certificate: Key<string>;
  readonly key: Key<string>;
}

const ENDPOINT_KEYS: Readonly<Record<TlsEndpoint, EndpointKeys>> = {
  http: { enabled: KEYS.httpTls, certificate: KEYS.httpTlsCertificate, key: KEYS.httpTlsKey },
  'http.min': {
    enabled: KEYS.httpMinTls,
    certificate: KEYS.httpMinTlsCertificate,
    key: KEYS.httpMinTlsKey,
  },
  pg: { enabled: KEYS.pgTls, certificate: KEYS.pgTlsCertificate, key: KEYS.pgTlsKey },
  'line.tcp': {
    enabled: KEYS.lineTcpTls,
    certificate: KEYS.lineTcpTlsCertificate,
    key: KEYS.lineTcpTlsKey,
  },
};

/**
 * An endpoint's files; `null` if it is not encrypted. Throws `ConfigError` if a file is not
 * specified.
 */
export function certificateFiles(config: Config, endpoint: TlsEndpoint): CertificateFiles | null {
  const keys = ENDPOINT_KEYS[endpoint];
  const own = config.source(keys.enabled) === 'default' ? KEYS.tls : keys.enabled;
  if (!config.get(own)) {
    return null;
  }
  const named = (key: Key<string>, shared: Key<string>): string => {
    const file = config.get(key) === '' ? config.get(shared) : config.get(key);
    if (file === '') {
      throw new ConfigError(
        `${own.name}=true requires a PEM file in ${key.name} or ${shared.name}`,
      );
    }
    return file;
  };
  return {
    certificate: named(keys.certificate, KEYS.tlsCertificate),
    key: named(keys.key, KEYS.tlsKey),
  };
}
