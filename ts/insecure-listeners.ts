/** Refuses or reports insecure listeners before they open, so that none opens unintentionally. */
import { type Config, type Endpoint, isLoopback, type Key, KEYS } from './config/index.js';
import { hasSenderKeys, lineTcpRefusal } from './line-tcp/index.js';
import { certificateFiles, type TlsEndpoint } from './tls/index.js';
import { EXIT_CONFIG, StartError } from './start-error.js';

/** An endpoint that other machines may reach. */
interface PublicListener {
  readonly tls: TlsEndpoint;
  readonly enabled: Key<boolean>;
  readonly bindTo: Key<Endpoint>;
}

const LISTENERS: readonly PublicListener[] = [
  { tls: 'http', enabled: KEYS.httpEnabled, bindTo: KEYS.httpBindTo },
  { tls: 'http.min', enabled: KEYS.httpMinEnabled, bindTo: KEYS.httpMinBindTo },
  { tls: 'pg', enabled: KEYS.pgEnabled, bindTo: KEYS.pgBindTo },
  { tls: 'line.tcp', enabled: KEYS.lineTcpEnabled, bindTo: KEYS.lineTcpBindTo },
];

/** Throws if other machines could connect without a login, or without required encryption. */
export function refuseInsecureListeners(config: Config): void {
  const plain = plainTextListeners(config)[0];
  if (plain !== undefined && config.get(KEYS.requireTls)) {
    throw new StartError(
      `${plain} can be reached by other machines in plain text, which security.require.tls=true ` +
        `forbids: set tls.enabled=true with tls.cert.path and tls.private.key.path`,
      EXIT_CONFIG,
    );
  }
  if (config.get(KEYS.insecurePublic)) {
    return;
  }
  const override = 'or set security.insecure.public=true to allow it';
  refuseOpenLines(config, override);
  if (config.get(KEYS.aclEnabled)) {
    refuseKnownAdministrator(config, override);
    return;
  }
  const hasLogin = config.get(KEYS.httpUser) !== '' && config.get(KEYS.httpPassword) !== '';
  if (isReachable(config, KEYS.httpEnabled, KEYS.httpBindTo) && !hasLogin) {
    throw new StartError(
      `${shown(config, KEYS.httpBindTo)} can be reached by other machines and has ` +
        `no login: set http.user and http.password, bind to 127.0.0.1, ${override}`,
      EXIT_CONFIG,
    );
  }
  const defaultPassword =
    config.get(KEYS.pgPassword) === KEYS.pgPassword.defaultText ||
    (config.get(KEYS.pgReadOnlyEnabled) &&
      config.get(KEYS.pgReadOnlyPassword) === KEYS.pgReadOnlyPassword.defaultText);
  if (isReachable(config, KEYS.pgEnabled, KEYS.pgBindTo) && defaultPassword) {
    throw new StartError(
      `${shown(config, KEYS.pgBindTo)} can be reached by other machines with the ` +
        `default password: set pg.password, bind to 127.0.0.1, ${override}`,
      EXIT_CONFIG,
    );
  }
}

/**
 * Refuses public line protocol listeners without sender keys, because their clients do not log in.
 */
function refuseOpenLines(config: Config, override: string): void {
  if (!hasSenderKeys(config) && isReachable(config, KEYS.lineTcpEnabled, KEYS.lineTcpBindTo)) {
    throw new StartError(
      `${shown(config, KEYS.lineTcpBindTo)} can be reached by other machines and has no login: ` +
        `set line.tcp.auth.db.path, bind to 127.0.0.1, ${override}`,
      EXIT_CONFIG,
    );
  }
}

/**
 * Refuses an administrator with the default password. With access control, every endpoint requires
 * a login.
 */
function refuseKnownAdministrator(config: Config, override: string): void {
  const isKnown =
    config.get(KEYS.aclAdminEnabled) &&
    config.get(KEYS.aclAdminPassword) === KEYS.aclAdminPassword.defaultText;
  const open = LISTENERS.find(({ enabled, bindTo }) => isReachable(config, enabled, bindTo));
  if (isKnown && open !== undefined) {
    throw new StartError(
      `${shown(config, open.bindTo)} can be reached by other machines with the administrator's ` +
        `default password: set acl.admin.password, bind to 127.0.0.1, ${override}`,
      EXIT_CONFIG,
    );
  }
}

/** Returns the endpoints that other machines can reach without encryption, as `key=address`. */
export function plainTextListeners(config: Config): string[] {
  return LISTENERS.filter(({ enabled, bindTo }) => isReachable(config, enabled, bindTo))
    .filter(({ tls }) => certificateFiles(config, tls) === null)
    .map(({ bindTo }) => shown(config, bindTo));
}

function isReachable(config: Config, enabled: Key<boolean>, bindTo: Key<Endpoint>): boolean {
  const isShut = bindTo === KEYS.lineTcpBindTo && lineTcpRefusal(config) !== null;
  return config.get(enabled) && !isShut && !isLoopback(config.get(bindTo).host);
}

function shown(config: Config, bindTo: Key<Endpoint>): string {
  const { host, port } = config.get(bindTo);
  return `${bindTo.name}=${host ?? ''}:${port}`;
}
