/** Keys of the line protocol. */
import { bool, key, OWN, size, text } from './key.js';
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
};
