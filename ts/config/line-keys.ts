/** Keys for the line protocol. */
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
  lineHttpEnabled: bool('line.http.enabled', true, 'the line protocol over HTTP'),
  linePingVersion: text(
    'line.http.ping.version',
    'v2.7.4',
    'what /ping says in the header X-Influxdb-Version',
  ),
  lineCreateTables: bool(
    'line.auto.create.new.tables',
    true,
    'lines make the tables that are not there',
  ),
  lineCreateColumns: bool(
    'line.auto.create.new.columns',
    true,
    'lines add the columns that a table does not have',
  ),
  linePartitionBy: key(
    'line.default.partition.by',
    'choice',
    'DAY',
    parsePartition,
    'partitions of tables that lines make: HOUR, DAY, WEEK, MONTH, YEAR or NONE',
  ),
  lineLogMessage: bool(
    'line.log.message.on.error',
    true,
    'the log says why a line was refused, with the value; false: that one was',
  ),
  lineBodyLimit: size(
    'line.http.max.body.size',
    '128M',
    'one request of lines, inflated; its rows in memory may take four times as much',
    OWN,
  ),
  lineBodiesLimit: size(
    'line.http.max.open.bodies.size',
    '512M',
    'all requests of lines that are being read or committed, inflated; more are answered 503',
    OWN,
  ),
  lineLimit: size('line.http.max.measurement.size', '16M', 'one line over HTTP', OWN),
  // Over TCP
  lineTcpEnabled: bool(
    'line.tcp.enabled',
    true,
    'the line protocol over TCP; where http.user asks for logins it needs line.tcp.auth.db.path',
  ),
  lineTcpBindTo: endpoint('line.tcp.net.bind.to', '9009', 'address of the line protocol over TCP'),
  lineTcpKeys: text(
    'line.tcp.auth.db.path',
    '',
    'file of public keys, a line each: `name ec-p-256-sha256 x y`; senders prove that they have ' +
      'the private one; with acl.enabled those of CREATE TOKEN TYPE JWK count without it; a ' +
      'relative path begins at the root',
    RELOAD,
  ),
  lineTcpConnections: integer(
    'line.tcp.net.connection.limit',
    '256',
    'open connections of the line protocol over TCP',
    RELOAD,
  ),
  lineTcpAddressConnections: integer(
    'line.tcp.net.connection.limit.per.address',
    '0',
    'open connections of one other machine; 0 is a quarter of line.tcp.net.connection.limit',
    { ...OWN, ...RELOAD },
  ),
  lineTcpIdle: duration(
    'line.tcp.net.connection.timeout',
    '5m',
    'a sender that sends nothing for so long is closed',
  ),
  lineTcpLimit: size('line.tcp.max.measurement.size', '32K', 'one line over TCP'),
  lineTcpUnit: choice(
    'line.tcp.timestamp',
    'n',
    ['n', 'u', 'ms', 's', 'm', 'h'],
    'unit of timestamps over TCP that do not say their own',
  ),
  lineTcpDisconnect: bool(
    'line.tcp.disconnect.on.error',
    true,
    'a wrong line over TCP closes its connection; false: it is left out',
  ),
  lineTcpInterval: duration(
    'line.tcp.commit.interval.default',
    '1s',
    'between two commits of a connection, unless its lines are many: then ' +
      'cairo.max.uncommitted.rows, or what comes while the commit before runs, is one',
  ),
  lineTcpOpen: size(
    'line.tcp.max.open.size',
    '64M',
    'bytes of all connections that wait for their commit; above it nothing more is read',
    OWN,
  ),
  lineTcpTls: bool(
    'line.tcp.tls.enabled',
    false,
    'encrypt the line protocol over TCP; unset, tls.enabled counts',
  ),
  lineTcpTlsCertificate: text(
    'line.tcp.tls.cert.path',
    '',
    'of the line protocol over TCP, wins over tls.cert.path',
    RELOAD,
  ),
  lineTcpTlsKey: text(
    'line.tcp.tls.private.key.path',
    '',
    'of the line protocol over TCP, wins over tls.private.key.path',
    RELOAD,
  ),
};
