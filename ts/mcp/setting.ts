/** Context of an agent's request; it is independent of HTTP. */
import type { Session } from '../session/index.js';
import type { Documents } from './documents.js';

/** Limits for one response and one statement. */
export interface Limits {
  readonly rows: number;
  readonly bytes: number;
  readonly timeoutMs: number;
}

export interface Setting {
  /** Opens a session for the requesting user; a read-only session refuses writes. */
  readonly open: (access: 'read' | 'write') => Session;
  /**
   * Whether the client requested write access and the server allows it. The user's rights still
   * apply.
   */
  readonly mayWrite: boolean;
  readonly limits: Limits;
  readonly documents: Documents;
  readonly version: string;
}
