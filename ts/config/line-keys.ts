/** Configuration keys for the line protocol. */
import { bool, choice, duration, endpoint, integer, key, OWN, RELOAD, size, text } from './key.js';
import { ValueError } from './units.js';

const PARTITIONS = ['HOUR', 'DAY', 'WEEK', 'MONTH', 'YEAR', 'NONE'];

function parsePartition(text: string): string {
  const name = text.trim().toUpperCase();
  if (!PARTITIONS.includes(name)) {
    throw new ValueError(`expected one of ${PARTITIONS.join(', ')}, found '${text}'`);
  }
  return name;
}

export const LINE_KEYS = {
  lineHttpEnabled: bool('line.http.enabled', true, 'enable the line protocol over HTTP'),
  linePingVersion: text(
    'line.http.ping.version',
    'v2.7.4',
    'value of the X-Influxdb-Version header in /ping responses',
  ),
  lineCreateTables: bool('line.auto.create.new.tables', true, 'create missing tables'),
  lineCreateColumns: bool('line.auto.create.new.columns', true, 'create missing columns'),
  linePartitionBy: key(
    'line.default.partition.by',
    'choice',
    'DAY',
    parsePartition,
    'partitioning of created tables: HOUR, DAY, WEEK, MONTH, YEAR or NONE',
  ),
  lineLogMessage: bool(
    'line.log.message.on.error',
    true,
    'log why a line was rejected, with the value; if false, log only that it was rejected',
  ),
  lineBodyLimit: size(
    'line.http.max.body.size',
    '128M',
    'maximum size of a decompressed request; its rows in memory can take four times as much',
    OWN,
  ),
  lineBodiesLimit: size(
    'line.http.max.open.bodies.size',
    '512M',
    'maximum total size of decompressed requests in progress; further requests receive status 503',
    OWN,
  ),
  lineLimit: size('line.http.max.measurement.size', '16M', 'maximum size of a line over HTTP', OWN),
  // Line protocol over TCP
  lineTcpEnabled: bool(
    'line.tcp.enabled',
    true,
    'enable the line protocol over TCP; if http.user is set, it requires line.tcp.auth.db.path',
  ),
  lineTcpBindTo: endpoint('line.tcp.net.bind.to', '9009', 'address of the line protocol over TCP'),
  lineTcpKeys: text(
    'line.tcp.auth.db.path',
    '',
    'file of public keys, one `name ec-p-256-sha256 x y` per line; senders prove that they have ' +
      'the private key; with acl.enabled, keys from CREATE TOKEN TYPE JWK do not need this file; ' +
      'a relative path is resolved against the root',
    RELOAD,
  ),
  lineTcpConnections: integer(
    'line.tcp.net.connection.limit',
    '256',
    'maximum number of open connections for the line protocol over TCP',
    RELOAD,
  ),
  lineTcpAddressConnections: integer(
    'line.tcp.net.connection.limit.per.address',
    '0',
    'maximum number of connections per remote address; 0 means a quarter of ' +
      'line.tcp.net.connection.limit',
    { ...OWN, ...RELOAD },
  ),
  lineTcpIdle: duration('line.tcp.net.connection.timeout', '5m', 'maximum connection idle time'),
  lineTcpLimit: size('line.tcp.max.measurement.size', '32K', 'maximum size of a line over TCP'),
  lineTcpUnit: choice(
    'line.tcp.timestamp',
    'n',
    ['n', 'u', 'ms', 's', 'm', 'h'],
    'unit of timestamps over TCP if they do not specify one',
  ),
  lineTcpDisconnect: bool(
    'line.tcp.disconnect.on.error',
    true,
    'close the connection after an invalid line over TCP; if false, skip the line',
  ),
  lineTcpInterval: duration(
    'line.tcp.commit.interval.default',
    '1s',
    'commit interval of a connection; at high rates, each commit contains up to ' +
      'cairo.max.uncommitted.rows rows, or the lines that arrived during the previous commit',
  ),
  lineTcpOpen: size(
    'line.tcp.max.open.size',
    '64M',
    'maximum size of uncommitted data across all connections; above it, the server stops reading',
    OWN,
  ),
  lineTcpTls: bool(
    'line.tcp.tls.enabled',
    false,
    'encrypt the line protocol over TCP; if unset, tls.enabled applies',
  ),
  lineTcpTlsCertificate: text(
    'line.tcp.tls.cert.path',
    '',
    'certificate for the line protocol over TCP; overrides tls.cert.path',
    RELOAD,
  ),
  lineTcpTlsKey: text(
    'line.tcp.tls.private.key.path',
    '',
    'private key for the line protocol over TCP; overrides tls.private.key.path',
    RELOAD,
  ),
};
