/**
 * Batches consecutive executions of an INSERT. They are buffered until a different message arrives
 * (Sync, Flush, another statement). The engine then receives all of them together, in one commit.
 * Replies to messages in between are buffered too, so that all replies are sent in message order.
 *
 * A pipeline may contain thousands of messages that differ only in their values. Messages that
 * repeat the previous ones are accepted as bytes, without decoding: see `repeats`.
 */
import { DatabaseError, ParameterBatch } from '../../session/index.js';
import { BoundValues } from './bound-values.js';
import type { BoundParameters } from '../protocol/client-messages.js';
import { commandTag } from '../protocol/command-tag.js';
import type { FrameRange } from '../protocol/frames.js';
import { type Executable, Portal } from './portal.js';
import { bindComplete, commandComplete } from '../protocol/server-messages.js';

/** Maximum number of buffered rows, and maximum size of their values in bytes. */
const MAX_ROWS = 16_384;
const MAX_BYTES = 8 * 1024 * 1024;

/**
 * Errors in values, or in a statement that cannot be batched. After such an error, nothing was
 * written.
 */
const BEFORE_WRITING: ReadonlySet<string> = new Set([
  'InvalidValue',
  'InvalidCell',
  'NullValue',
  'InvalidEncoding',
  'InvalidBinary',
  'TypeMismatch',
  'NotSupported',
  'ResourceLimit',
]);

/**
 * Whether a statement is an INSERT with parameters that returns no rows, so its executions can be
 * buffered.
 */
function isBatchable({ description }: Pick<Executable, 'description'>): boolean {
  const { kind, columns, parameters } = description;
  return kind === 'insert' && columns.length === 0 && parameters.length > 0;
}

interface Queue {
  queue(bytes: Buffer): void;
}

const NOTHING = Buffer.alloc(0);
const BIND = 'B'.charCodeAt(0);
const EXECUTE = 'E'.charCodeAt(0);
/** The body of an Execute message that names the unnamed portal and has no row limit. */
const EXECUTE_ALL = Buffer.alloc(5);

/** Consecutive executions. Each of them is preceded by the same replies. */
interface ExecutionGroup {
  readonly replies: Buffer;
  count: number;
}

/** The bytes that the messages of a batch have in common. */
interface Pattern {
  /** Bytes of the Bind message before and after its values. */
  readonly head: Buffer;
  readonly tail: Buffer;
  readonly count: number;
}

function patternOf({ body, start, end, count }: BoundParameters): Pattern {
  return { head: body.subarray(0, start), tail: body.subarray(end), count };
}

export class InsertRun {
  private readonly outlet: Queue;
  private readonly runAlone: (portal: Portal) => Promise<unknown>;
  /** The statement whose executions are buffered. */
  private statement: Executable | null = null;
  private rows = 0;
  private batch = new ParameterBatch();
  private groups: ExecutionGroup[] = [];
  /** Replies buffered since the last execution. */
  private replies: Buffer = NOTHING;
  private pattern: Pattern | null = null;
  /** Buffer with a Bind that was accepted undecoded and whose Execute has not arrived yet. */
  private bound: Buffer | null = null;
  private boundStart = 0;
  private boundEnd = 0;

  /** `runAlone` runs a single portal and sends its result. */
  constructor(outlet: Queue, runAlone: (portal: Portal) => Promise<unknown>) {
    this.outlet = outlet;
    this.runAlone = runAlone;
  }

  get isWaiting(): boolean {
    return this.rows > 0;
  }

  private get isFull(): boolean {
    return this.rows >= MAX_ROWS || this.batch.size >= MAX_BYTES;
  }

  /** Whether the next messages may repeat the previous ones. */
  get isRepeating(): boolean {
    return this.pattern !== null;
  }

  /** Whether this execution can be added to the buffered executions. */
  accepts({ statement, values }: Portal): boolean {
    return this.statement === null
      ? isBatchable(statement)
      : this.statement === statement && !this.isFull && this.batch.suits(values.header);
  }

  /**
   * Buffers an execution of the portal `name`. Repetition is detected only for the unnamed portal,
   * because a named portal is bound only once.
   */
  add(portal: Portal, name: string): void {
    const { source, header } = portal.values;
    this.pattern = source === null || name !== '' ? null : patternOf(source);
    if (this.statement === null) {
      this.batch = new ParameterBatch(header);
    }
    this.statement = portal.statement;
    if (source !== null) {
      this.batch.addBytes(source.body, source.start, source.end);
    }
    this.note(this.replies);
    this.replies = NOTHING;
  }

  /**
   * Accepts a Bind that differs from the previous one only in its values, and the Execute after it.
   * Returns false if the message must be decoded.
   */
  repeats(message: FrameRange): boolean {
    const { pattern } = this;
    if (pattern === null) {
      return false;
    }
    if (message.type === BIND) {
      return this.bound === null && this.replies === NOTHING && this.acceptsBind(message, pattern);
    }
    const { bound } = this;
    if (message.type !== EXECUTE || bound === null || !isAt(message, EXECUTE_ALL)) {
      return false;
    }
    const { head, tail } = pattern;
    this.batch.addBytes(bound, this.boundStart + head.length, this.boundEnd - tail.length);
    this.bound = null;
    this.note(bindComplete());
    return true;
  }

  /** Returns the undecoded Bind if its Execute did not follow. */
  takeUnexecutedBind(): Buffer | null {
    const bind = this.bound?.subarray(this.boundStart, this.boundEnd) ?? null;
    this.bound = null;
    return bind;
  }

  /** Sends a reply, after the replies to buffered executions. */
  answer(bytes: Buffer): void {
    if (!this.isWaiting) {
      this.outlet.queue(bytes);
    } else {
      this.replies = this.replies.length === 0 ? bytes : Buffer.concat([this.replies, bytes]);
    }
  }

  /** Discards buffered executions. */
  drop(): void {
    this.statement = null;
    this.rows = 0;
    this.batch = new ParameterBatch();
    this.groups = [];
    this.replies = NOTHING;
    this.pattern = null;
    this.bound = null;
  }

  /**
   * Runs the buffered executions. Rows that cannot be written together run one by one, up to the
   * first error.
   */
  async settle(): Promise<void> {
    const { statement, rows, batch, groups, replies } = this;
    this.drop();
    const batchReply = statement === null ? null : await runBatch(statement, rows, batch);
    if (batchReply instanceof Error) {
      throw batchReply;
    }
    const values = batchReply === null ? batch.rows() : [];
    let next = 0;
    for (const group of groups) {
      if (batchReply !== null) {
        this.outlet.queue(repeated(group, batchReply));
        continue;
      }
      for (const row of values.slice(next, (next += group.count))) {
        this.send(group.replies);
        if (statement !== null) {
          await this.runAlone(new Portal(statement, BoundValues.of(row), []));
        }
      }
    }
    this.send(replies);
  }

  private acceptsBind({ bytes, start, end }: FrameRange, { head, tail, count }: Pattern): boolean {
    const values = start + head.length;
    const after = end - tail.length;
    if (
      this.isFull ||
      after - values < 2 ||
      bytes.readUInt16BE(values) !== count ||
      !sameBytes(bytes, start, head) ||
      !sameBytes(bytes, after, tail) ||
      BoundValues.endOf(this.batch.header, bytes, values, after) !== after
    ) {
      return false;
    }
    this.bound = bytes;
    this.boundStart = start;
    this.boundEnd = end;
    return true;
  }

  /** Counts a buffered execution. `replies` are the replies to send before its own reply. */
  private note(replies: Buffer): void {
    const last = this.groups.at(-1);
    if (last !== undefined && (last.replies === replies || last.replies.equals(replies))) {
      last.count += 1;
    } else {
      this.groups.push({ replies, count: 1 });
    }
    this.rows += 1;
  }

  private send(bytes: Buffer): void {
    if (bytes.length > 0) {
      this.outlet.queue(bytes);
    }
  }
}

function isAt({ bytes, start, end }: FrameRange, expected: Buffer): boolean {
  return end - start === expected.length && sameBytes(bytes, start, expected);
}

/** For short ranges, a loop is faster than a comparison of views. */
function sameBytes(bytes: Buffer, start: number, expected: Buffer): boolean {
  for (let index = 0; index < expected.length; index += 1) {
    if (bytes[start + index] !== expected[index]) {
      return false;
    }
  }
  return true;
}

/** Returns the replies to all executions of a group, each with the same reply from the server. */
function repeated({ replies, count }: ExecutionGroup, answer: Buffer): Buffer {
  const reply = Buffer.concat([replies, answer]);
  return Buffer.alloc(reply.length * count, reply);
}

/**
 * Returns the reply to each execution. Returns `null` if the executions must run individually, or
 * an error if none may run.
 */
async function runBatch(
  statement: Executable,
  rows: number,
  batch: ParameterBatch,
): Promise<Buffer | null | Error> {
  if (rows === 1) {
    return null;
  }
  const { kind, command } = statement.description;
  try {
    const { rowsAffected } = await statement.executeBatch(batch);
    return commandComplete(commandTag(kind, command, rowsAffected / rows));
  } catch (error) {
    if (error instanceof DatabaseError && BEFORE_WRITING.has(error.code)) {
      return null;
    }
    return error instanceof Error ? error : new Error(String(error));
  }
}
