/** What a request of an agent comes with. Nothing here knows of HTTP. */
import type { Session } from '../session/index.js';
import type { Documents } from './documents.js';

/** What one answer, and one statement, may take. */
export interface Limits {
  readonly rows: number;
  readonly bytes: number;
  readonly timeoutMs: number;
}

export interface Setting {
  /** A session of the user who asks; one that is read-only is refused whatever writes. */
  readonly open: (access: 'read' | 'write') => Session;
  /** Whether writing was granted, as far as the rights of the user go. */
  readonly mayWrite: boolean;
  readonly limits: Limits;
  readonly documents: Documents;
  readonly version: string;
}
