/**
 * The temporary tables and views of a connection. They are like any other, seen by all; they are
 * dropped when the connection ends, or its block where they say ON COMMIT DROP. Tables are known by
 * their number, views by the time they were made, so that one of another session that has come to
 * have the name stays.
 */
import type { PreparedStatement, Session, TemporaryTable } from '../../session/index.js';

/** A table or a view that was made. */
interface OwnTable extends TemporaryTable {
  /** What tells it from another one of its name, as SQL writes it. */
  readonly id: string;
}

/** Where they are listed, the column of their names, and what tells one from another. */
const TABLES = ['tables()', 'table_name', 'id'] as const;
const VIEWS = ['views()', 'view_name', 'view_status_update_time'] as const;

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
    const [list, key, own] = temporary.isView ? VIEWS : TABLES;
    const [[found] = []] = await this.rows(`SELECT ${own} FROM ${list} WHERE ${key} = '${name}'`);
    if (typeof found === 'string' || typeof found === 'number') {
      const id = typeof found === 'string' ? `'${found}'` : String(found);
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

  /** Drops them, whatever their names are by now; views first, which read tables. */
  private async drop(tables: readonly OwnTable[]): Promise<void> {
    const views = tables.filter(({ isView }) => isView);
    for (const { isView, id } of [...views, ...tables.filter(({ isView }) => !isView)]) {
      const [list, key, own] = isView ? VIEWS : TABLES;
      const [[name] = []] = await this.rows(`SELECT ${key} FROM ${list} WHERE ${own} = ${id}`);
      if (typeof name === 'string') {
        const what = isView ? 'VIEW' : 'TABLE';
        await this.rows(`DROP ${what} IF EXISTS "${name.replaceAll('"', '""')}"`);
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
