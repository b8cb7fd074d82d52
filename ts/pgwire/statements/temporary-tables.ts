/**
 * The temporary tables of a connection. They are tables like any other, seen by all; they are
 * dropped when the connection ends, or its block where they say ON COMMIT DROP.
 */
import type { PreparedStatement, Session, TemporaryTable } from '../../session/index.js';

export class TemporaryTables {
  private tables: TemporaryTable[] = [];
  private readonly session: Pick<Session, 'prepare'>;

  constructor(session: Pick<Session, 'prepare'>) {
    this.session = session;
  }

  /** After a run: `inBlock` says whether a block goes on. */
  async note({ description, temporary }: Made, inBlock: boolean): Promise<void> {
    // Without a notice there was a table of this name, which is not this connection's.
    if (temporary === null || description.notice === undefined) {
      return;
    }
    this.tables.push(temporary);
    if (!inBlock) {
      await this.endBlock();
    }
  }

  /** Drops those that go with the block. */
  async endBlock(): Promise<void> {
    const ended = this.tables.filter(({ endsWithBlock }) => endsWithBlock);
    if (ended.length > 0) {
      this.tables = this.tables.filter(({ endsWithBlock }) => !endsWithBlock);
      await this.drop(ended);
    }
  }

  /** Drops all. */
  async dropAll(): Promise<void> {
    const { tables } = this;
    this.tables = [];
    await this.drop(tables);
  }

  private async drop(tables: readonly TemporaryTable[]): Promise<void> {
    for (const { name } of tables) {
      const quoted = `"${name.replaceAll('"', '""')}"`;
      const statement = await this.session.prepare(`DROP TABLE IF EXISTS ${quoted}`);
      await statement.execute([], { rows: { format: 'json' } });
      statement.close();
    }
  }
}

type Made = Pick<PreparedStatement, 'description' | 'temporary'>;
