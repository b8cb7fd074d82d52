/** The listener for the line protocol over TCP. */
import { readFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import { createServer as createSecureServer, type TLSSocket } from 'node:tls';

import type { Directory, LoginObserver } from '../auth/index.js';
import { type Config, type Endpoint, KEYS } from '../config/index.js';
import {
  BoundedLog,
  type Logger,
  type ProtocolMetrics,
  refusedLogins,
} from '../observability/index.js';
import type { LineOptions, SessionHost } from '../session/index.js';
import { type Slot, type SlotLimits, slotOf, Slots, stopListening } from '../sockets/index.js';
import type { CredentialStore } from '../tls/index.js';
import { Connection, type ConnectionServices } from './connection.js';
import { SenderAuthenticator } from './sender-authenticator.js';
import { KeyStore, KeyFileError, readKeys } from './key-store.js';
import { lineTcpRefusal } from './listener-policy.js';
import { BufferBudget } from './buffer-budget.js';
import { CommitSlots } from './commit-slots.js';

/** The listener's dependencies. */
interface LineTcpServices {
  readonly sessions: SessionHost;
  readonly config: Config;
  readonly logger: Logger;
  readonly metrics: ProtocolMetrics;
  /** The database's users; absent without access control. */
  readonly directory?: Directory;
  readonly observer?: LoginObserver;
  /** The server's root directory; the path of the key file is relative to it. */
  readonly root: string;
}

export interface RunningLineTcp {
  /** The address as shown in the log: `127.0.0.1:9009`. */
  readonly address: string;
  readonly connections: number;
  /** Number of uncommitted bytes. */
  readonly uncommittedBytes: number;
  /** Applies limits and keys that a configuration reload changed. */
  reconfigure(): void;
  /**
   * Refuses new connections. Resolves when all lines received on open connections are committed.
   */
  drain(): Promise<void>;
  interrupt(): void;
  /** Closes every open connection. */
  close(): Promise<void>;
}

/**
 * The server closes its side only after the last commit. A sender that waits for this therefore
 * knows that its lines were written.
 */
const HALF_OPEN = { allowHalfOpen: true };
const HANDSHAKE_MS = 10_000;
/** Maximum time for a sender to read the challenge. The server writes nothing else to it. */
const STALL_MS = 10_000;
/**
 * Maximum size in bytes that the rows of one batch may take up in memory. The batch itself, as
 * received, is at most 4 MiB.
 */
const MAX_BATCH_ROW_BYTES = 64 * 1024 * 1024;

/** Serves at `line.tcp.net.bind.to`; encrypted if there are `credentials`. */
export async function startLineTcp(
  services: LineTcpServices,
  credentials: CredentialStore | null = null,
): Promise<RunningLineTcp> {
  const listener = new LineListener(services);
  await listener.open(credentials);
  return listener;
}

class LineListener implements RunningLineTcp, Acceptance {
  readonly #services: LineTcpServices;
  readonly #config: Config;
  readonly #log: Logger;
  readonly #connections = new Set<Connection>();
  readonly #drained = new Drained(this.#connections);
  readonly #slots: Slots;
  readonly #shared: ConnectionServices;
  readonly #refused: BoundedLog;
  #servers: Server[] = [];

  /** Throws `KeyFileError` if the key file is invalid. */
  constructor(services: LineTcpServices) {
    const { config, sessions, logger, directory, observer, metrics } = services;
    const log = logger.child('line_tcp');
    this.#services = services;
    this.#config = config;
    this.#log = log;
    this.#slots = new Slots(() => slotLimits(config));
    this.#refused = new BoundedLog(log, {
      single: 'connection_refused',
      omitted: 'connections_refused',
    });
    const keys = currentKeys(services);
    this.#shared = {
      ...readOptions(config),
      database: sessions.database,
      authenticator: new SenderAuthenticator(keys, { guard: sessions.guard, directory, observer }),
      commitSlots: new CommitSlots(availableParallelism()),
      bufferBudget: new BufferBudget(config.get(KEYS.lineTcpOpen), () => {
        for (const connection of this.#connections) {
          connection.resume();
        }
      }),
      metrics,
      logger: log,
      refusals: new BoundedLog(log, { single: 'lines_refused', omitted: 'more_lines_refused' }),
      refusedLogins: refusedLogins(log),
    };
  }

  async open(credentials: CredentialStore | null): Promise<void> {
    this.#servers = await listen(this.#config.get(KEYS.lineTcpBindTo), () =>
      credentials === null ? createPlain(this) : createEncrypted(credentials, this),
    );
  }

  get address(): string {
    const { address, family, port } = this.#servers[0]?.address() as AddressInfo;
    return `${family === 'IPv6' ? `[${address}]` : address}:${port}`;
  }

  get connections(): number {
    return this.#slots.size;
  }

  get uncommittedBytes(): number {
    return this.#shared.bufferBudget.bytes;
  }

  admit(socket: Socket): Slot | null {
    if (this.#drained.isOn) {
      socket.destroy();
      return null;
    }
    const slot = this.#slots.admit(socket);
    if (slot !== null && slot.refusal !== null) {
      this.#refused.add({ address: slot.address, reason: slot.refusal });
      slot.cut();
      return null;
    }
    return slot;
  }

  carry(socket: Socket): void {
    this.#slots.carry(socket);
  }

  serve(socket: Socket, slot: Slot): void {
    const connection = new Connection(socket, slot, this.#shared, () => {
      this.#connections.delete(connection);
      this.#drained.check();
    });
    this.#connections.add(connection);
  }

  reconfigure(): void {
    try {
      this.#shared.authenticator.keys = currentKeys(this.#services);
    } catch (error) {
      if (!(error instanceof KeyFileError)) {
        throw error;
      }
      // If the key file is invalid, the previous keys remain in use.
      this.#log.error('keys_refused', { reason: error.message });
    }
  }

  drain(): Promise<void> {
    return this.#drained.begin();
  }

  interrupt(): void {
    this.#slots.cutAll();
  }

  async close(): Promise<void> {
    this.#slots.cutAll();
    await Promise.all(this.#servers.map((server) => stopListening(server)));
  }
}

/** Ends the connections when the server stops. */
class Drained {
  readonly #connections: ReadonlySet<Connection>;
  #done: (() => void) | null = null;

  constructor(connections: ReadonlySet<Connection>) {
    this.#connections = connections;
  }

  get isOn(): boolean {
    return this.#done !== null;
  }

  begin(): Promise<void> {
    return new Promise((resolved) => {
      this.#done = resolved;
      for (const connection of this.#connections) {
        connection.shutdown();
      }
      this.check();
    });
  }

  check(): void {
    if (this.#connections.size === 0) {
      this.#done?.();
    }
  }
}

function readOptions(
  config: Config,
): Pick<
  ConnectionServices,
  'lines' | 'maxRows' | 'intervalMs' | 'idleMs' | 'disconnects' | 'showsReason'
> {
  const lines: Omit<LineOptions, 'isContinued'> = {
    precision: config.get(KEYS.lineTcpUnit),
    createTables: config.get(KEYS.lineCreateTables),
    createColumns: config.get(KEYS.lineCreateColumns),
    partitionBy: config.get(KEYS.linePartitionBy),
    maxLineBytes: config.get(KEYS.lineTcpLimit),
    maxPendingBytes: MAX_BATCH_ROW_BYTES,
  };
  return {
    lines,
    maxRows: config.get(KEYS.maxUncommittedRows),
    intervalMs: config.get(KEYS.lineTcpInterval),
    idleMs: config.get(KEYS.lineTcpIdle),
    disconnects: config.get(KEYS.lineTcpDisconnect),
    showsReason: config.get(KEYS.lineLogMessage),
  };
}

/** Returns the keys from the file and the keys of stored users. Throws `KeyFileError`. */
function currentKeys({ config, root, directory }: LineTcpServices): KeyStore | null {
  const path = config.get(KEYS.lineTcpKeys);
  const refusal = lineTcpRefusal(config);
  if (refusal !== null) {
    throw new KeyFileError(refusal);
  }
  if (path === '') {
    return directory === undefined ? null : new KeyStore((name) => directory.publicKey(name));
  }
  const file = resolve(root, path);
  try {
    const keys = readKeys(readFileSync(file, 'utf8'));
    return new KeyStore(
      (name) => keys.get(name) ?? null,
      (name) => directory?.publicKey(name) ?? null,
    );
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new KeyFileError(`cannot use the keys in '${file}': ${reason}`, { cause: error });
  }
}

function slotLimits(config: Config): SlotLimits {
  const all = config.get(KEYS.lineTcpConnections);
  return {
    all,
    perAddress: config.get(KEYS.lineTcpAddressConnections) || Math.ceil(all / 4),
    withoutLogin: Math.ceil(all / 2),
    stallMs: STALL_MS,
  };
}

/** Handlers for connections. */
interface Acceptance {
  /** Accepts a connection; returns `null` if it was closed instead. */
  admit(socket: Socket): Slot | null;
  /** Called after the TLS handshake. */
  carry(socket: Socket): void;
  serve(socket: Socket, slot: Slot): void;
}

function createPlain(acceptance: Acceptance): Server {
  return createServer(HALF_OPEN, (socket) => {
    const slot = acceptance.admit(socket);
    if (slot !== null) {
      acceptance.serve(socket, slot);
    }
  });
}

function createEncrypted(credentials: CredentialStore, acceptance: Acceptance): Server {
  const handshake = { handshakeTimeout: HANDSHAKE_MS };
  const options = { ...HALF_OPEN, ...credentials.current.options, ...handshake };
  const server = createSecureServer(options);
  credentials.onChange((next) => {
    // Open connections keep their negotiated certificate.
    server.setSecureContext(next.options);
  });
  server.prependListener('connection', (socket: Socket) => {
    acceptance.admit(socket);
  });
  server.on('secureConnection', (socket: TLSSocket) => {
    acceptance.carry(socket);
    const slot = slotOf(socket);
    if (slot === undefined) {
      socket.destroy();
    } else {
      acceptance.serve(socket, slot);
    }
  });
  server.on('tlsClientError', (_error, socket) => {
    socket.destroy();
  });
  return server;
}

/**
 * Listens at an address. Without a host, listens on the loopback addresses of both families, if the
 * machine has them.
 */
async function listen({ host, port }: Endpoint, open: () => Server): Promise<Server[]> {
  const main = open();
  await bind(main, host ?? '127.0.0.1', port);
  if (host !== null || port === 0) {
    return [main];
  }
  const second = open();
  const isBound = await bind(second, '::1', port).then(
    () => true,
    () => false,
  );
  return isBound ? [main, second] : [main];
}

function bind(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolved, reject) => {
    server.once('error', reject);
    server.listen({ host, port, backlog: 511 }, () => {
      server.off('error', reject);
      resolved();
    });
  });
}
