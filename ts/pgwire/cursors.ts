/** Cursors of SQL: DECLARE makes a portal of a query, FETCH and MOVE read it in steps. */
import type { ParameterTypes, PreparedStatement } from '../session/index.js';
import type { Block } from './block.js';
import type { BoundValues } from './bound-values.js';
import type { Declaration, FetchCommand } from './cursor-commands.js';
import { shifted } from './failure.js';
import { formatCodes } from './parameter-values.js';
import { Portal, type PortalRun, type Send } from './portal.js';
import type { Portals } from './portals.js';
import { ProtocolError } from './protocol-error.js';
import { describeRows } from './types.js';

/** What cursors need of their conversation. */
export interface CursorSetting {
  readonly portals: Portals;
  readonly block: Block;
  prepare(text: string, types?: ParameterTypes): Promise<PreparedStatement>;
  /** Runs a portal so that it can be cancelled. */
  run(portal: Portal, maxRows: number, send: Send): Promise<PortalRun>;
}

export class Cursors {
  private readonly setting: CursorSetting;

  constructor(setting: CursorSetting) {
    this.setting = setting;
  }

  /** The query is bound now, and runs at the first FETCH. */
  async declare(
    { name, query, start, binary, hold }: Declaration,
    types: ParameterTypes | undefined,
    values: BoundValues,
  ): Promise<string> {
    const { block, portals } = this.setting;
    if (block.status === 'I' && !hold) {
      const message = 'DECLARE CURSOR can only be used in transaction blocks, or WITH HOLD';
      throw new ProtocolError('25P01', message);
    }
    const statement = await this.setting.prepare(query, types).catch((error: unknown) => {
      throw shifted(error, start);
    });
    try {
      const { kind, columns, parameters } = statement.description;
      if (kind !== 'select') {
        throw new ProtocolError('42601', 'DECLARE CURSOR must be for a query');
      }
      if (parameters.length !== values.count) {
        throw new ProtocolError('08P01', `the cursor requires ${parameters.length} parameters`);
      }
      const formats = formatCodes([binary ? 1 : 0], columns.length, 'result');
      const portal = new Portal(statement, values, formats);
      const cursor = { statement, binary, hold, committed: block.status === 'I' };
      portals.add(name, () => ({ kind: 'engine', portal, done: false, cursor }));
    } catch (error) {
      statement.close();
      throw error;
    }
    return 'DECLARE CURSOR';
  }

  /** The shape of what FETCH answers a client that asks for `formats`. */
  describe(name: string, formats: readonly number[]): Buffer {
    const { portal, codes } = this.cursor(name, formats);
    return describeRows(portal.statement.description, codes);
  }

  /** FETCH and MOVE; returns the tag. */
  async fetch(command: FetchCommand, formats: readonly number[], send: Send): Promise<string> {
    const { portal, codes } = this.cursor(command.name, formats);
    const isFetch = command.command === 'fetch';
    portal.choose(isFetch ? codes : portal.formats);
    const taken = isFetch ? send : (): Promise<void> => Promise.resolve();
    const { rows } = await this.setting.run(portal, command.rows ?? 0, taken);
    return `${command.command.toUpperCase()} ${rows}`;
  }

  private cursor(
    name: string,
    formats: readonly number[],
  ): { readonly portal: Portal; readonly codes: readonly number[] } {
    const bound = this.setting.portals.get(name, 'cursor');
    if (bound.kind !== 'engine' || bound.done) {
      throw new ProtocolError('34000', `cursor "${name}" has no rows`);
    }
    const { portal, cursor } = bound;
    const count = portal.statement.description.columns.length;
    return { portal, codes: formatCodes(cursor?.binary === true ? [1] : formats, count, 'result') };
  }
}
