/** Context of an agent's request, independent of HTTP. */
import type { Session } from '../session/index.js';
import type { Documents } from './documents.js';

/** Limits of one response and one statement. */
export interface Limits {
  readonly rows: number;
  readonly bytes: number;
  readonly timeoutMs: number;
}

export interface Setting {
  /** Opens a session of the requesting user; a read-only session refuses writes. */
  readonly open: (access: 'read' | 'write') => Session;
  /** Whether writing was requested and allowed, within the user's rights. */
  readonly mayWrite: boolean;
  readonly limits: Limits;
  readonly documents: Documents;
  readonly version: string;
}
