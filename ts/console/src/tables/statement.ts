/** The statement that makes a table or view, as the server writes it. */
import { query } from '../api/client.js';
import { quoted, type TableEntry } from '../schema/model.js';

const WORDS = { table: 'TABLE', view: 'VIEW', materialized: 'MATERIALIZED VIEW' } as const;

export async function createStatement(name: string, kind: TableEntry['kind']): Promise<string> {
  const { rows } = await query(`SHOW CREATE ${WORDS[kind]} ${quoted(name)}`);
  return rows.map((row) => String(row[0])).join('\n');
}
