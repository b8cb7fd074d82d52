/** Asks before a table or view is dropped. */
import { grouped } from '../model/format.js';
import { KIND_WORDS, type TableEntry } from '../model/schema.js';
import { quoted } from '../sql/names.js';
import { confirmed } from '../page/questions.js';

/** Maximum rows of a table that is dropped without typing its name. */
const MANY_ROWS = 1_000_000;

/** Returns the statement that drops a table or view, once the user has confirmed. */
export async function askToDrop(table: TableEntry): Promise<string | undefined> {
  const statement = `DROP ${KIND_WORDS[table.kind].toUpperCase()} ${quoted(table.name)}`;
  const rows = table.rows === undefined ? '' : `${grouped(String(table.rows))} rows. `;
  const isSure = await confirmed({
    title: `Drop the ${KIND_WORDS[table.kind]} ${table.name}?`,
    text: `${rows}This cannot be undone.`,
    statement,
    keep: 'Cancel',
    destroy: `Drop ${table.name}`,
    ...((table.rows ?? 0) > MANY_ROWS ? { typed: table.name } : {}),
  });
  return isSure ? statement : undefined;
}
