/**
 * A connection's temporary tables and views. Other sessions can see them. They are dropped when the
 * connection ends or, with ON COMMIT DROP, when its block ends. Tables are identified by id and
 * views by `view_status_update_time`. An object with the same name that another session has since
 * created is therefore not dropped.
 */
import type { PreparedStatement, Session, TemporaryTable } from '../../session/index.js';

/** A table or view that this connection created. */
interface OwnTable extends TemporaryTable {
  /** SQL literal that identifies the object independently of its name. */
  readonly id: string;
}

/** Catalog function that lists the objects, its name column, and its identifying column. */
const TABLES = ['tables()', 'table_name', 'id'] as const;
const VIEWS = ['views()', 'view_name', 'view_status_update_time'] as const;

export class TemporaryTables {
  private tables: OwnTable[] = [];
  private readonly session: Pick<Session, 'prepare'>;

  constructor(session: Pick<Session, 'prepare'>) {
    this.session = session;
  }

  /** Called after an execution; `inBlock` states whether a block is still open. */
  async note({ description, temporary }: CreatingStatement, inBlock: boolean): Promise<void> {
    // Without a notice, nothing was created: a table with this name already existed and does not
    // belong to this connection.
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

  /** Drops the tables and views that end with the block. */
  async endBlock(): Promise<void> {
    const ended = this.tables.filter(({ endsWithBlock }) => endsWithBlock);
    if (ended.length > 0) {
      this.tables = this.tables.filter(({ endsWithBlock }) => !endsWithBlock);
      await this.drop(ended);
    }
  }

  /** Drops all temporary tables and views. */
  async dropAll(): Promise<void> {
    const { tables } = this;
    this.tables = [];
    await this.drop(tables);
  }

  /**
   * Drops the objects by their current names. Views are dropped first, because they read tables.
   */
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

  /** Returns the rows of a statement; for small results only. */
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

type CreatingStatement = Pick<PreparedStatement, 'description' | 'temporary'>;
