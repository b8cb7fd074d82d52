/** Configuration keys for query results over the columnar protocol (QWP). */
import { bool, integer, key, OWN, size } from './key.js';
import { parseInteger, ValueError } from './units.js';

const MAX_LEVEL = 9;

function parseLevel(text: string): number {
  const level = parseInteger(text);
  if (level > MAX_LEVEL) {
    throw new ValueError(`expected 0, or a level from 1 to ${MAX_LEVEL}, found '${text}'`);
  }
  return level;
}

export const EGRESS_KEYS = {
  egressEnabled: bool(
    'qwp.egress.enabled',
    true,
    'serve query results over the columnar protocol',
    OWN,
  ),
  egressRequestLimit: size(
    'qwp.egress.max.request.size',
    '2M',
    'maximum size of a request (statement and parameters); a larger one closes the connection',
    OWN,
  ),
  egressStatementLimit: size(
    'qwp.egress.max.sql.size',
    '1M',
    'maximum size of a statement over the columnar protocol',
    OWN,
  ),
  egressBindsLimit: integer(
    'qwp.egress.max.binds',
    '1024',
    'maximum number of parameters per statement over the columnar protocol',
    OWN,
  ),
  egressBatchRows: integer(
    'qwp.egress.max.batch.rows',
    '65536',
    'maximum number of rows per result message; a client can request fewer, but not more',
    OWN,
  ),
  egressBatchSize: size(
    'qwp.egress.batch.size',
    '512K',
    'uncompressed size at which a result message is sent',
    OWN,
  ),
  egressCompressionLevel: key(
    'qwp.egress.compression.force.level',
    'integer',
    '0',
    parseLevel,
    'zstd level, 1 to 9, for clients that accept zstd; 0 means the level that the client requests',
    { reloadable: true },
  ),
};
