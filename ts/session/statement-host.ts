/** What a statement needs of the server and of the session that run it. */
import type { DatabaseError } from '../engine/error.js';
import type { Database, Statement, StatementContext, Transaction } from '../engine/types.js';
import type { Tree } from '../sql/index.js';
import type { Backends } from './backends.js';
import type { ServerKind } from './dispatch.js';
import type { DrawnNumbers } from './drawn-numbers.js';
import type { Guard, Principal } from './guard.js';
import type { Looks } from './looks.js';
import type { Operations } from './operations.js';
import type { Seconds } from './seconds.js';
import type { StatementCache } from './statement-cache.js';

/** The session as a statement of the server's own sees it. */
export interface Actor {
  readonly principal: Principal;
  /** Whether the session outlives the statement. */
  readonly isLasting: boolean;
  /** Goes on as another user; null: as the user who logged in. */
  become(principal: Principal | null): void;
}

/** Statements of one kind that the server runs and the engine does not: COPY, GRANT. */
export interface ServerStatements {
  /** Rejects with a `DatabaseError`. */
  prepare(tree: Tree, context: StatementContext, actor: Actor): Promise<Statement>;
}

/** The server. */
export interface StatementHost {
  readonly database: Database;
  readonly statements: StatementCache;
  readonly server: Readonly<Partial<Record<ServerKind, ServerStatements>>>;
  readonly guard: Guard | undefined;
  readonly operations: Operations | null;
  readonly looks: Looks | undefined;
  readonly backends: Backends;
  timeoutMs(asked: number | undefined): number;
  /** Throws when the server ends. */
  refuseIfStopping(): void;
  /** What a statement failed with, as its client is to know it. */
  failure(error: unknown): DatabaseError;
}

/** The session. */
export interface StatementSession extends Actor {
  readonly seconds: Seconds | undefined;
  /** The open BEGIN … COMMIT block. */
  readonly transaction: Transaction | null;
  /** The number of its connection, where the client receives one. */
  readonly backend: number;
  readonly drawn: DrawnNumbers;
}
