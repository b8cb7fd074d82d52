/** The tables, views and columns there are, as the engine's own catalog tells them. */
import type { Database } from '../session/index.js';
import { parse } from '../sql/index.js';
import { fold, type Schema } from './model.js';

interface Shape {
  readonly name: string;
  readonly columns: readonly string[];
  readonly timestamp: string | null;
  readonly isView: boolean;
}

/** The catalog at one moment. */
export class CurrentSchema implements Schema {
  readonly #shapes: ReadonlyMap<string, Shape>;

  constructor(shapes: readonly Shape[]) {
    this.#shapes = new Map(shapes.map((shape) => [fold(shape.name), shape]));
  }

  tables(): readonly string[] {
    return [...this.#shapes.values()].map(({ name }) => name);
  }

  columns(table: string): readonly string[] {
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

const COLUMNS = `SELECT table_name, column_name FROM information_schema.columns
  ORDER BY table_name, ordinal_position`;
const TABLES = 'SELECT table_name, designatedTimestamp FROM tables()';
const VIEWS = 'SELECT view_name FROM views()';

export async function readSchema(database: Database): Promise<CurrentSchema> {
  const [tables, views, columns] = [
    await readRows(database, TABLES),
    await readRows(database, VIEWS),
    await readRows(database, COLUMNS),
  ];
  const byTable = new Map<string, string[]>();
  for (const [table = '', column = ''] of columns) {
    const key = fold(String(table));
    byTable.set(key, [...(byTable.get(key) ?? []), String(column)]);
  }
  const viewNames = new Set(views.map(([name]) => fold(String(name))));
  const shapes: Shape[] = tables
    .filter(([name]) => !viewNames.has(fold(String(name))))
    .map(([name, timestamp]) => ({
      name: String(name),
      columns: byTable.get(fold(String(name))) ?? [],
      timestamp: typeof timestamp === 'string' && timestamp !== '' ? timestamp : null,
      isView: false,
    }));
  const viewShapes = views.map(([name]) => ({
    name: String(name),
    columns: [],
    timestamp: null,
    isView: true,
  }));
  return new CurrentSchema([...shapes, ...viewShapes]);
}

/** All rows of a query; for few and short ones. */
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
