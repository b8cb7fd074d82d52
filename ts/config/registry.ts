/**
 * Every configuration key that has an effect, with its name, type, default and documentation. The
 * loader, `docs/configuration.md` and `SHOW PARAMETERS` share this list. Names are QuestDB's where
 * it has the key.
 */
import { ACL_KEYS } from './acl-keys.js';
import {
  bool,
  choice,
  duration,
  endpoint,
  integer,
  key,
  type Key,
  list,
  OWN,
  RELOAD,
  seconds,
  secret,
  size,
  text,
} from './key.js';
import { CHANGES_KEYS } from './changes-keys.js';
import { EGRESS_KEYS } from './egress-keys.js';
import { LINE_KEYS } from './line-keys.js';
import { LIVE_KEYS } from './live-keys.js';
import { MCP_KEYS } from './mcp-keys.js';
import { NOTEBOOK_KEYS } from './notebook-keys.js';
import { QWP_KEYS } from './qwp-keys.js';
import { OIDC_KEYS } from './oidc-keys.js';
import { parseInteger, parseList, parsePositive, parseRowCount, ValueError } from './units.js';

export type { Key } from './key.js';

/** A header can only be recognised next to a line of data. */
const ANALYSED_LINES_MIN = 2;
const ANALYSED_LINES_MAX = 1000;

function parseAnalysedLines(text: string): number {
  const lines = parseInteger(text);
  if (lines < ANALYSED_LINES_MIN) {
    throw new ValueError(`expected at least ${ANALYSED_LINES_MIN} lines, found '${text}'`);
  }
  return Math.min(lines, ANALYSED_LINES_MAX);
}

/** Excludes characters that have a meaning in a pattern, a query string or a header. */
const URL_PATH = /^(?:\/[A-Za-z0-9._~-]+)*\/?$/;

function parsePath(text: string): string {
  const path = text.trim();
  if (!path.startsWith('/') || !URL_PATH.test(path) || /\/\.{1,2}(?:\/|$)/.test(path)) {
    throw new ValueError(`expected a path such as /exec or /db/exec, found '${text}'`);
  }
  return path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path;
}

function path(name: string, fallback: string, doc: string): Key<string> {
  return key(name, 'text', fallback, parsePath, doc);
}

/** Keys by their name in the code. */
export const KEYS = {
  // HTTP
  httpEnabled: bool('http.enabled', true, 'HTTP server on or off'),
  httpBindTo: endpoint(
    'http.bind.to',
    '9000',
    'address of HTTP, host:port; a port alone binds loopback; port 0 picks a free one',
    { aliases: ['http.net.bind.to'] },
  ),
  httpUser: text('http.user', '', 'user of HTTP; with a password it switches login on'),
  httpPassword: secret('http.password', '', 'password of HTTP'),
  httpReadOnly: bool('http.security.readonly', false, 'HTTP refuses everything that writes'),
  httpConnections: integer('http.net.connection.limit', '1024', 'open connections', RELOAD),
  httpAddressConnections: integer(
    'http.net.connection.limit.per.address',
    '0',
    'open connections of one other machine; 0 is a quarter of http.net.connection.limit',
    { ...OWN, ...RELOAD },
  ),
  httpConnectionsWithoutLogin: integer(
    'http.net.connection.limit.without.login',
    '0',
    'open connections that have not logged in; a new one closes whichever of them has done ' +
      'nothing for longest; 0 is half of http.net.connection.limit',
    { ...OWN, ...RELOAD },
  ),
  httpIdle: duration('http.net.connection.timeout', '60s', 'a kept-alive connection idles so long'),
  httpHeaderTimeout: duration(
    'http.header.timeout',
    '10s',
    'time for a request line and headers',
    OWN,
  ),
  httpBodyTimeout: duration(
    'http.body.timeout',
    '30s',
    'a request whose body pauses for so long is given up',
    OWN,
  ),
  httpSendTimeout: duration(
    'http.send.timeout',
    '60s',
    'a client that takes nothing of its answer for so long is gone, and its query stopped',
    OWN,
  ),
  httpHandoffs: bool(
    'http.fast.path.enabled',
    true,
    'clients that only repeat a query with other literals are answered without JavaScript',
    OWN,
  ),
  httpServerKeepAlive: bool(
    'http.server.keep.alive',
    true,
    'connections stay open after an answer; false closes them',
  ),
  httpKeepAlive: seconds('http.keep-alive.timeout', '5', 'in the Keep-Alive header; seconds'),
  httpKeepAliveMax: integer('http.keep-alive.max', '10000', 'in the Keep-Alive header'),
  httpHeaderBytes: size(
    'http.request.header.buffer.size',
    '64K',
    'request line and headers',
    RELOAD,
  ),
  httpAllowedHosts: list(
    'http.allowed.hosts',
    'names a Host header may carry besides loopback names and the bound address, ' +
      'while no login is configured',
    OWN,
  ),
  httpCorsOrigins: list('http.cors.origins', 'origins whose pages may call this server', OWN),
  httpMinEnabled: bool('http.min.enabled', true, 'health and metrics on a port of their own'),
  httpMinBindTo: endpoint('http.min.bind.to', '9003', 'address of health and metrics', {
    aliases: ['http.min.net.bind.to'],
  }),
  httpMinConnections: integer(
    'http.min.net.connection.limit',
    '16',
    'open connections of health and metrics',
  ),
  httpSettingsReadOnly: bool(
    'http.settings.readonly',
    false,
    'preferences cannot be changed through /settings; nor can they with http.security.readonly',
  ),
  httpContextConsole: path(
    'http.context.web.console',
    '/',
    'path of the console; the other paths that are not set follow it, but those of the line ' +
      'protocol do not',
  ),
  httpContextExecute: path('http.context.execute', '/exec', 'path of /exec'),
  httpContextExport: path('http.context.export', '/exp', 'path of /exp'),
  httpContextImport: path('http.context.import', '/imp', 'path of /imp'),
  httpContextTableStatus: path('http.context.table.status', '/chk', 'path of /chk'),
  httpContextSettings: path('http.context.settings', '/settings', 'path of /settings'),
  httpContextWarnings: path('http.context.warnings', '/warnings', 'path of /warnings'),
  httpContextPing: path('http.context.ilp.ping', '/ping', 'path of /ping'),
  httpContextLineProtocol: key(
    'http.context.ilp',
    'list',
    '/write,/api/v2/write',
    (text) => parseList(text).map(parsePath),
    'paths that take lines of the line protocol',
  ),
  ...LINE_KEYS,
  ...EGRESS_KEYS,
  ...CHANGES_KEYS,
  ...LIVE_KEYS,
  ...QWP_KEYS,
  ...MCP_KEYS,
  ...NOTEBOOK_KEYS,
  metricsEnabled: bool('metrics.enabled', false, 'Prometheus text at /metrics'),
  textAnalysisLines: key(
    'http.text.analysis.max.lines',
    'integer',
    '1000',
    parseAnalysedLines,
    'lines of an upload that are looked at for delimiter, header and types; from 2 to 1000, more ' +
      'count as 1000',
  ),
  textLineLimit: size('http.text.line.limit', '16M', 'one line of an upload', {
    ...OWN,
    engine: 'maxLineBytes',
  }),
  // Encryption
  tls: bool('tls.enabled', false, 'encrypt every endpoint; TLS 1.2 at the least'),
  tlsCertificate: text(
    'tls.cert.path',
    '',
    'PEM file: the certificate, then those that lead to the root; read again when it changes',
    RELOAD,
  ),
  tlsKey: text(
    'tls.private.key.path',
    '',
    'PEM file: its private key, without a password; read again when it changes',
    RELOAD,
  ),
  httpTls: bool('http.tls.enabled', false, 'encrypt HTTP; unset, tls.enabled counts'),
  httpTlsCertificate: text('http.tls.cert.path', '', 'of HTTP, wins over tls.cert.path', RELOAD),
  httpTlsKey: text(
    'http.tls.private.key.path',
    '',
    'of HTTP, wins over tls.private.key.path',
    RELOAD,
  ),
  httpMinTls: bool(
    'http.min.tls.enabled',
    false,
    'encrypt health and metrics; unset, tls.enabled counts',
  ),
  httpMinTlsCertificate: text(
    'http.min.tls.cert.path',
    '',
    'of health and metrics, wins over tls.cert.path',
    RELOAD,
  ),
  httpMinTlsKey: text(
    'http.min.tls.private.key.path',
    '',
    'of health and metrics, wins over tls.private.key.path',
    RELOAD,
  ),
  pgTls: bool(
    'pg.tls.enabled',
    false,
    'offer encryption to clients of the wire protocol; unset, tls.enabled counts',
    OWN,
  ),
  pgTlsCertificate: text('pg.tls.cert.path', '', 'of the wire protocol, wins over tls.cert.path', {
    ...OWN,
    ...RELOAD,
  }),
  pgTlsKey: text(
    'pg.tls.private.key.path',
    '',
    'of the wire protocol, wins over tls.private.key.path',
    { ...OWN, ...RELOAD },
  ),
  requireTls: bool(
    'security.require.tls',
    false,
    'no plain text from other machines: an address they can reach must be encrypted, and the ' +
      'wire protocol refuses their sessions that are not',
    OWN,
  ),
  // PostgreSQL wire protocol
  pgEnabled: bool('pg.enabled', true, 'PostgreSQL wire protocol on or off'),
  pgBindTo: endpoint('pg.net.bind.to', '8812', 'address of the PostgreSQL wire protocol'),
  pgUser: text('pg.user', 'admin', 'user of the wire protocol', RELOAD),
  pgPassword: secret('pg.password', 'quest', 'password of the wire protocol', RELOAD),
  pgReadOnlyEnabled: bool(
    'pg.readonly.user.enabled',
    false,
    'a second user who can only read',
    RELOAD,
  ),
  pgReadOnlyUser: text('pg.readonly.user', 'user', 'name of the second user', RELOAD),
  pgReadOnlyPassword: secret(
    'pg.readonly.password',
    'quest',
    'password of the second user',
    RELOAD,
  ),
  ...ACL_KEYS,
  pgReadOnly: bool('pg.security.readonly', false, 'the wire protocol refuses writes'),
  pgConnections: integer('pg.net.connection.limit', '512', 'open connections', RELOAD),
  pgAddressConnections: integer(
    'pg.net.connection.limit.per.address',
    '0',
    'open connections of one other machine; 0 is a quarter of pg.net.connection.limit',
    { ...OWN, ...RELOAD },
  ),
  pgConnectionsWithoutLogin: integer(
    'pg.net.connection.limit.without.login',
    '0',
    'open connections that have not logged in; a new one closes whichever of them has done ' +
      'nothing for longest; 0 is half of pg.net.connection.limit',
    { ...OWN, ...RELOAD },
  ),
  pgIdle: duration('pg.net.connection.timeout', '5m', 'a session idles so long'),
  pgHandoffs: bool(
    'pg.fast.path.enabled',
    true,
    'clients that only execute prepared queries are answered without JavaScript',
    OWN,
  ),
  pgStatements: integer(
    'pg.named.statement.limit',
    '1000',
    'prepared statements of a session',
    RELOAD,
  ),
  pgMessageBytes: size('pg.recv.buffer.size', '64M', 'one message of a client', RELOAD),
  pgAuthMethod: choice(
    'pg.auth.method',
    'scram',
    ['scram', 'cleartext'],
    'how a password is asked for',
    OWN,
  ),
  // Engine
  root: choice(
    'cairo.root',
    'db',
    ['db'],
    'folder of the data below the root; no other is possible',
  ),
  commitMode: choice(
    'cairo.commit.mode',
    'sync',
    ['sync', 'async', 'nosync', 'adaptive'],
    'when a commit is on disk: sync before the answer, async soon after, nosync when the ' +
      'operating system likes',
    { engine: 'commitMode' },
  ),
  ttlByClock: bool(
    'cairo.ttl.use.wall.clock',
    true,
    'rows of the future do not end the time to live of rows the clock still keeps',
    { engine: 'ttlByClock' },
  ),
  keepGenerations: integer(
    'cairo.keep.generations',
    '2',
    'manifests kept: with 2 a damaged one is made good from the one before, whose files stay ' +
      'for a second; with 1 it is not',
    { ...OWN, engine: 'keepGenerations' },
  ),
  verify: choice(
    'cairo.verify',
    'first',
    ['open', 'first', 'off'],
    'when checksums of segments are compared: open reads everything at start, first compares a ' +
      'column when it is first read, off never does',
    { ...OWN, engine: 'verify' },
  ),
  diskWatermark: size(
    'disk.watermark',
    '0',
    'free bytes on the disk below which writes stop, they go on above 1.4 times as much; 0 is ' +
      '5 % of the disk, 1 GiB at most',
    { ...OWN, engine: 'diskWatermarkBytes' },
  ),
  diskReserve: size(
    'disk.reserve',
    '64M',
    'room kept for drops and the checkpoint after them on a full disk; 1 part in 32 of the ' +
      'disk at most',
    { ...OWN, engine: 'diskReserveBytes' },
  ),
  spillLimit: size(
    'spill.limit',
    '0',
    'bytes all queries may keep in temporary files; 0 is a quarter of the free disk',
    { ...OWN, engine: 'spillLimitBytes' },
  ),
  unwrittenLimit: size(
    'cairo.unwritten.limit',
    '0',
    'rows that only memory and the log hold: above half of it writes are slowed, above all of ' +
      'it refused, until a checkpoint has written them; 0 is an eighth of the memory',
    { ...OWN, engine: 'unwrittenLimitBytes' },
  ),
  maxTables: integer('cairo.max.tables', '50000', 'tables', { ...OWN, engine: 'maxTables' }),
  maxPartitions: integer('cairo.max.partitions', '100000', 'partitions of a table', {
    ...OWN,
    engine: 'maxPartitions',
  }),
  maxColumns: integer('cairo.max.columns', '4096', 'columns of a table', {
    ...OWN,
    engine: 'maxColumns',
  }),
  maxCellBytes: size('cairo.max.cell.size', '64M', 'one text or BINARY value in a column', {
    ...OWN,
    engine: 'maxCellBytes',
  }),
  maxArrayElements: integer(
    'cairo.max.array.element.count',
    '10000000',
    'elements of one array in a column; arrays of more than 10000000 are made nowhere',
    { engine: 'maxArrayElements' },
  ),
  copyRoot: text(
    'cairo.sql.copy.root',
    'import',
    'the only directory COPY … FROM, read_parquet, read_csv and read_json read, ' +
      'relative to the root',
  ),
  copyExportRoot: text(
    'cairo.sql.copy.export.root',
    'export',
    'the only directory COPY … TO writes to, relative to the root',
  ),
  copyLogRetention: key(
    'cairo.sql.copy.log.retention.days',
    'integer',
    '3',
    parsePositive,
    'days that sys.text_import_log and sys.copy_export_log are kept; read when they are made',
  ),
  copyQueue: integer('cairo.sql.copy.queue.capacity', '32', 'COPY jobs that wait for their turn'),
  copyBuffer: size('cairo.sql.copy.buffer.size', '2M', 'bytes COPY … FROM reads at once'),
  maxUncommittedRows: key(
    'cairo.max.uncommitted.rows',
    'integer',
    '500000',
    parseRowCount,
    'default of a new table, `maxUncommittedRows`: rows of an import held in memory',
    { engine: 'maxUncommittedRows' },
  ),
  o3MaxLag: duration(
    'cairo.o3.max.lag',
    '10m',
    'default of a new table, `o3MaxLag`: how late rows of an import usually come',
    { engine: 'o3MaxLagMs' },
  ),
  queryTimeout: duration('query.timeout', '60s', 'time of a statement whose client names none'),
  queryTimeoutMax: duration('query.timeout.max', '1h', 'time a client may ask for', OWN),
  memoryLimit: size(
    'memory.limit',
    '0',
    'bytes the server may use: above 80 % of it new queries wait and writes are slowed, above ' +
      '90 % the largest query is stopped and writes are refused; 0 is all the memory of the ' +
      'machine or of its control group',
    { ...OWN, engine: 'processMemoryBytes' },
  ),
  queryMemory: size(
    'query.memory.pool',
    '0',
    'bytes all queries may use together, those of one user three quarters of it; 0 is half of ' +
      'the memory',
    { ...OWN, engine: 'memoryLimitBytes' },
  ),
  queryMemoryLimit: size(
    'query.memory.limit',
    '0',
    'bytes one query may use before it spills or fails; 0 is a quarter of the pool',
    { ...OWN, engine: 'queryMemoryLimitBytes' },
  ),
  queryConcurrency: integer(
    'query.concurrency',
    '0',
    'queries that run at once, others wait, but for cheap ones; a user without any has one ' +
      'beside them, up to twice as many; 0 is twice the cores, at least 4',
    { ...OWN, engine: 'maxConcurrentQueries' },
  ),
  queryQueueLimit: integer('query.queue.limit', '256', 'most queries that wait', {
    ...OWN,
    engine: 'maxWaitingQueries',
  }),
  queryQueueWait: duration('query.queue.wait', '10s', 'time a query waits for its turn', {
    ...OWN,
    engine: 'queueWaitMs',
  }),
  queryWorkers: integer(
    'shared.query.worker.count',
    '0',
    'threads that run queries; 0 is the number of cores',
    { engine: 'workers' },
  ),
  policyCheck: duration(
    'storage.policy.check.interval',
    '5m',
    'time between two looks at the partitions of a table with a storage policy',
    { engine: 'policyCheckMs' },
  ),
  viewsRefreshed: bool(
    'cairo.mat.view.enabled',
    true,
    'materialized views follow their base tables; off leaves them as they are',
    { engine: 'refreshViews' },
  ),
  liveViews: bool(
    'cairo.live.view.enabled',
    true,
    'live views can be made and follow their base tables; off leaves those there are as they are',
    { engine: 'liveViews' },
  ),
  liveViewMemory: integer(
    'cairo.live.view.in.memory.max',
    '3600000000',
    'longest IN MEMORY and FLUSH EVERY of a live view, in microseconds',
    { engine: 'liveViewMemoryMicros' },
  ),
  viewStateBytes: size(
    'cairo.view.state.limit',
    '0',
    'bytes that all materialized and live views hold in memory between their refreshes, so that ' +
      'a refresh reads new rows alone; a view that finds no room reads more rows again; 0 is a ' +
      '32nd of the memory, 256M at most',
    { ...OWN, engine: 'viewStateBytes' },
  ),
  viewsAnswer: bool(
    'query.answers.from.views',
    true,
    'SAMPLE BY and GROUP BY over a base table read its materialized views where they can',
    { ...OWN, engine: 'answersFromViews' },
  ),
  scanPartRows: integer(
    'query.scan.part.rows',
    '0',
    'fewest rows of a part of a scan, and most of a batch; 0 is what is fastest; for tests',
    { engine: 'scanPartRows' },
  ),
  // Sign-on through an identity provider
  ...OIDC_KEYS,
  // Operation
  shutdownTimeout: duration(
    'shutdown.timeout',
    '5s',
    'time from a signal to the end of the process: new work is refused; what runs may end until ' +
      '3.8 s, or three quarters of it, are left for its answers and the last checkpoint, and is ' +
      'stopped then; a stop that takes longer is forced and ends with exit code 124',
    OWN,
  ),
  configStrict: bool('config.validation.strict', false, 'an unknown key stops the start'),
  logLevel: choice('log.level', 'info', ['error', 'warn', 'info', 'debug'], 'least level', OWN),
  insecurePublic: bool(
    'security.insecure.public',
    false,
    'allow an address other machines can reach without a login',
    OWN,
  ),
} as const satisfies Readonly<Record<string, Key<unknown>>>;

export const ALL_KEYS: readonly Key<unknown>[] = Object.values(KEYS);
