/** What a session begins with: what its client asked for, and what it receives. */
import type { Entered } from '../login/login.js';

type StartupParameters = ReadonlyMap<string, string>;

/** Names and values that drivers look at. */
export function statusParameters(
  { user, readOnly, identity }: Entered,
  asked: StartupParameters,
): (readonly [string, string])[] {
  return [
    ['server_version', '14.0'],
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
