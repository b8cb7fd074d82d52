/** Configuration keys for the columnar protocol (QWP). */
import { integer, OWN, size } from './key.js';

export const QWP_KEYS = {
  qwpMessageLimit: size(
    'http.receive.buffer.size',
    '2M',
    'limits columnar protocol messages to 14 bytes less than this, and to at most 16 MiB',
    { reloadable: true, aliases: ['http.recv.buffer.size'] },
  ),
  qwpMaxRows: integer(
    'qwp.max.rows.per.table',
    '1000000',
    'maximum number of rows per table in one columnar protocol message',
  ),
  qwpMaxTables: integer(
    'qwp.max.tables.per.connection',
    '10000',
    'maximum number of tables that a columnar protocol connection can reference',
  ),
  qwpWaitingRows: integer(
    'qwp.max.uncommitted.rows',
    '1000000',
    'maximum number of uncommitted rows per connection; at the limit, they are committed ' +
      'automatically',
  ),
  qwpWaitingBytes: size(
    'qwp.max.uncommitted.size',
    '256M',
    'maximum memory for these rows; above half of it, they are committed automatically',
    OWN,
  ),
  qwpOpenBytes: size(
    'qwp.max.open.size',
    '512M',
    'maximum memory for uncommitted rows and dictionaries of all connections; above it, rows are ' +
      'committed automatically, and messages that extend a dictionary must be sent again later',
    OWN,
  ),
  qwpDictionaryBytes: size(
    'qwp.max.dictionary.size',
    '64M',
    'maximum size of the symbol dictionary per columnar protocol connection',
    OWN,
  ),
};
