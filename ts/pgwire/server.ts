/** The listener of the PostgreSQL wire protocol. */
import { createServer, type AddressInfo, type Server } from 'node:net';

import { type Config, KEYS } from '../config/index.js';
import type { Logger } from '../observability/index.js';
import type { SessionHost } from '../session/index.js';
import { CancelBook } from './cancel-book.js';
import { Connection, type ConnectionServices } from './connection.js';
import { type Account, LoginBook, type LoginMethod } from './login.js';

/** What the listener needs of the server. */
export interface PgWireServices {
  readonly sessions: SessionHost;
  readonly config: Config;
  readonly logger: Logger;
}

/** Everything the configuration says, as tests set it without one. */
export interface PgWireOptions {
  /** `null`: loopback. */
  readonly host: string | null;
  readonly port: number;
  readonly accounts: readonly Account[];
  readonly method: LoginMethod;
  readonly readOnly: boolean;
  readonly connectionsMax: number;
  readonly statementsMax: number;
  readonly messageBytesMax: number;
  readonly idleMs: number;
}

export interface RunningPgWire {
  /** As the ready line shows it: `127.0.0.1:8812`. */
  readonly address: string;
  readonly port: number;
  /** Refuses new work, lets running statements end, closes. */
  close(): Promise<void>;
}

/** Statements under way at the end get so long. */
const CLOSE_GRACE_MS = 2_500;
const CLOSE_CHECK_MS = 20;
/** Connections over the limit that are still told so; beyond them they are dropped. */
const REFUSED_AT_ONCE = 64;

/** Serves at `pg.net.bind.to`. */
export function startPgWire(services: PgWireServices): Promise<RunningPgWire> {
  return listenPgWire(optionsOf(services.config), services.sessions, services.logger);
}

function optionsOf(config: Config): PgWireOptions {
  const { host, port } = config.get(KEYS.pgBindTo);
  const accounts: Account[] = [
    { user: config.get(KEYS.pgUser), password: config.get(KEYS.pgPassword), readOnly: false },
  ];
  if (config.get(KEYS.pgReadOnlyEnabled)) {
    const user = config.get(KEYS.pgReadOnlyUser);
    accounts.push({ user, password: config.get(KEYS.pgReadOnlyPassword), readOnly: true });
  }
  return {
    host,
    port,
    accounts,
    method: config.get(KEYS.pgAuthMethod) === 'cleartext' ? 'cleartext' : 'scram',
    readOnly: config.get(KEYS.pgReadOnly),
    connectionsMax: config.get(KEYS.pgConnections),
    statementsMax: config.get(KEYS.pgStatements),
    messageBytesMax: config.get(KEYS.pgMessageBytes),
    idleMs: config.get(KEYS.pgIdle),
  };
}

/** Listens with explicit options. */
export async function listenPgWire(
  options: PgWireOptions,
  sessions: SessionHost,
  logger: Logger,
): Promise<RunningPgWire> {
  const connections = new Set<Connection>();
  const shared = {
    sessions,
    logins: await LoginBook.of(options.accounts, options.method),
    cancels: new CancelBook(),
    logger: logger.child('pgwire'),
    readOnly: options.readOnly,
    messageBytesMax: options.messageBytesMax,
    statementsMax: options.statementsMax,
    idleMs: options.idleMs,
  };
  const server = createServer((socket) => {
    if (connections.size >= options.connectionsMax + REFUSED_AT_ONCE) {
      socket.destroy();
      return;
    }
    const services: ConnectionServices = {
      ...shared,
      admitted: connections.size < options.connectionsMax,
    };
    const connection = new Connection(socket, services);
    connections.add(connection);
    socket.on('close', () => connections.delete(connection));
  });
  await listen(server, options.host ?? '127.0.0.1', options.port);
  const { address, family, port } = server.address() as AddressInfo;
  const shown = family === 'IPv6' ? `[${address}]` : address;
  return { address: `${shown}:${port}`, port, close: () => closeAll(server, connections) };
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

async function closeAll(server: Server, connections: ReadonlySet<Connection>): Promise<void> {
  const closed = new Promise<void>((resolve) => {
    server.close(() => {
      resolve();
    });
  });
  const deadline = performance.now() + CLOSE_GRACE_MS;
  const busy = (): boolean => [...connections].some((connection) => connection.busy);
  for (const connection of connections) {
    if (!connection.busy) {
      connection.shutdown();
    }
  }
  while (busy() && performance.now() < deadline) {
    await new Promise((resolve) => setTimeout(resolve, CLOSE_CHECK_MS));
  }
  for (const connection of connections) {
    connection.shutdown();
    connection.destroy();
  }
  await closed;
}
