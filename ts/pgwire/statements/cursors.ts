/** SQL cursors: DECLARE creates a portal for a query; FETCH and MOVE read it in steps. */
import type {
  CursorStep,
  DeclareCursor,
  FetchCursor,
  ParameterTypes,
  PreparedStatement,
} from '../../session/index.js';
import type { Block } from './block.js';
import type { BoundValues } from './bound-values.js';
import { shifted } from '../protocol/failure.js';
import { formatCodes } from './format-codes.js';
import { type Executable, Portal, type PortalRun, type Send } from './portal.js';
import type { Portals } from './portals.js';
import { ProtocolError } from '../protocol/protocol-error.js';
import { type Read, Scroll } from './scroll.js';
import { describeRows } from '../protocol/type-oids.js';

/** The conversation interface that cursors need. */
interface CursorSetting {
  readonly portals: Portals;
  readonly block: Block;
  prepare(text: string, types?: ParameterTypes): Promise<PreparedStatement>;
  /** Runs a portal, so that it can be cancelled while it runs. */
  run(portal: Portal, maxRows: number, send: Send): Promise<PortalRun>;
  /** Throws if the statement writes in a read-only transaction. */
  refuseWrite(statement: Executable): void;
}

export class Cursors {
  private readonly setting: CursorSetting;

  constructor(setting: CursorSetting) {
    this.setting = setting;
  }

  /** Declares a cursor: its query is bound immediately, but runs only at the first FETCH. */
  async declare(
    { name, query, binary, scroll, hold }: DeclareCursor,
    types: ParameterTypes | undefined,
    values: BoundValues,
  ): Promise<string> {
    const { block, portals } = this.setting;
    if (block.status === 'I' && !hold) {
      const message = 'DECLARE CURSOR can only be used in transaction blocks, or WITH HOLD';
      throw new ProtocolError('25P01', message);
    }
    const statement = await this.setting.prepare(query.text, types).catch((error: unknown) => {
      throw shifted(error, query.start);
    });
    try {
      const { kind, columns, parameters } = statement.description;
      if (kind !== 'select') {
        throw new ProtocolError('42601', 'DECLARE CURSOR must be for a query');
      }
      this.setting.refuseWrite(statement);
      if (parameters.length !== values.count) {
        throw new ProtocolError('08P01', `the cursor requires ${parameters.length} parameters`);
      }
      const formats = formatCodes([binary ? 1 : 0], columns.length, 'result');
      const portal = new Portal(statement, values, formats);
      const read: Read = async (maxRows, send) => {
        return (await this.setting.run(portal, maxRows, send)).complete;
      };
      const cursor = {
        statement,
        binary,
        hold,
        committed: block.status === 'I',
        scroll: scroll ? new Scroll(read) : null,
      };
      portals.add(name, () => ({ kind: 'engine', portal, done: false, cursor }));
    } catch (error) {
      statement.close();
      throw error;
    }
    return 'DECLARE CURSOR';
  }

  /** The row description of a FETCH whose client requested `formats`. */
  describe(name: string, formats: readonly number[]): Buffer {
    const { portal, codes } = this.cursor(name, formats);
    return describeRows(portal.statement.description, codes);
  }

  /** Executes FETCH or MOVE; returns the command tag. */
  async fetch(statement: FetchCursor, formats: readonly number[], send: Send): Promise<string> {
    const { name, kind, step } = statement;
    const { portal, scroll, codes } = this.cursor(name, formats);
    const isFetch = kind === 'Fetch';
    portal.choose(isFetch ? codes : portal.formats);
    const sink = isFetch ? send : (): Promise<void> => Promise.resolve();
    const rows =
      scroll === null
        ? (await this.setting.run(portal, forwardRows(step), sink)).rows
        : await this.scrolled(name, scroll.go(step, sink));
    return `${kind.toUpperCase()} ${rows}`;
  }

  /** If a row could not be buffered, the cursor has lost it and is therefore closed. */
  private async scrolled(name: string, step: Promise<number>): Promise<number> {
    try {
      return await step;
    } catch (error) {
      this.setting.portals.close(name);
      throw error;
    }
  }

  private cursor(name: string, formats: readonly number[]): OpenCursor {
    const bound = this.setting.portals.get(name, 'cursor');
    if (bound.kind !== 'engine' || bound.done) {
      throw new ProtocolError('34000', `cursor "${name}" has no rows`);
    }
    const { portal, cursor } = bound;
    const count = portal.statement.description.columns.length;
    const codes = formatCodes(cursor?.binary === true ? [1] : formats, count, 'result');
    return { portal, scroll: cursor?.scroll ?? null, codes };
  }
}

interface OpenCursor {
  readonly portal: Portal;
  readonly scroll: Scroll | null;
  readonly codes: readonly number[];
}

/** Returns the number of rows to read from a cursor without SCROLL; 0 means all rows. */
function forwardRows({ way, rows }: CursorStep): number {
  const isAhead = (way === 'forward' && rows > 0) || (way === 'relative' && rows === 1);
  if (!isAhead) {
    const known = 'NEXT, a number, ALL, FORWARD';
    const message = `cursor can only scan forward: declare it with SCROLL [expected=${known}]`;
    throw new ProtocolError('55000', message);
  }
  return rows === Infinity ? 0 : rows;
}
