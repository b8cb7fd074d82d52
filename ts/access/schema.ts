/** The existing tables, views and columns, from the engine's catalog. */
import type { Database } from '../session/index.js';
import { parse } from '../sql/index.js';
import { fold, type Schema } from './model.js';

/** A column, with an ID that does not change when its name or type changes. */
export interface Column {
  readonly id: number;
  readonly name: string;
}

interface Shape {
  readonly name: string;
  readonly columns: readonly Column[];
  readonly timestamp: string | null;
  readonly isView: boolean;
}

/** A catalog snapshot. */
export class CurrentSchema implements Schema {
  readonly #shapes: ReadonlyMap<string, Shape>;

  constructor(shapes: readonly Shape[]) {
    this.#shapes = new Map(shapes.map((shape) => [fold(shape.name), shape]));
  }

  tables(): readonly string[] {
    return [...this.#shapes.values()].map(({ name }) => name);
  }

  columns(table: string): readonly string[] {
    return this.identified(table).map(({ name }) => name);
  }

  /** Returns the table's columns with their IDs; none if the table does not exist. */
  identified(table: string): readonly Column[] {
    return this.#shapes.get(fold(table))?.columns ?? [];
  }

  has(table: string): boolean {
    return this.#shapes.has(fold(table));
  }

  isView(table: string): boolean {
    return this.#shapes.get(fold(table))?.isView === true;
  }

  timestamp(table: string): string | null {
    return this.#shapes.get(fold(table))?.timestamp ?? null;
  }
}

/** Calls a function, so that no table of that name can shadow it. */
const SCHEMA = 'SELECT name, column_name, designated, column_id FROM access_schema()';

export async function readSchema(database: Database): Promise<CurrentSchema> {
  const shapes = new Map<string, { columns: Column[]; timestamp: string | null }>();
  for (const [name, column, isDesignated, id] of await readRows(database, SCHEMA)) {
    const known = shapes.get(String(name)) ?? { columns: [], timestamp: null };
    shapes.set(String(name), known);
    if (typeof column === 'string') {
      known.columns.push({ id: Number(id), name: column });
      known.timestamp = isDesignated === true ? column : known.timestamp;
    }
  }
  return new CurrentSchema(
    [...shapes].map(([name, { columns, timestamp }]) => ({
      name,
      columns,
      timestamp,
      isView: columns.length === 0,
    })),
  );
}

/** Returns all rows of a query; for small results only. */
export async function readRows(database: Database, sql: string): Promise<readonly unknown[][]> {
  const tree = Buffer.from(JSON.stringify(parse(sql)));
  const statement = await database.prepare(tree, { user: 'access', text: sql });
  try {
    const { chunk, stream } = await statement.execute([], { rows: { format: 'json' } });
    const parts = [chunk?.bytes ?? Buffer.alloc(0)];
    for (let next = await stream?.next(); next != null; next = await stream?.next()) {
      parts.push(next.bytes);
    }
    return JSON.parse(`[${Buffer.concat(parts).toString('utf8')}]`) as unknown[][];
  } finally {
    statement.close();
  }
}
