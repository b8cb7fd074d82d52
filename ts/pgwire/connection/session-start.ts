/** Session startup: parameters from the client, and parameters sent to it. */
import type { Entered } from '../login/login.js';
import { ProtocolError } from '../protocol/protocol-error.js';

/** The QuestDB release whose dialect is implemented. */
const QUESTDB = '9.3.4';

type StartupParameters = ReadonlyMap<string, string>;

/** Parameters that drivers read. */
export function statusParameters(
  { user, readOnly, identity }: Entered,
  { reportedSettings }: { readonly reportedSettings: readonly (readonly [string, string])[] },
): (readonly [string, string])[] {
  return [
    ['server_version', '14.0'],
    // Clients that detect QuestDB avoid features that it lacks; for example, sqlx does not use
    // EXPLAIN in JSON.
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
    ['in_hot_standby', 'off'],
    ...reportedSettings,
  ];
}

/**
 * Refuses pg_dump and pg_dumpall. They would fail later in a catalog query, with an error that does
 * not tell the user the cause.
 */
export function refuseDumps(startup: StartupParameters): void {
  const name = startup.get('application_name') ?? '';
  if (name === 'pg_dump' || name === 'pg_dumpall') {
    const message = `${name} cannot dump this database: use BACKUP DATABASE, COPY … TO or /exp`;
    throw new ProtocolError('0A000', message, true);
  }
}
