/**
 * Detects repeated Bind, Execute and Sync messages that run prepared queries with different values.
 * After several repetitions, more are likely, so the connection can be handed off to the engine.
 */
import type { PgHandoffTerms, PreparedStatement, Statement } from '../../session/index.js';
import { Patience } from '../../sockets/index.js';
import type { BindMessage } from '../protocol/client-messages.js';
import { commandTag } from '../protocol/command-tag.js';
import { describeRows } from '../protocol/type-oids.js';
import type { Stored } from './bound.js';
import type { Portal } from './portal.js';
import type { Statements } from './statements.js';

/** Maximum number of statements per handoff. */
const MAX_STATEMENTS = 32;
/**
 * Maximum size in bytes of a Bind message, excluding its values and their encoding. Larger messages
 * are not remembered as patterns.
 */
const MAX_PATTERN_BYTES = 16_384;

/** A statement and the form in which its client binds it. */
interface Pattern {
  readonly name: string;
  readonly prepared: PreparedStatement;
  readonly head: Buffer;
  readonly tail: Buffer;
  readonly header: Buffer;
  readonly formats: readonly number[];
}

/** Statements that can be handed off. */
export interface Eligible {
  readonly patterns: readonly Pattern[];
  readonly statements: readonly Statement[];
  readonly terms: PgHandoffTerms['statements'];
}

export class Repetition {
  readonly #statements: Statements;
  /** Patterns, keyed by statement name; the most recently used is last. */
  readonly #patterns = new Map<string, Pattern>();
  /** The last Bind message. */
  #bound: { readonly name: string; readonly stored: Stored } | null = null;
  readonly #patience = new Patience();

  constructor(statements: Statements) {
    this.#statements = statements;
  }

  /** Records a message that is not a repetition. */
  interrupt(): void {
    this.#patience.interrupt();
    this.#bound = null;
  }

  bind({ portal, statement }: BindMessage, stored: Stored): void {
    this.#bound = portal === '' ? { name: statement, stored } : null;
  }

  /** Records that all rows of the unnamed portal were sent. */
  ran(portal: Portal): void {
    const bound = this.#bound;
    const pattern =
      bound?.stored.kind === 'engine' && !portal.isLong
        ? patternOf(bound.name, bound.stored.prepared, portal)
        : null;
    if (pattern === null) {
      this.interrupt();
      return;
    }
    this.#patience.ran();
    this.#patterns.delete(pattern.name);
    this.#patterns.set(pattern.name, pattern);
    const [oldest] = this.#patterns.keys();
    if (this.#patterns.size > MAX_STATEMENTS && oldest !== undefined) {
      this.#patterns.delete(oldest);
    }
  }

  /** Returns the statements to hand off after a Sync; `null` if there were too few repetitions. */
  eligible(): Eligible | null {
    if (!this.#patience.isTime) {
      return null;
    }
    const found = [...this.#patterns.values()].flatMap((pattern) => {
      const statement = this.#isKnown(pattern) ? pattern.prepared.handedOff : null;
      return statement === null ? [] : [{ pattern, statement }];
    });
    return found.length === 0
      ? null
      : {
          patterns: found.map(({ pattern }) => pattern),
          statements: found.map(({ statement }) => statement),
          terms: found.map(({ pattern }) => termsOf(pattern)),
        };
  }

  /** Records that a handoff ended after `answered` executions. */
  returned(answered: number): void {
    this.#patience.returned(answered);
  }

  /** Whether the name still refers to this statement. */
  #isKnown({ name, prepared }: Pattern): boolean {
    const stored = this.#statements.find(name);
    return stored?.kind === 'engine' && stored.prepared === prepared;
  }
}

function patternOf(name: string, prepared: PreparedStatement, portal: Portal): Pattern | null {
  const { source, header } = portal.values;
  const { kind, command, columns, notice } = prepared.description;
  const isQuery =
    columns.length > 0 && commandTag(kind, command, 0) === commandTag('select', '', 0);
  // A read-only transaction refuses locking clauses, but a handoff does not.
  const isPlain = notice === undefined && prepared.locking === null;
  if (source === null || !isQuery || !isPlain) {
    return null;
  }
  const { body, start, end } = source;
  if (start + body.length - end + header.length > MAX_PATTERN_BYTES) {
    return null;
  }
  return {
    name,
    prepared,
    head: Buffer.from(body.subarray(0, start)),
    tail: Buffer.from(body.subarray(end)),
    header,
    formats: portal.formats,
  };
}

function termsOf({
  prepared,
  head,
  tail,
  header,
  formats,
}: Pattern): PgHandoffTerms['statements'][0] {
  return {
    head: [...head],
    tail: [...tail],
    header: [...header],
    formatCodes: [...formats],
    rowDescription: [...describeRows(prepared.description, formats)],
  };
}
