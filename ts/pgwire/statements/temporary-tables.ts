/**
 * The temporary tables of a connection. They are tables like any other, seen by all; they are
 * dropped when the connection ends, or its block where they say ON COMMIT DROP. They are known by
 * their number, so that a table of another session that has come to have the name stays.
 */
import type { PreparedStatement, Session, TemporaryTable } from '../../session/index.js';

/** A table that was made. */
interface OwnTable extends TemporaryTable {
  /** Its number among the tables. */
  readonly id: number;
}

export class TemporaryTables {
  private tables: OwnTable[] = [];
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
    const name = temporary.name.replaceAll("'", "''");
    const [[id] = []] = await this.rows(`SELECT id FROM tables() WHERE table_name = '${name}'`);
    if (typeof id === 'number') {
      this.tables.push({ ...temporary, id });
    }
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

  /** Drops tables, whatever their names are by now. */
  private async drop(tables: readonly OwnTable[]): Promise<void> {
    for (const { id } of tables) {
      const [[name] = []] = await this.rows(`SELECT table_name FROM tables() WHERE id = ${id}`);
      if (typeof name === 'string') {
        await this.rows(`DROP TABLE IF EXISTS "${name.replaceAll('"', '""')}"`);
      }
    }
  }

  /** The rows of a statement that has few, or none. */
  private async rows(sql: string): Promise<readonly unknown[][]> {
    const statement = await this.session.prepare(sql);
    try {
      const { chunk } = await statement.execute([], { rows: { format: 'json' } });
      return JSON.parse(`[${chunk?.bytes.toString('utf8') ?? ''}]`) as unknown[][];
    } finally {
      statement.close();
    }
  }
}

type Made = Pick<PreparedStatement, 'description' | 'temporary'>;
