/** Statements that a connection runs. They would have no effect in the library. */
import { DatabaseError, type ParsedStatement } from '../session/index.js';

type SessionStatement = Extract<ParsedStatement['dispatch'], { runner: 'session' }>['statement'];

/** What the library does not have, and the hint that names a replacement. */
type Refusal = readonly [missing: string, hint: string];

const BLOCKS: Refusal = ['transaction blocks', 'use the method transaction()'];
const MODES: Refusal = ['transaction modes', 'to refuse writes, open the database with readOnly'];
const LOCKS: Refusal = ['table locks', 'use the method transaction(), which needs no locks'];
const SETTINGS: Refusal = ['session settings', 'pass an option to the method, such as timeoutMs'];
const ROLES: Refusal = ['roles', 'access control needs a server'];
const NAMES: Refusal = ['named statements', 'use the method prepare()'];
const CURSORS: Refusal = ['cursors', 'use the method iterate()'];
const CHANNELS: Refusal = ['channels', 'use the method changes()'];
const INPUT: Refusal = ['COPY … FROM STDIN', 'use an appender or the method importCsv()'];
const OUTPUT: Refusal = ['COPY … TO STDOUT', 'use the method iterate()'];

const REFUSALS: Readonly<Record<SessionStatement['kind'], Refusal>> = {
  Begin: BLOCKS,
  Chain: BLOCKS,
  CloseCursor: CURSORS,
  Commit: BLOCKS,
  CopyIn: INPUT,
  CopyOut: OUTPUT,
  Deallocate: NAMES,
  DeclareCursor: CURSORS,
  Discard: SETTINGS,
  Execute: NAMES,
  Fetch: CURSORS,
  Listen: CHANNELS,
  LockTable: LOCKS,
  Move: CURSORS,
  Notify: CHANNELS,
  Prepare: NAMES,
  Release: BLOCKS,
  Reset: SETTINGS,
  ResetRole: ROLES,
  Rollback: BLOCKS,
  RollbackTo: BLOCKS,
  Savepoint: BLOCKS,
  Set: SETTINGS,
  SetAuthorization: ROLES,
  SetRole: ROLES,
  SetTransaction: MODES,
  TwoPhase: BLOCKS,
  Unlisten: CHANNELS,
};

/** Refuses a statement that needs a connection. */
export function refuseSessionStatement({ kind }: SessionStatement): never {
  const [missing, hint] = REFUSALS[kind];
  const message = `the library has no ${missing}`;
  throw new DatabaseError({ code: 'NotSupported', message, hint });
}
