/** Keys for the columnar protocol (QWP). */
import { integer, OWN, size } from './key.js';

export const QWP_KEYS = {
  qwpMessageLimit: size(
    'http.receive.buffer.size',
    '2M',
    'bounds a message of the columnar protocol, which may have 14 bytes less, and at most 16 MiB',
    { reloadable: true, aliases: ['http.recv.buffer.size'] },
  ),
  qwpMostRows: integer(
    'qwp.max.rows.per.table',
    '1000000',
    'rows of a table in one message of the columnar protocol',
  ),
  qwpMostTables: integer(
    'qwp.max.tables.per.connection',
    '10000',
    'tables that one connection of the columnar protocol may name',
  ),
  qwpWaitingRows: integer(
    'qwp.max.uncommitted.rows',
    '1000000',
    'rows of one connection that wait for their commit; then they are committed unasked',
  ),
  qwpWaitingBytes: size(
    'qwp.max.uncommitted.size',
    '256M',
    'memory of such rows; from half of it they are committed unasked',
    OWN,
  ),
  qwpOpenBytes: size(
    'qwp.max.open.size',
    '512M',
    'memory of such rows, and of dictionaries, of all connections; above it rows are committed ' +
      'unasked, and what makes a dictionary longer is to be sent again later',
    OWN,
  ),
  qwpDictionaryBytes: size(
    'qwp.max.dictionary.size',
    '64M',
    'texts in the symbol dictionary of one connection of the columnar protocol',
    OWN,
  ),
};
