/** Configuration keys for the columnar protocol (QWP). */
import { integer, OWN, size } from './key.js';

export const QWP_KEYS = {
  qwpMessageLimit: size(
    'http.receive.buffer.size',
    '2M',
    'a message of the columnar protocol can have 14 bytes less than this, and at most 16 MiB',
    { reloadable: true, aliases: ['http.recv.buffer.size'] },
  ),
  qwpMaxRows: integer(
    'qwp.max.rows.per.table',
    '1000000',
    'maximum rows per table in one message of the columnar protocol',
  ),
  qwpMaxTables: integer(
    'qwp.max.tables.per.connection',
    '10000',
    'maximum tables that one connection of the columnar protocol can name',
  ),
  qwpWaitingRows: integer(
    'qwp.max.uncommitted.rows',
    '1000000',
    'maximum uncommitted rows of one connection; at the limit they are committed automatically',
  ),
  qwpWaitingBytes: size(
    'qwp.max.uncommitted.size',
    '256M',
    'maximum memory of these rows; from half of it they are committed automatically',
    OWN,
  ),
  qwpOpenBytes: size(
    'qwp.max.open.size',
    '512M',
    'maximum memory of uncommitted rows and dictionaries of all connections; above it rows are ' +
      'committed automatically, and messages that extend a dictionary must be sent again later',
    OWN,
  ),
  qwpDictionaryBytes: size(
    'qwp.max.dictionary.size',
    '64M',
    'maximum size of the symbol dictionary of one connection of the columnar protocol',
    OWN,
  ),
};
