/** The listener for the PostgreSQL wire protocol. */
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';

import {
  type Authenticator,
  type Directory,
  FailureLimiter,
  type LoginObserver,
} from '../auth/index.js';
import { type Config, KEYS } from '../config/index.js';
import { type Logger, refusedLogins } from '../observability/index.js';
import type { DurationObserver, SessionHost } from '../session/index.js';
import { type SlotLimits, Slots, stopListening } from '../sockets/index.js';
import type { CredentialStore } from '../tls/index.js';
import { CancelKeys } from './connection/cancel-keys.js';
import { Connection, type ConnectionServices } from './connection/connection.js';
import { Drain } from './connection/drain.js';
import { type Account, LoginBook, type LoginMethod } from './login/login.js';

/** The listener's dependencies. */
interface PgWireServices {
  readonly sessions: SessionHost;
  /** Records statement durations. */
  readonly statements?: { readonly pgwire: DurationObserver };
  readonly config: Config;
  readonly logger: Logger;
  /** The database's users; absent without access control. */
  readonly directory?: Directory;
  readonly observer?: LoginObserver;
  /** Verifies users that the database does not store. */
  readonly authenticator?: Authenticator;
}

/** All settings. The server reads them from the configuration; tests pass them directly. */
export interface PgWireOptions extends PgWireLimits {
  /** `null` for loopback. */
  readonly host: string | null;
  readonly port: number;
  readonly method: LoginMethod;
  readonly readOnly: boolean;
  readonly idleMs: number;
  /** Maximum time from the start of the connection to the end of its login. */
  readonly loginMs?: number;
  /** Time without reading after which a client is treated as disconnected, in milliseconds. */
  readonly stallMs?: number;
  /** Whether connections from other machines must be encrypted. */
  readonly requireEncryption: boolean;
  /** Whether connections may be handed off to the engine. */
  readonly handsOff?: boolean;
}

/** Limits that a configuration reload can change for new connections. */
interface PgWireLimits {
  readonly accounts: readonly Account[];
  readonly connectionsMax: number;
  /** Maximum number of connections per remote address; 0 means a quarter of all connections. */
  readonly addressConnectionsMax?: number | undefined;
  /** Maximum number of connections without a login; 0 means half of all connections. */
  readonly withoutLoginMax?: number | undefined;
  readonly statementsMax: number;
  readonly messageBytesMax: number;
}

export interface RunningPgWire {
  /** The address as printed in the startup message: `127.0.0.1:8812`. */
  readonly address: string;
  readonly port: number;
  /** Number of open connections. */
  readonly connections: number;
  /** Applies settings that a configuration reload changed. */
  reconfigure(): Promise<void>;
  /** Closes idle connections and refuses new work. Resolves when no statement is running. */
  drain(): Promise<void>;
  /** Cancels running statements; their clients receive an error. */
  interrupt(): void;
  /** Refuses new connections, and closes every open one. */
  close(): Promise<void>;
}

const LOGIN_MS = 10_000;
const STALL_MS = 60_000;
/** Time for outgoing bytes to reach clients when the server closes. */
const LAST_BYTES_MS = 150;

/** Serves at `pg.net.bind.to`; offers encryption if there are `credentials`. */
export async function startPgWire(
  services: PgWireServices,
  credentials: CredentialStore | null = null,
): Promise<RunningPgWire> {
  const { config } = services;
  const listener = await listenPgWire(optionsOf(config), services, credentials);
  return {
    ...listener,
    // A getter, because a copy would become stale.
    get connections() {
      return listener.connections;
    },
    reconfigure: () => listener.reconfigure(limitsOf(config)),
  };
}

function optionsOf(config: Config): PgWireOptions {
  const { host, port } = config.get(KEYS.pgBindTo);
  return {
    ...limitsOf(config),
    host,
    port,
    method: config.get(KEYS.pgAuthMethod) === 'cleartext' ? 'cleartext' : 'scram',
    readOnly: config.get(KEYS.pgReadOnly),
    idleMs: config.get(KEYS.pgIdle),
    requireEncryption: config.get(KEYS.requireTls),
    handsOff: config.get(KEYS.pgHandoffs),
  };
}

function limitsOf(config: Config): PgWireLimits {
  const accounts: Account[] = [
    { user: config.get(KEYS.pgUser), password: config.get(KEYS.pgPassword), readOnly: false },
  ];
  if (config.get(KEYS.pgReadOnlyEnabled)) {
    const user = config.get(KEYS.pgReadOnlyUser);
    accounts.push({ user, password: config.get(KEYS.pgReadOnlyPassword), readOnly: true });
  }
  return {
    accounts,
    connectionsMax: config.get(KEYS.pgConnections),
    addressConnectionsMax: config.get(KEYS.pgAddressConnections),
    withoutLoginMax: config.get(KEYS.pgConnectionsWithoutLogin),
    statementsMax: config.get(KEYS.pgStatements),
    messageBytesMax: config.get(KEYS.pgMessageBytes),
  };
}

/** A listener whose limits can be changed. */
interface PgWireListener extends Omit<RunningPgWire, 'reconfigure'> {
  reconfigure(limits: PgWireLimits): Promise<void>;
}

/** Listens with explicit options. */
export async function listenPgWire(
  options: PgWireOptions,
  services: Omit<PgWireServices, 'config'>,
  credentials: CredentialStore | null = null,
): Promise<PgWireListener> {
  const { sessions, logger, directory, observer, authenticator, statements } = services;
  const connections = new Set<Connection>();
  const log = logger.child('pgwire');
  const { readOnly, idleMs, requireEncryption, handsOff = false } = options;
  const given = { sessions, observer, authenticator, readOnly, idleMs, requireEncryption };
  const fixed = {
    ...given,
    handsOff,
    seconds: statements?.pgwire,
    cancelKeys: new CancelKeys(),
    logger: log,
    refusals: refusedLogins(log),
    loginMs: options.loginMs ?? LOGIN_MS,
  };
  let limits: PgWireLimits = options;
  const setting = { directory, failures: authenticator?.failures ?? new FailureLimiter() };
  let logins = await LoginBook.of(options.accounts, options.method, setting);
  const slots = new Slots(() => slotLimits(limits, options.stallMs ?? STALL_MS));
  const drain = new Drain(connections);
  const accept = (socket: Socket): void => {
    const slot = slots.admit(socket);
    if (slot === null) {
      return;
    }
    const { messageBytesMax, statementsMax } = limits;
    const connected: ConnectionServices = {
      ...fixed,
      messageBytesMax,
      statementsMax,
      logins,
      credentials: credentials?.current ?? null,
      drain,
    };
    const connection = new Connection(socket, slot, connected);
    connections.add(connection);
    socket.on('close', () => {
      connections.delete(connection);
      drain.check();
    });
  };
  const server = createServer(accept);
  await listen(server, options.host ?? '127.0.0.1', options.port);
  const { address, family, port } = server.address() as AddressInfo;
  const shown = family === 'IPv6' ? `[${address}]` : address;
  return {
    address: `${shown}:${port}`,
    port,
    get connections() {
      return slots.size;
    },
    reconfigure: async (next) => {
      logins = await LoginBook.of(next.accounts, options.method, setting);
      limits = next;
    },
    drain: () => drain.begin(),
    interrupt: () => {
      for (const connection of connections) {
        connection.terminate();
      }
    },
    close: () => closeAll(server, slots),
  };
}

function slotLimits(limits: PgWireLimits, stallMs: number): SlotLimits {
  const { connectionsMax: all, addressConnectionsMax = 0, withoutLoginMax = 0 } = limits;
  return {
    all,
    perAddress: addressConnectionsMax || Math.ceil(all / 4),
    withoutLogin: withoutLoginMax || Math.ceil(all / 2),
    stallMs,
  };
}

function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

/** Closes the remaining connections; their clients have been notified. */
async function closeAll(server: Server, slots: Slots): Promise<void> {
  setTimeout(() => {
    slots.cutAll();
  }, LAST_BYTES_MS);
  await stopListening(server);
}
