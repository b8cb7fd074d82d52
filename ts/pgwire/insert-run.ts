/**
 * Executions of one INSERT, one after the other: they are held back until something else comes
 * (Sync, Flush, another statement) and then cross to the engine together, in one commit. What is
 * told meanwhile is held back too, so that answers keep the order of the messages.
 */
import { DatabaseError } from '../session/index.js';
import { commandTag } from './commands.js';
import type { Portal } from './portal.js';
import { commandComplete } from './server-messages.js';

/** Rows, and UTF-16 units of their values, that wait at the most. */
const MOST_ROWS = 16_384;
const MOST_UNITS = 8 * 1024 * 1024;

/** Errors of values, or of a statement that does not run in batches: nothing was written. */
const BEFORE_WRITING: ReadonlySet<string> = new Set([
  'InvalidValue',
  'TypeMismatch',
  'NotSupported',
  'ResourceLimit',
]);

/** An INSERT with values that answers no rows. */
function isHeldBack({ statement, parameters }: Portal): boolean {
  const { kind, columns } = statement.description;
  return kind === 'insert' && columns.length === 0 && parameters.length > 0;
}

interface Queue {
  queue(bytes: Buffer): void;
}

export class InsertRun {
  private readonly outlet: Queue;
  private readonly runAlone: (portal: Portal) => Promise<unknown>;
  private readonly wrote: () => void;
  private portals: Portal[] = [];
  /** Bytes to send; null where the next execution's answer comes. */
  private replies: (Buffer | null)[] = [];
  private units = 0;

  /** `wrote` is told of what went together; `runAlone` tells by itself. */
  constructor(outlet: Queue, runAlone: (portal: Portal) => Promise<unknown>, wrote: () => void) {
    this.outlet = outlet;
    this.runAlone = runAlone;
    this.wrote = wrote;
  }

  get isWaiting(): boolean {
    return this.portals.length > 0;
  }

  /** Whether an execution may wait with those that wait already. */
  takes(portal: Portal): boolean {
    const isFull = this.portals.length >= MOST_ROWS || this.units >= MOST_UNITS;
    const isSame = !this.isWaiting || this.portals[0]?.statement === portal.statement;
    return isHeldBack(portal) && isSame && !isFull;
  }

  add(portal: Portal): void {
    this.portals.push(portal);
    this.replies.push(null);
    for (const value of portal.parameters) {
      this.units += value?.length ?? 0;
    }
  }

  /** Tells something, in its turn. */
  answer(bytes: Buffer): void {
    if (this.isWaiting) {
      this.replies.push(bytes);
    } else {
      this.outlet.queue(bytes);
    }
  }

  /** Forgets what waits. */
  drop(): void {
    this.portals = [];
    this.replies = [];
    this.units = 0;
  }

  /** Runs what waits. Rows that do not go together run one by one, up to the one that fails. */
  async settle(): Promise<void> {
    const { portals, replies } = this;
    this.drop();
    const together = await runTogether(portals);
    if (Buffer.isBuffer(together)) {
      this.wrote();
    }
    let next = 0;
    for (const reply of replies) {
      if (reply !== null) {
        this.outlet.queue(reply);
        continue;
      }
      const portal = portals[next];
      next += 1;
      if (together instanceof Error) {
        throw together;
      } else if (together !== null) {
        this.outlet.queue(together);
      } else if (portal !== undefined) {
        await this.runAlone(portal);
      }
    }
  }
}

/** The answer to each execution, null when they must run alone, or why nothing may run. */
async function runTogether(portals: readonly Portal[]): Promise<Buffer | null | Error> {
  const [first] = portals;
  if (first === undefined || portals.length === 1) {
    return null;
  }
  const { kind, command } = first.statement.description;
  try {
    const rows = portals.map(({ parameters }) => parameters);
    const { rowsAffected } = await first.statement.executeBatch(rows);
    return commandComplete(commandTag(kind, command, rowsAffected / portals.length));
  } catch (error) {
    if (error instanceof DatabaseError && BEFORE_WRITING.has(error.code)) {
      return null;
    }
    return error instanceof Error ? error : new Error(String(error));
  }
}
