/**
 * The composition root: reads the configuration, opens the database, starts all listeners, and
 * stops them in reverse order. Only the command line and the embedded library import it.
 */
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

import { Access, type Administrator, allowRefreshes, refusedStatements } from './access/index.js';
import { readOidcSettings } from './auth/index.js';
import {
  type Config,
  type Endpoint,
  engineOptions,
  type Key,
  KEYS,
  loadConfig,
  type Reloaded,
} from './config/index.js';
import type { Copy } from './copy/index.js';
import { type CopyDirectories, copyDirectories, openCopy, openTexts } from './copy-directories.js';
import { makeDirectory } from './directories.js';
import { loadDemoData } from './demo-data.js';
import { adviseOnLogins, createLogins } from './logins.js';
import { Encryption } from './encryption.js';
import { type Database, DatabaseError, openDatabase } from './engine/index.js';
import {
  type HttpServices,
  loadStaticFiles,
  type RunningHttp,
  startHttp,
  startMinimalHttp,
  type WireEndpoint,
} from './http/index.js';
import {
  KeyFileError,
  lineTcpRefusal,
  type RunningLineTcp,
  startLineTcp,
} from './line-tcp/index.js';
import {
  createLogger,
  type ListenerName,
  LogFile,
  type Logger,
  ServerMetrics,
} from './observability/index.js';
import { Documents } from './mcp/documents.js';
import { plainTextListeners, refuseInsecureListeners } from './insecure-listeners.js';
import { type RunningPgWire, startPgWire } from './pgwire/index.js';
import { type TextShapeDetector, type Operations, SessionHost } from './session/index.js';
import { readStatement } from './sql/index.js';
import { type StopStep, stopServing } from './stop.js';
import { removeServerFile } from './server-file.js';
import { type Addresses, announce, OFF, statusSource, urlHost } from './server-status.js';
import { EXIT_CONFIG, packageVersion, reasonOf, rootInUse, StartError } from './start-error.js';

export interface ServeOptions {
  readonly root: string;
  /** Configuration file path; the default is `ROOT/conf/server.conf`. */
  readonly configFile?: string;
  readonly set?: readonly string[];
  readonly environment?: Readonly<Record<string, string | undefined>>;
  /** Whether to load the demonstration data set into an empty database. */
  readonly demo?: boolean;
  /** Writes log lines; the default is standard error. */
  readonly writeLog?: (line: string) => void;
  /** Receives progress messages from long steps. */
  readonly progress?: (text: string) => void;
}

export interface RunningServer {
  /** The HTTP address, such as `127.0.0.1:9000`; `off` if HTTP is disabled. */
  readonly httpAddress: string;
  readonly pgAddress: string;
  readonly database: Database;
  readonly logger: Logger;
  /** Whether HTTP is encrypted. */
  readonly httpIsSecure: boolean;
  /**
   * Reads the configuration and certificates again. If settings are unusable, logs them, does not
   * apply them, and returns false.
   */
  reload(): Promise<boolean>;
  /**
   * Refuses new work. Running work may finish within `shutdown.timeout` and is then cancelled.
   * Resolves when all resources are released. `step` receives the name of each step.
   */
  close(step?: (what: StopStep) => void): Promise<void>;
  /** `shutdown.timeout` in milliseconds. */
  readonly stopMs: number;
}

/**
 * Time within `shutdown.timeout` that is reserved for the last steps of a checkpoint, which cannot
 * be abandoned, and for the process exit.
 */
const END_MS = 2_000;
/** Minimum time for closing the database; a checkpoint that takes longer is abandoned. */
const MIN_CLOSE_MS = 200;

/** A running listener of any protocol. */
type Listener = RunningHttp | RunningPgWire | RunningLineTcp;

/** The active listeners. */
type Listeners = Map<ListenerName, Listener>;

/** `opened` is the database to serve; closing the server leaves it open. */
export async function startServer(
  options: ServeOptions,
  opened?: Database,
): Promise<RunningServer> {
  const config = loadServerConfig(options);
  const log = openLog(options, config);
  const { logger } = log;
  const encryption = readCertificates(config, logger);
  logNotices(config, logger);
  const directories = copyDirectories(options.root, config);
  const database = opened ?? (await openRoot(options.root, directories, config, logger));
  const listeners: Listeners = new Map();
  let copy: Copy | undefined;
  let access: Access | undefined;
  let sessions: SessionHost | undefined;
  const stopMs = config.get(KEYS.shutdownTimeout);
  const close = async (step: (what: StopStep) => void = () => undefined): Promise<void> => {
    const ends = performance.now() + stopMs - END_MS;
    encryption.close();
    removeServerFile(options.root);
    await stopServing({ listeners, stopWork: () => sessions?.stop(), stopMs, step });
    await copy?.close();
    await access?.close();
    step('the last checkpoint');
    const closeMs = Math.max(ends - performance.now(), MIN_CLOSE_MS);
    await (opened === undefined ? database.close(closeMs) : undefined);
    log.close();
  };
  try {
    if (options.demo === true) {
      await loadDemoData(database, options.progress ?? ((): void => undefined));
    }
    access = await openAccess(options.root, database, config, logger);
    const reloads = (): readonly Pick<Listener, 'reconfigure'>[] => [
      { reconfigure: async () => access?.directory.setAdministrator(administrator(config)) },
      ...listeners.values(),
    ];
    const operations: Operations = {
      reload_config: async () => {
        log.reopen();
        const reloaded = await reloadConfig(config, database, reloads(), logger);
        auditReload(access, reloaded);
        return reloaded !== null;
      },
      reload_tls: () => Promise.resolve(encryption.reload()),
    };
    const detectTextShape = openTexts(options.root, config);
    copy = openCopy(directories, database, config, { logger, guard: access, detectTextShape });
    const services = {
      status: statusSource(options.root, database),
      ...createServices({ database, copy, access, config, logger, operations, detectTextShape }),
      ...createMetrics(options.root, database, listeners),
      importRoot: directories.importRoot,
    };
    ({ sessions } = services);
    const addresses = await startListeners(services, options.root, encryption, listeners);
    encryption.watch();
    announce(options.root, { ...services, encryption, addresses });
    const { http: httpAddress, pg: pgAddress } = addresses;
    const httpIsSecure = encryption.of('http') !== null;
    const reload = async (): Promise<boolean> => {
      const reloaded = await operations.reload_config();
      return (await operations.reload_tls()) && reloaded;
    };
    return { httpAddress, pgAddress, database, logger, httpIsSecure, reload, close, stopMs };
  } catch (error) {
    await close().catch(() => undefined);
    throw asStartError(error);
  }
}

interface Log {
  readonly logger: Logger;
  reopen(): void;
  close(): void;
}

function openLog({ root, writeLog }: ServeOptions, config: Config): Log {
  const fallback = writeLog ?? ((line: string): unknown => process.stderr.write(line));
  const name = config.get(KEYS.logFile);
  const options = {
    path: resolve(root, name),
    maxBytes: config.get(KEYS.logFileBytes),
    files: config.get(KEYS.logFileCount),
    fallback,
  };
  let file: LogFile | null;
  try {
    file = name === '' ? null : new LogFile(options);
  } catch (error) {
    const message = `log.file: cannot open '${options.path}': ${reasonOf(error)}`;
    throw new StartError(message, EXIT_CONFIG, { cause: error });
  }
  const logger = createLogger({
    level: () => config.get(KEYS.logLevel),
    format: config.get(KEYS.logFormat),
    write: (line) => {
      (file ?? { write: fallback }).write(line);
    },
  });
  return { logger, reopen: () => file?.reopen(), close: () => file?.close() };
}

function loadServerConfig(options: ServeOptions): Config {
  try {
    return loadConfig({
      file: options.configFile ?? join(options.root, 'conf', 'server.conf'),
      fileRequired: options.configFile !== undefined,
      environment: options.environment ?? process.env,
      set: options.set ?? [],
    });
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new StartError(message, EXIT_CONFIG, { cause: error });
  }
}

/**
 * Refuses configurations that allow unintended access, and checks that all certificates are usable.
 */
function readCertificates(config: Config, logger: Logger): Encryption {
  try {
    refuseInsecureListeners(config);
    readOidcSettings(config);
    return new Encryption(config, logger);
  } catch (error) {
    if (error instanceof StartError) {
      throw error;
    }
    throw new StartError(reasonOf(error), EXIT_CONFIG, { cause: error });
  }
}

/**
 * Applies the reloadable settings. If one of them is invalid, applies no setting and returns
 * `null`.
 */
async function reloadConfig(
  config: Config,
  database: Database,
  listeners: readonly Pick<Listener, 'reconfigure'>[],
  logger: Logger,
): Promise<Reloaded | null> {
  let reloaded: Reloaded;
  try {
    reloaded = config.reload(refuseInsecureListeners);
  } catch (error) {
    logger.error('configuration_refused', { reason: reasonOf(error) });
    return null;
  }
  showParameters(database, config);
  for (const listener of listeners) {
    await listener.reconfigure();
  }
  logger.info('configuration_reloaded', { ...reloaded });
  return reloaded;
}

function auditReload(access: Access | undefined, reloaded: Reloaded | null): void {
  if (reloaded !== null) {
    const { applied, waiting } = reloaded;
    const keys = { applied: applied.join(', '), waiting: waiting.join(', ') };
    access?.audit.write('configuration_reloaded', '', keys);
  }
}

function logNotices(config: Config, logger: Logger): void {
  for (const notice of config.notices) {
    logger.warn('configuration', { notice });
  }
  if (config.get(KEYS.insecurePublic)) {
    logger.warn('insecure', {
      notice: 'security.insecure.public=true: public addresses without a login are allowed',
    });
  }
  adviseOnLogins(config, logger);
  for (const address of plainTextListeners(config)) {
    logger.warn('plain_text', {
      notice: `${address}: passwords and rows are transferred unencrypted`,
    });
  }
  const refusal = lineTcpRefusal(config);
  if (config.get(KEYS.lineTcpEnabled) && refusal !== null) {
    logger.info('line_tcp_off', { notice: refusal });
  }
  if (process.getuid?.() === 0) {
    logger.warn('superuser', { notice: 'the server runs as root: use a separate account' });
  }
}

async function openRoot(
  root: string,
  directories: CopyDirectories,
  config: Config,
  logger: Logger,
): Promise<Database> {
  try {
    makeDirectory(root);
  } catch (error) {
    throw new StartError(`cannot use the root directory '${root}': ${reasonOf(error)}`, 1, {
      cause: error,
    });
  }
  const engine = logger.child('engine');
  try {
    return await openDatabase({
      ...engineOptions(config),
      root,
      ...directories,
      logSink: (lines) => {
        for (const line of lines) {
          engine.log(line.level, line.event, { component: line.component, ...line.fields });
        }
      },
    });
  } catch (error) {
    throw openFailure(root, error);
  }
}

function openFailure(root: string, error: unknown): StartError {
  if (error instanceof DatabaseError && error.code === 'RootLocked') {
    return rootInUse(root, error);
  }
  return new StartError(`cannot open the root directory '${root}': ${reasonOf(error)}`, 1, {
    cause: error,
  });
}

/** Sets the rows of SHOW PARAMETERS. */
function showParameters(database: Database, config: Config): void {
  database.setParameters(
    config.parameters().map((parameter) => ({
      key: parameter.name,
      environmentVariable: parameter.environmentName,
      value: parameter.value,
      source: parameter.source,
      sensitive: parameter.sensitive,
      reloadable: parameter.reloadable,
    })),
  );
}

/**
 * Opens access control. Returns `undefined` if it is off, in which case every user has all rights.
 */
async function openAccess(
  root: string,
  database: Database,
  config: Config,
  logger: Logger,
): Promise<Access | undefined> {
  if (!config.get(KEYS.aclEnabled)) {
    // A full disk must not prevent startup.
    await allowRefreshes(database).catch(() => undefined);
    return undefined;
  }
  return await Access.open({
    database,
    root,
    administrator: administrator(config),
    nameLengthMax: config.get(KEYS.aclNameLength),
    hashIterations: config.get(KEYS.aclHashIterations),
    tokenRefreshMs: config.get(KEYS.aclTokenRefresh),
    auditFiles: {
      fileBytes: config.get(KEYS.aclAuditSize),
      files: config.get(KEYS.aclAuditFiles),
    },
    logger: logger.child('access'),
  });
}

function administrator(config: Config): Administrator {
  return {
    name: config.get(KEYS.aclAdminUser),
    password: config.get(KEYS.aclAdminPassword),
    enabled: config.get(KEYS.aclAdminEnabled),
  };
}

interface ServerParts {
  readonly database: Database;
  readonly copy: Copy;
  readonly access: Access | undefined;
  readonly config: Config;
  readonly logger: Logger;
  readonly operations: Operations;
  readonly detectTextShape: TextShapeDetector;
}

type ServerFigures = Pick<HttpServices, 'metrics' | 'ingest' | 'statements'>;

function createMetrics(root: string, database: Database, listeners: Listeners): ServerFigures {
  const {
    registry: metrics,
    ingest,
    statements,
  } = new ServerMetrics({
    engine: () => ({ ...database.metrics() }),
    connections: (name) => listeners.get(name)?.connections ?? null,
    waitingLines: () => {
      const listener = listeners.get('line_tcp');
      return listener !== undefined && 'uncommittedBytes' in listener
        ? listener.uncommittedBytes
        : null;
    },
    root,
  });
  return { metrics, ingest, statements };
}

function createServices(
  parts: ServerParts,
): Omit<HttpServices, 'importRoot' | keyof ServerFigures> {
  const { database, copy, access, config, logger, operations, detectTextShape } = parts;
  showParameters(database, config);
  const sessions = new SessionHost({
    database,
    parse: readStatement,
    operations,
    detectTextShape,
    server: {
      Copy: copy.statements,
      Access: access?.statements ?? refusedStatements(database),
    },
    ...(access === undefined ? {} : { guard: access }),
    defaultTimeoutMs: config.get(KEYS.queryTimeout),
    maxTimeoutMs: config.get(KEYS.queryTimeoutMax),
    maxFeeds: () => config.get(KEYS.changesMaxFeeds),
  });
  const consoleDirectory = fileURLToPath(new URL('../console', import.meta.url));
  return {
    sessions,
    config,
    authenticator: createLogins(config, logger, access?.directory),
    ...(access === undefined ? {} : { directory: access.directory, observer: access }),
    logger,
    servesLinesOverTcp: servesLinesOverTcp(config),
    console: loadStaticFiles(consoleDirectory),
    documents: new Documents(documentDirectory()),
    version: packageVersion(),
  };
}

/** Returns the package's `docs` directory. */
function documentDirectory(): string {
  return fileURLToPath(new URL('../../docs', import.meta.url));
}

function servesLinesOverTcp(config: Config): boolean {
  return config.get(KEYS.lineTcpEnabled) && lineTcpRefusal(config) === null;
}

async function startListeners(
  services: HttpServices,
  root: string,
  encryption: Encryption,
  running: Listeners,
): Promise<Addresses> {
  const { config } = services;
  const start = async (
    name: ListenerName,
    { enabled, bindTo }: { readonly enabled: boolean; readonly bindTo: Key<Endpoint> },
    open: () => Promise<Listener>,
  ): Promise<string> => {
    if (!enabled) {
      return OFF;
    }
    const listener = await open().catch((error: unknown) => {
      throw listenFailure(error, config, bindTo);
    });
    running.set(name, listener);
    return listener.address;
  };
  let wire: WireEndpoint | null = null;
  const on = (enabled: Key<boolean>, bindTo: Key<Endpoint>): Parameters<typeof start>[1] => ({
    enabled: config.get(enabled),
    bindTo,
  });
  const http = await start('http', on(KEYS.httpEnabled, KEYS.httpBindTo), () =>
    startHttp({ ...services, wire: () => wire }, encryption.of('http')),
  );
  const min = await start('http_min', on(KEYS.httpMinEnabled, KEYS.httpMinBindTo), () =>
    startMinimalHttp(services, encryption.of('http.min')),
  );
  const pg = await start('pgwire', on(KEYS.pgEnabled, KEYS.pgBindTo), async () => {
    const credentials = encryption.of('pg');
    const listener = await startPgWire(services, credentials);
    wire = { port: listener.port, isEncrypted: credentials !== null };
    return listener;
  });
  const lines = { enabled: services.servesLinesOverTcp, bindTo: KEYS.lineTcpBindTo };
  const line = await start('line_tcp', lines, () =>
    startLineTcp(
      { ...services, metrics: services.ingest.of('line_tcp'), root },
      encryption.of('line.tcp'),
    ),
  );
  return { http, http_min: min, pg, line };
}

function asStartError(error: unknown): StartError {
  if (error instanceof StartError) {
    return error;
  }
  if (error instanceof KeyFileError) {
    return new StartError(error.message, EXIT_CONFIG, { cause: error });
  }
  return new StartError(reasonOf(error), 1, { cause: error });
}

const LISTEN_REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'the port is already in use',
  EADDRNOTAVAIL: 'this machine does not have the address',
};

/** Names the address and its configuration key. */
function listenFailure(error: unknown, config: Config, bindTo: Key<Endpoint>): unknown {
  if (!(error instanceof Error && 'code' in error && 'syscall' in error)) {
    return error;
  }
  const { host, port } = config.get(bindTo);
  const address = `${host === null ? '127.0.0.1' : urlHost(host)}:${port}`;
  const reason = LISTEN_REASONS[String(error.code)] ?? reasonOf(error);
  const message = `cannot listen on ${address}: ${reason}, change ${bindTo.name}`;
  return new StartError(message, 1, { cause: error });
}
