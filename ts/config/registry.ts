/**
 * Every configuration key that has an effect, with its name, type, default and documentation. The
 * loader, `docs/configuration.md` and `SHOW PARAMETERS` share this list. A key that also exists in
 * QuestDB has the same name.
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
import { LOG_KEYS } from './log-keys.js';
import { MCP_KEYS } from './mcp-keys.js';
import { NOTEBOOK_KEYS } from './notebook-keys.js';
import { QWP_KEYS } from './qwp-keys.js';
import { OIDC_KEYS } from './oidc-keys.js';
import { parseInteger, parseList, parsePositive, parseRowCount, ValueError } from './units.js';

export type { Key } from './key.js';

/** A header can be detected only if at least one data line follows it. */
const ANALYSED_LINES_MIN = 2;
const ANALYSED_LINES_MAX = 1000;

function parseAnalysedLines(text: string): number {
  const lines = parseInteger(text);
  if (lines < ANALYSED_LINES_MIN) {
    throw new ValueError(`expected at least ${ANALYSED_LINES_MIN} lines, found '${text}'`);
  }
  return Math.min(lines, ANALYSED_LINES_MAX);
}

/** Excludes characters that have a special meaning in patterns, query strings or headers. */
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

/** Configuration keys, keyed by their name in the code. */
export const KEYS = {
  // HTTP
  httpEnabled: bool('http.enabled', true, 'enable the HTTP server'),
  httpBindTo: endpoint(
    'http.bind.to',
    '9000',
    'HTTP address, host:port; a port alone binds to loopback; port 0 selects a free port',
    { aliases: ['http.net.bind.to'] },
  ),
  httpUser: text('http.user', '', 'HTTP user name; with a password, it enables login'),
  httpPassword: secret('http.password', '', 'HTTP password'),
  httpReadOnly: bool('http.security.readonly', false, 'reject all writes over HTTP'),
  httpConnections: integer(
    'http.net.connection.limit',
    '1024',
    'maximum number of open connections',
    RELOAD,
  ),
  httpAddressConnections: integer(
    'http.net.connection.limit.per.address',
    '0',
    'maximum number of connections per remote address; 0 means a quarter of ' +
      'http.net.connection.limit',
    { ...OWN, ...RELOAD },
  ),
  httpConnectionsWithoutLogin: integer(
    'http.net.connection.limit.without.login',
    '0',
    'maximum number of connections without a login; above it, a new connection closes the ' +
      'longest-idle one; 0 means half of http.net.connection.limit',
    { ...OWN, ...RELOAD },
  ),
  httpIdle: duration('http.net.connection.timeout', '60s', 'maximum connection idle time'),
  httpHeaderTimeout: duration(
    'http.header.timeout',
    '10s',
    'maximum time to receive the request line and headers',
    OWN,
  ),
  httpBodyTimeout: duration(
    'http.body.timeout',
    '30s',
    'maximum pause in a request body before the request is rejected',
    OWN,
  ),
  httpSendTimeout: duration(
    'http.send.timeout',
    '60s',
    'a client that reads nothing for this long is disconnected and its query cancelled',
    OWN,
  ),
  httpHandoffs: bool(
    'http.fast.path.enabled',
    true,
    'use the fast path for clients that repeat a query with different literals',
    OWN,
  ),
  httpServerKeepAlive: bool(
    'http.server.keep.alive',
    true,
    'keep connections open after a response; false closes them',
  ),
  httpKeepAlive: seconds(
    'http.keep-alive.timeout',
    '5',
    'timeout in seconds in the Keep-Alive header',
  ),
  httpKeepAliveMax: integer('http.keep-alive.max', '10000', 'max in the Keep-Alive header'),
  httpHeaderBytes: size(
    'http.request.header.buffer.size',
    '64K',
    'maximum size of the request line and headers',
    RELOAD,
  ),
  httpAllowedHosts: list(
    'http.allowed.hosts',
    'names accepted in the Host header besides loopback names and the bound address, ' +
      'while no login is configured',
    OWN,
  ),
  httpCorsOrigins: list('http.cors.origins', 'origins that may send requests to this server', OWN),
  httpMinEnabled: bool('http.min.enabled', true, 'serve health and metrics on a separate port'),
  httpMinBindTo: endpoint('http.min.bind.to', '9003', 'address for health and metrics', {
    aliases: ['http.min.net.bind.to'],
  }),
  httpMinConnections: integer(
    'http.min.net.connection.limit',
    '16',
    'maximum number of open connections for health and metrics',
  ),
  httpSettingsReadOnly: bool(
    'http.settings.readonly',
    false,
    'reject changes to preferences through /settings; http.security.readonly also rejects them',
  ),
  httpContextConsole: path(
    'http.context.web.console',
    '/',
    'path of the console; prefix of all other paths that are not set, except those of the ' +
      'line protocol',
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
    'paths of the line protocol',
  ),
  ...LINE_KEYS,
  ...EGRESS_KEYS,
  ...CHANGES_KEYS,
  ...LIVE_KEYS,
  ...QWP_KEYS,
  ...MCP_KEYS,
  ...NOTEBOOK_KEYS,
  metricsEnabled: bool('metrics.enabled', false, 'serve Prometheus metrics at /metrics'),
  textAnalysisLines: key(
    'http.text.analysis.max.lines',
    'integer',
    '1000',
    parseAnalysedLines,
    'number of lines analysed to detect the delimiter, header and types of an upload; 2 to 1000; ' +
      'greater values count as 1000',
  ),
  textLineLimit: size('http.text.line.limit', '16M', 'maximum size of a line in an upload', {
    ...OWN,
    engine: 'maxLineBytes',
  }),
  // Encryption
  tls: bool('tls.enabled', false, 'encrypt every endpoint with TLS 1.2 or later'),
  tlsCertificate: text(
    'tls.cert.path',
    '',
    'PEM file with the certificate, then its chain to the root; reloaded when it changes',
    RELOAD,
  ),
  tlsKey: text(
    'tls.private.key.path',
    '',
    'PEM file with the private key, without a password; reloaded when it changes',
    RELOAD,
  ),
  httpTls: bool('http.tls.enabled', false, 'encrypt HTTP; if unset, tls.enabled applies'),
  httpTlsCertificate: text(
    'http.tls.cert.path',
    '',
    'certificate for HTTP; overrides tls.cert.path',
    RELOAD,
  ),
  httpTlsKey: text(
    'http.tls.private.key.path',
    '',
    'private key for HTTP; overrides tls.private.key.path',
    RELOAD,
  ),
  httpMinTls: bool(
    'http.min.tls.enabled',
    false,
    'encrypt health and metrics; if unset, tls.enabled applies',
  ),
  httpMinTlsCertificate: text(
    'http.min.tls.cert.path',
    '',
    'certificate for health and metrics; overrides tls.cert.path',
    RELOAD,
  ),
  httpMinTlsKey: text(
    'http.min.tls.private.key.path',
    '',
    'private key for health and metrics; overrides tls.private.key.path',
    RELOAD,
  ),
  pgTls: bool(
    'pg.tls.enabled',
    false,
    'offer encryption to clients of the PostgreSQL wire protocol; if unset, tls.enabled applies',
    OWN,
  ),
  pgTlsCertificate: text(
    'pg.tls.cert.path',
    '',
    'certificate for the PostgreSQL wire protocol; overrides tls.cert.path',
    {
      ...OWN,
      ...RELOAD,
    },
  ),
  pgTlsKey: text(
    'pg.tls.private.key.path',
    '',
    'private key for the PostgreSQL wire protocol; overrides tls.private.key.path',
    { ...OWN, ...RELOAD },
  ),
  requireTls: bool(
    'security.require.tls',
    false,
    'require encryption for other machines: addresses that they can reach must be encrypted, and ' +
      'the PostgreSQL wire protocol rejects unencrypted sessions from them',
    OWN,
  ),
  // PostgreSQL wire protocol
  pgEnabled: bool('pg.enabled', true, 'enable the PostgreSQL wire protocol'),
  pgBindTo: endpoint('pg.net.bind.to', '8812', 'address of the PostgreSQL wire protocol'),
  pgUser: text('pg.user', 'admin', 'user name for the PostgreSQL wire protocol', RELOAD),
  pgPassword: secret('pg.password', 'quest', 'password for the PostgreSQL wire protocol', RELOAD),
  pgReadOnlyEnabled: bool(
    'pg.readonly.user.enabled',
    false,
    'enable a second, read-only user',
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
  pgReadOnly: bool('pg.security.readonly', false, 'reject writes over PostgreSQL'),
  pgConnections: integer(
    'pg.net.connection.limit',
    '512',
    'maximum number of open connections',
    RELOAD,
  ),
  pgAddressConnections: integer(
    'pg.net.connection.limit.per.address',
    '0',
    'maximum number of connections per remote address; 0 means a quarter of ' +
      'pg.net.connection.limit',
    { ...OWN, ...RELOAD },
  ),
  pgConnectionsWithoutLogin: integer(
    'pg.net.connection.limit.without.login',
    '0',
    'maximum number of connections without a login; above it, a new connection closes the ' +
      'longest-idle one; 0 means half of pg.net.connection.limit',
    { ...OWN, ...RELOAD },
  ),
  pgIdle: duration('pg.net.connection.timeout', '5m', 'maximum session idle time'),
  pgHandoffs: bool(
    'pg.fast.path.enabled',
    true,
    'use the fast path for clients that only execute prepared queries',
    OWN,
  ),
  pgStatements: integer(
    'pg.named.statement.limit',
    '1000',
    'maximum number of prepared statements per session',
    RELOAD,
  ),
  pgMessageBytes: size('pg.recv.buffer.size', '64M', 'maximum size of a client message', RELOAD),
  pgAuthMethod: choice(
    'pg.auth.method',
    'scram',
    ['scram', 'cleartext'],
    'password authentication method',
    OWN,
  ),
  // Engine
  root: choice('cairo.root', 'db', ['db'], 'data directory under the root; cannot be changed'),
  commitMode: choice(
    'cairo.commit.mode',
    'sync',
    ['sync', 'async', 'nosync', 'adaptive'],
    'when a commit is synced to disk: sync before the response, async shortly after it, nosync ' +
      'when the operating system writes it',
    { engine: 'commitMode' },
  ),
  ttlByClock: bool(
    'cairo.ttl.use.wall.clock',
    true,
    'prevent rows with future timestamps from expiring rows that are recent by the wall clock',
    { engine: 'ttlByClock' },
  ),
  keepGenerations: integer(
    'cairo.keep.generations',
    '2',
    'number of manifests to keep: with 2, a damaged manifest is recovered from the previous one, ' +
      'whose files are kept for one second; with 1, it is not recovered',
    { ...OWN, engine: 'keepGenerations' },
  ),
  verify: choice(
    'cairo.verify',
    'first',
    ['open', 'first', 'off'],
    'when segment checksums are verified: open verifies everything at start, first verifies a ' +
      'column when it is first read, off disables verification',
    { ...OWN, engine: 'verify' },
  ),
  diskWatermark: size(
    'disk.watermark',
    '0',
    'free disk space below which writes are rejected, until 1.4 times as much is free; 0 means ' +
      '5 % of the disk, at most 1 GiB',
    { ...OWN, engine: 'diskWatermarkBytes' },
  ),
  diskReserve: size(
    'disk.reserve',
    '64M',
    'disk space reserved for drops and the subsequent checkpoint on a full disk; at most 1/32 of ' +
      'the disk',
    { ...OWN, engine: 'diskReserveBytes' },
  ),
  spillLimit: size(
    'spill.limit',
    '0',
    'maximum total size of temporary files across all queries; 0 means a quarter of the free ' +
      'disk space',
    { ...OWN, engine: 'spillLimitBytes' },
  ),
  unwrittenLimit: size(
    'cairo.unwritten.limit',
    '0',
    'maximum size of rows that exist only in memory and the log: above half of it, writes are ' +
      'slowed; above all of it, writes are rejected until a checkpoint has written the rows; ' +
      '0 means an eighth of the memory',
    { ...OWN, engine: 'unwrittenLimitBytes' },
  ),
  maxTables: integer('cairo.max.tables', '50000', 'maximum tables', {
    ...OWN,
    engine: 'maxTables',
  }),
  maxPartitions: integer(
    'cairo.max.partitions',
    '100000',
    'maximum number of partitions per table',
    {
      ...OWN,
      engine: 'maxPartitions',
    },
  ),
  maxColumns: integer('cairo.max.columns', '4096', 'maximum number of columns per table', {
    ...OWN,
    engine: 'maxColumns',
  }),
  maxCellBytes: size('cairo.max.cell.size', '64M', 'maximum size of a string or BINARY value', {
    ...OWN,
    engine: 'maxCellBytes',
  }),
  maxArrayElements: integer(
    'cairo.max.array.element.count',
    '10000000',
    'maximum number of elements per array in a column; no array can have more than 10000000',
    { engine: 'maxArrayElements' },
  ),
  copyRoot: text(
    'cairo.sql.copy.root',
    'import',
    'the only directory that COPY … FROM, read_parquet, read_csv and read_json can read, ' +
      'relative to the root',
  ),
  copyExportRoot: text(
    'cairo.sql.copy.export.root',
    'export',
    'the only directory that COPY … TO can write to, relative to the root',
  ),
  copyLogRetention: key(
    'cairo.sql.copy.log.retention.days',
    'integer',
    '3',
    parsePositive,
    'retention in days of sys.text_import_log and sys.copy_export_log; set when they are created',
  ),
  copyQueue: integer('cairo.sql.copy.queue.capacity', '32', 'maximum number of waiting COPY jobs'),
  copyBuffer: size('cairo.sql.copy.buffer.size', '2M', 'read buffer size for COPY … FROM'),
  maxUncommittedRows: key(
    'cairo.max.uncommitted.rows',
    'integer',
    '500000',
    parseRowCount,
    'default `maxUncommittedRows` for new tables: number of imported rows buffered in memory',
    { engine: 'maxUncommittedRows' },
  ),
  o3MaxLag: duration(
    'cairo.o3.max.lag',
    '10m',
    'default `o3MaxLag` for new tables: how late imported rows usually arrive',
    { engine: 'o3MaxLagMs' },
  ),
  queryTimeout: duration(
    'query.timeout',
    '60s',
    'statement timeout if the client does not set one',
  ),
  queryTimeoutMax: duration('query.timeout.max', '1h', 'maximum timeout a client can set', OWN),
  memoryLimit: size(
    'memory.limit',
    '0',
    'maximum memory for the server: above 80 %, new queries wait and writes are slowed; above ' +
      '90 %, the largest query is cancelled and writes are rejected; 0 means all memory of the ' +
      'machine or of its control group',
    { ...OWN, engine: 'processMemoryBytes' },
  ),
  queryMemory: size(
    'query.memory.pool',
    '0',
    'maximum memory for all queries; the queries of one user can use 3/4 of it; 0 means half of ' +
      'the memory',
    { ...OWN, engine: 'memoryLimitBytes' },
  ),
  queryMemoryLimit: size(
    'query.memory.limit',
    '0',
    'maximum memory that a query can use before it spills or fails; 0 means a quarter of the pool',
    { ...OWN, engine: 'queryMemoryLimitBytes' },
  ),
  queryConcurrency: integer(
    'query.concurrency',
    '0',
    'maximum number of concurrent queries, not counting cheap ones; others wait; a user ' +
      'without a running query can start one more, up to twice this number; 0 means twice the ' +
      'cores, at least 4',
    { ...OWN, engine: 'maxConcurrentQueries' },
  ),
  queryQueueLimit: integer('query.queue.limit', '256', 'maximum number of waiting queries', {
    ...OWN,
    engine: 'maxWaitingQueries',
  }),
  queryQueueWait: duration('query.queue.wait', '10s', 'maximum time a query waits to run', {
    ...OWN,
    engine: 'queueWaitMs',
  }),
  queryWorkers: integer(
    'shared.query.worker.count',
    '0',
    'number of query threads; 0 means the number of cores',
    { engine: 'workers' },
  ),
  policyCheck: duration(
    'storage.policy.check.interval',
    '5m',
    'how often the partitions of a table with a storage policy are checked',
    { engine: 'policyCheckMs' },
  ),
  viewsRefreshed: bool(
    'cairo.mat.view.enabled',
    true,
    'refresh materialized views after changes to their base tables; false stops all refreshes',
    { engine: 'refreshViews' },
  ),
  liveViews: bool(
    'cairo.live.view.enabled',
    true,
    'allow live views and refresh them; if false, existing live views are not refreshed',
    { engine: 'liveViews' },
  ),
  liveViewMemory: integer(
    'cairo.live.view.in.memory.max',
    '3600000000',
    'maximum IN MEMORY and FLUSH EVERY for a live view, in microseconds',
    { engine: 'liveViewMemoryMicros' },
  ),
  viewStateBytes: size(
    'cairo.view.state.limit',
    '0',
    'maximum memory that all materialized and live views retain between refreshes, so that a ' +
      'refresh reads only new rows; if memory runs out, a view must reread more rows; 0 means ' +
      '1/32 of the memory, at most 256M',
    { ...OWN, engine: 'viewStateBytes' },
  ),
  viewsAnswer: bool(
    'query.answers.from.views',
    true,
    'let SAMPLE BY and GROUP BY over a base table read its materialized views if possible',
    { ...OWN, engine: 'answersFromViews' },
  ),
  scanPartitionRows: integer(
    'query.scan.part.rows',
    '0',
    'minimum number of rows per scan partition and maximum per batch, for tests; 0 means the ' +
      'fastest',
    { engine: 'scanPartitionRows' },
  ),
  // Sign-on through an identity provider
  ...OIDC_KEYS,
  // Operation
  shutdownTimeout: duration(
    'shutdown.timeout',
    '5s',
    'shutdown grace period: new work is rejected; running work can finish, except ' +
      'in the last 3.8 s (at most 3/4 of the time), reserved for responses and the last ' +
      'checkpoint; a shutdown that takes longer is forced, with exit code 124',
    OWN,
  ),
  configStrict: bool(
    'config.validation.strict',
    false,
    'refuse to start if the configuration contains unknown keys',
  ),
  ...LOG_KEYS,
  insecurePublic: bool(
    'security.insecure.public',
    false,
    'allow addresses without a login that other machines can reach',
    OWN,
  ),
} as const satisfies Readonly<Record<string, Key<unknown>>>;

export const ALL_KEYS: readonly Key<unknown>[] = Object.values(KEYS);
