/** Keys for query results over the columnar protocol (QWP). */
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
  egressEnabled: bool('qwp.egress.enabled', true, 'results over the columnar protocol', OWN),
  egressRequestLimit: size(
    'qwp.egress.max.request.size',
    '2M',
    'one message of a client: a statement and its parameters; longer ones end the connection',
    OWN,
  ),
  egressStatementLimit: size(
    'qwp.egress.max.sql.size',
    '1M',
    'the text of a statement over the columnar protocol',
    OWN,
  ),
  egressBindsLimit: integer(
    'qwp.egress.max.binds',
    '1024',
    'parameters of a statement over the columnar protocol',
    OWN,
  ),
  egressBatchRows: integer(
    'qwp.egress.max.batch.rows',
    '65536',
    'rows of a message of results; a client may ask for fewer, never for more',
    OWN,
  ),
  egressBatchSize: size(
    'qwp.egress.batch.size',
    '512K',
    'a message of results is sent once it has so many bytes, before it is compressed',
    OWN,
  ),
  egressCompressionLevel: key(
    'qwp.egress.compression.force.level',
    'integer',
    '0',
    parseLevel,
    'level of zstd for clients that take it, from 1 to 9; 0: the level that the client asks for',
    { reloadable: true },
  ),
};
