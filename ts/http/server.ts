/**
 * The HTTP servers: the main one (data and console) and the minimal one (health and metrics). This
 * module handles addresses, limits and timers; routes produce the responses.
 */
import { createServer, type Server, type ServerOptions } from 'node:http';
import { createServer as createSecureServer, type Server as SecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';

import { type Config, type Endpoint, KEYS } from '../config/index.js';
import type { CredentialStore } from '../tls/index.js';
import { createApplication } from './application.js';
import { REFUSED_AT_ONCE, type SlotLimits, stopListening } from '../sockets/index.js';
import { type Application, ConnectionGate } from './connection-gate.js';
import type { HttpServices } from './route.js';
import { MAX_HEADERS, refuseTunnel } from './request/malformed.js';
import { PlainRequest } from './request/plain-request.js';
import { createRoutes, createWebSockets } from './routes/index.js';
import { healthRoutes } from './routes/service.js';

const HANDSHAKE_DEADLINE_MS = 10_000;
const TIMER_CHECK_MS = 250;
/** Time for outgoing bytes to reach clients when the server closes. */
const LAST_BYTES_MS = 150;

/** A listening server. */
export interface RunningHttp {
  /** The address as printed in the startup message: `127.0.0.1:9000`. */
  readonly address: string;
  readonly port: number;
  /** Number of open connections. */
  readonly connections: number;
  /** Applies limits that a configuration reload changed. */
  reconfigure(): void;
  /** Refuses new requests. Resolves when all running requests are answered. */
  drain(): Promise<void>;
  /** Cancels running statements; their clients receive an error. */
  interrupt(): void;
  /** Refuses new connections, and closes every open one. */
  close(): Promise<void>;
}

/** Serves the main routes at `http.bind.to`, encrypted if `credentials` are given. */
export function startHttp(
  services: HttpServices,
  credentials: CredentialStore | null = null,
  webSockets = createWebSockets(services),
): Promise<RunningHttp> {
  const { config } = services;
  const endpoint = config.get(KEYS.httpBindTo);
  const application = createApplication(services, createRoutes(services, webSockets), endpoint, {
    webSockets,
  });
  const stallMs = config.get(KEYS.httpSendTimeout);
  const limits = (): SlotLimits => {
    const all = config.get(KEYS.httpConnections);
    const perAddress = config.get(KEYS.httpAddressConnections) || Math.ceil(all / 4);
    const withoutLogin = config.get(KEYS.httpConnectionsWithoutLogin) || Math.ceil(all / 2);
    return { all, perAddress, withoutLogin, stallMs };
  };
  return listen(endpoint, { application, config, limits, credentials });
}

/** Serves health and metrics at `http.min.bind.to`, where every path returns a response. */
export function startMinimalHttp(
  services: HttpServices,
  credentials: CredentialStore | null = null,
): Promise<RunningHttp> {
  const { config } = services;
  const endpoint = config.get(KEYS.httpMinBindTo);
  const routes = healthRoutes(services);
  const application = createApplication(services, routes, endpoint, {
    ...(routes[0] === undefined ? {} : { anyPath: routes[0] }),
  });
  const all = config.get(KEYS.httpMinConnections);
  const stallMs = config.get(KEYS.httpSendTimeout);
  const limits = (): SlotLimits => ({ all, perAddress: all, withoutLogin: all, stallMs });
  return listen(endpoint, { application, config, limits, credentials });
}

/** A listener's dependencies. */
interface Listener {
  readonly application: Application;
  readonly config: Config;
  /** Connection limits, as currently configured. */
  readonly limits: () => SlotLimits;
  /** `null` for no encryption. */
  readonly credentials: CredentialStore | null;
}

async function listen(endpoint: Endpoint, listener: Listener): Promise<RunningHttp> {
  const { application, limits } = listener;
  const gate = new ConnectionGate(application, limits);
  const open = (): Server | SecureServer => createHttpServer(gate, listener);
  const main = open();
  const port = await bind(main, endpoint.host ?? '127.0.0.1', endpoint.port);
  const servers = [main];
  if (endpoint.host === null && endpoint.port !== 0) {
    // Also listens on the IPv6 loopback address, if the machine has one.
    const second = open();
    const bound = await bind(second, '::1', port).catch(() => null);
    if (bound !== null) {
      servers.push(second);
    }
  }
  const host = endpoint.host ?? '127.0.0.1';
  return {
    address: `${host.includes(':') ? `[${host}]` : host}:${port}`,
    port,
    get connections() {
      return gate.connections;
    },
    reconfigure: () => {
      for (const server of servers) {
        applyLimits(server, listener);
      }
    },
    drain: () => gate.stop(),
    interrupt: () => {
      gate.interrupt();
    },
    close: async () => {
      await Promise.all(servers.map((server) => closeServer(server, gate)));
    },
  };
}

function createHttpServer(gate: ConnectionGate, listener: Listener): Server | SecureServer {
  const { config, credentials } = listener;
  const options = {
    headersTimeout: config.get(KEYS.httpHeaderTimeout),
    // No limit, because an import may take any amount of time; stalled bodies have a separate
    // timer.
    requestTimeout: 0,
    keepAliveTimeout: config.get(KEYS.httpIdle),
    connectionsCheckingInterval: TIMER_CHECK_MS,
    insecureHTTPParser: false,
    // This server's own check handles a missing Host header.
    requireHostHeader: false,
    IncomingMessage: PlainRequest,
  };
  const server =
    credentials === null
      ? createServer(options, gate.handle)
      : createEncrypted(options, gate, credentials);
  // One more than the maximum, so that an excess header is detected.
  server.maxHeadersCount = MAX_HEADERS + 1;
  applyLimits(server, listener);
  server.on('connection', gate.opened);
  server.on('secureConnection', gate.encrypted);
  server.on('upgrade', gate.upgraded);
  server.on('checkContinue', gate.holding);
  server.on('checkExpectation', gate.unexpected);
  server.on('clientError', gate.malformed);
  server.on('connect', refuseTunnel);
  return server;
}

function createEncrypted(
  options: ServerOptions,
  gate: ConnectionGate,
  credentials: CredentialStore,
): SecureServer {
  const server = createSecureServer(
    { ...options, ...credentials.current.options, handshakeTimeout: HANDSHAKE_DEADLINE_MS },
    gate.handle,
  );
  credentials.onChange((next) => {
    // Open connections keep the certificate with which they were established.
    server.setSecureContext(next.options);
  });
  return server;
}

/** Applies the settings that can change at runtime; open connections keep the previous settings. */
function applyLimits(server: LimitedServer, { config, limits }: Listener): void {
  // Node reads this property for every new connection, but its types declare it only as an option.
  server.maxHeaderSize = config.get(KEYS.httpHeaderBytes);
  server.maxConnections = limits().all + 2 * REFUSED_AT_ONCE;
}

type LimitedServer = (Server | SecureServer) & { maxHeaderSize?: number };

function bind(server: Server | SecureServer, host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host, port, backlog: 511 }, () => {
      server.off('error', reject);
      resolve((server.address() as AddressInfo).port);
    });
  });
}

/**
 * Closes the remaining connections. Every client that was waiting for a response has received it.
 */
async function closeServer(server: Server | SecureServer, gate: ConnectionGate): Promise<void> {
  // The HTTP server's own list lacks connections whose TLS handshake is unfinished.
  setTimeout(() => {
    gate.cutAll();
  }, LAST_BYTES_MS);
  await stopListening(server);
}
