/** What a session begins with: what its client asked for, and what it receives. */
import type { Entered } from '../login/login.js';
import { ProtocolError } from '../protocol/protocol-error.js';

/** The release of QuestDB whose dialect this is. */
const QUESTDB = '9.3.4';

type StartupParameters = ReadonlyMap<string, string>;

/** Names and values that drivers look at. */
export function statusParameters(
  { user, readOnly, identity }: Entered,
  asked: StartupParameters,
): (readonly [string, string])[] {
  return [
    ['server_version', '14.0'],
    // Clients that know QuestDB leave out what it has not: sqlx its EXPLAIN in JSON.
    ['questdb_version', QUESTDB],
    ['server_encoding', 'UTF8'],
    ['client_encoding', 'UTF8'],
    ['DateStyle', 'ISO, YMD'],
    ['IntervalStyle', 'postgres'],
    ['TimeZone', 'UTC'],
    ['integer_datetimes', 'on'],
    ['standard_conforming_strings', 'on'],
    ['is_superuser', identity.kind === 'admin' && !readOnly ? 'on' : 'off'],
    ['session_authorization', user],
    ['application_name', asked.get('application_name') ?? ''],
  ];
}

/**
 * Ends a connection that could only fail later, in a query of the catalog that says nothing to who
 * asked for it.
 */
export function refuseDumps(asked: StartupParameters): void {
  const name = asked.get('application_name') ?? '';
  if (name === 'pg_dump' || name === 'pg_dumpall') {
    const message = `${name} cannot dump this database: use BACKUP DATABASE, COPY … TO or /exp`;
    throw new ProtocolError('0A000', message, true);
  }
}
