/** The server and session interfaces that statements need. */
import type { DatabaseError } from '../engine/error.js';
import type { Database, Statement, StatementContext, Transaction } from '../engine/types.js';
import type { Tree } from '../sql/index.js';
import type { Backends } from './backends.js';
import type { ServerKind } from './dispatch.js';
import type { SequenceValues } from './sequence-values.js';
import type { Guard, Principal } from './guard.js';
import type { TextShapeDetector } from './text-shape.js';
import type { Operations } from './operations.js';
import type { DurationObserver } from './duration-observer.js';
import type { StatementCache } from './statement-cache.js';

/** The session interface for statements that the server runs. */
export interface Actor {
  readonly principal: Principal;
  /** Whether the session outlives the statement. */
  readonly isLasting: boolean;
  /** Switches to another user; `null` restores the user who logged in. */
  become(principal: Principal | null): void;
}

/** Statements of a kind that the server runs instead of the engine, such as COPY or GRANT. */
export interface ServerStatements {
  /** Prepares a statement; rejects with a `DatabaseError`. */
  prepare(tree: Tree, context: StatementContext, actor: Actor): Promise<Statement>;
}

/** The server's interface for statements. */
export interface StatementHost {
  readonly database: Database;
  readonly statements: StatementCache;
  readonly server: Readonly<Partial<Record<ServerKind, ServerStatements>>>;
  readonly guard: Guard | undefined;
  readonly operations: Operations | null;
  readonly detectTextShape: TextShapeDetector | undefined;
  readonly backends: Backends;
  timeoutMs(asked: number | undefined): number;
  /** Throws if the server is stopping. */
  refuseIfStopping(): void;
  /** Converts a statement's error for the client. */
  failure(error: unknown): DatabaseError;
}

/** The session's interface for statements. */
export interface StatementSession extends Actor {
  readonly seconds: DurationObserver | undefined;
  /** The open BEGIN … COMMIT block. */
  readonly transaction: Transaction | null;
  /** Process id of the session's connection, if its client receives one. */
  readonly backend: number;
  readonly sequenceValues: SequenceValues;
}
