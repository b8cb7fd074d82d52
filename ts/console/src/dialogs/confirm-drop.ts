/** Asks for confirmation before a table or view is dropped. */
import { rowsText } from '../model/format.js';
import { keywordsOf, KIND_LABELS, type TableEntry } from '../model/schema.js';
import { quoted } from '../sql/names.js';
import { confirmed } from '../page/questions.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

/** Maximum number of rows of a table that can be dropped without typing its name. */
const MANY_ROWS = 1_000_000;

/** Returns the statement that drops a table or view, once the user has confirmed. */
export async function confirmDrop(table: TableEntry): Promise<string | undefined> {
  const statement = `DROP ${keywordsOf(table.kind)} ${quoted(table.name)}`;
  const rows = table.rows === undefined ? '' : `${rowsText(table.rows)}. `;
  const isSure = await confirmed({
    title: fill(texts.common.dropQuestion, { kind: KIND_LABELS[table.kind], name: table.name }),
    text: fill(texts.dialogs.dropConsequences, { rows }),
    statement,
    cancel: texts.common.cancel,
    destroy: fill(texts.common.drop, { name: table.name }),
    ...((table.rows ?? 0) > MANY_ROWS ? { typed: table.name } : {}),
  });
  return isSure ? statement : undefined;
}
