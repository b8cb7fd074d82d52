/** The statement that makes a table or view, as the server writes it. */
import { query } from '../api/client.js';
import { KIND_WORDS, quoted, type TableKind } from '../schema/model.js';

export async function createStatement(name: string, kind: TableKind): Promise<string> {
  const { rows } = await query(`SHOW CREATE ${KIND_WORDS[kind].toUpperCase()} ${quoted(name)}`);
  return rows.map((row) => String(row[0])).join('\n');
}
