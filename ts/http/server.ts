/**
 * The HTTP servers: the main one (data and console) and the minimal one (health, metrics).
 * Knows addresses, limits and timers; what is answered is the routes' business.
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
/** What is on its way to a client when the server closes gets so long. */
const LAST_BYTES_MS = 150;

/** A server that listens. */
export interface RunningHttp {
  /** As the ready line shows it: `127.0.0.1:9000`. */
  readonly address: string;
  readonly port: number;
  /** Open ones. */
  readonly connections: number;
  /** Takes over the limits that a reload of the configuration changed. */
  reconfigure(): void;
  /** Refuses new requests; resolves when those under way are answered. */
  drain(): Promise<void>;
  /** Running statements are cancelled; their clients receive an error. */
  interrupt(): void;
  /** Refuses new connections, and ends every open one. */
  close(): Promise<void>;
}

/** Serves `/exec` and the others at `http.bind.to`; encrypted when there are `credentials`. */
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

/** Serves health and metrics at `http.min.bind.to`: every path answers. */
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

/** What a listener is made of. */
interface Listener {
  readonly application: Application;
  readonly config: Config;
  /** The most open connections, as configured now. */
  readonly limits: () => SlotLimits;
  /** `null`: plain text. */
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
    // The other loopback family, where the machine has it.
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
    // An import takes as long as it takes; stalled bodies have their own timer.
    requestTimeout: 0,
    keepAliveTimeout: config.get(KEYS.httpIdle),
    connectionsCheckingInterval: TIMER_CHECK_MS,
    insecureHTTPParser: false,
    // A missing Host header is answered by our own check.
    requireHostHeader: false,
    IncomingMessage: PlainRequest,
  };
  const server =
    credentials === null
      ? createServer(options, gate.handle)
      : createEncrypted(options, gate, credentials);
  // One more than is taken, so that it is seen.
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
    // Open connections keep what they agreed on.
    server.setSecureContext(next.options);
  });
  return server;
}

/** What a server can take over while it runs; connections that are open keep what they have. */
function applyLimits(server: LimitedServer, { config, limits }: Listener): void {
  // Node reads it for every new connection; its declarations know only the option.
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

/** Closes what is still open: every waiting client has its answer. */
async function closeServer(server: Server | SecureServer, gate: ConnectionGate): Promise<void> {
  // The server's own list lacks those whose handshake has not ended.
  setTimeout(() => {
    gate.cutAll();
  }, LAST_BYTES_MS);
  await stopListening(server);
}
