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

const NOTHING = Buffer.alloc(0);

/** Executions with the same answers before each of them. */
interface Turn {
  readonly told: Buffer;
  count: number;
}

export class InsertRun {
  private readonly outlet: Queue;
  private readonly runAlone: (portal: Portal) => Promise<unknown>;
  private portals: Portal[] = [];
  private turns: Turn[] = [];
  /** Answers since the last execution. */
  private told: Buffer = NOTHING;
  private units = 0;

  /** `runAlone` tells by itself how it ended. */
  constructor(outlet: Queue, runAlone: (portal: Portal) => Promise<unknown>) {
    this.outlet = outlet;
    this.runAlone = runAlone;
  }

  get isWaiting(): boolean {
    return this.portals.length > 0;
  }

  /** Whether an execution may wait with those that wait already. */
  takes(portal: Portal): boolean {
    const [first] = this.portals;
    return first === undefined
      ? isHeldBack(portal)
      : first.statement === portal.statement &&
          this.portals.length < MOST_ROWS &&
          this.units < MOST_UNITS;
  }

  add(portal: Portal): void {
    const last = this.turns.at(-1);
    if (last?.told.equals(this.told) === true) {
      last.count += 1;
    } else {
      this.turns.push({ told: this.told, count: 1 });
    }
    this.told = NOTHING;
    this.portals.push(portal);
    for (const value of portal.parameters) {
      this.units += value?.length ?? 0;
    }
  }

  /** Tells something, in its turn. */
  answer(bytes: Buffer): void {
    if (!this.isWaiting) {
      this.outlet.queue(bytes);
    } else {
      this.told = this.told.length === 0 ? bytes : Buffer.concat([this.told, bytes]);
    }
  }

  /** Forgets what waits. */
  drop(): void {
    this.portals = [];
    this.turns = [];
    this.told = NOTHING;
    this.units = 0;
  }

  /** Runs what waits. Rows that do not go together run one by one, up to the one that fails. */
  async settle(): Promise<void> {
    const { portals, turns, told } = this;
    this.drop();
    const together = await runTogether(portals);
    if (together instanceof Error) {
      throw together;
    }
    let next = 0;
    for (const turn of turns) {
      if (together !== null) {
        this.outlet.queue(repeated(turn, together));
        continue;
      }
      for (const portal of portals.slice(next, (next += turn.count))) {
        this.tell(turn.told);
        await this.runAlone(portal);
      }
    }
    this.tell(told);
  }

  private tell(bytes: Buffer): void {
    if (bytes.length > 0) {
      this.outlet.queue(bytes);
    }
  }
}

/** What is told of executions that succeeded alike. */
function repeated({ told, count }: Turn, answer: Buffer): Buffer {
  const one = Buffer.concat([told, answer]);
  return Buffer.alloc(one.length * count, one);
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
