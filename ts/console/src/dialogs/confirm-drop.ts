/** Asks the user to confirm before a table or view is dropped. */
import { rowsText } from '../model/format.js';
import { keywordsOf, KIND_LABELS, type TableEntry } from '../model/schema.js';
import { quoted } from '../sql/names.js';
import { confirmed } from '../page/questions.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

/** A table with more rows can be dropped only if the user types its name. */
const MANY_ROWS = 1_000_000;

/**
 * Asks for confirmation. Returns the statement that drops the table or view, or `undefined` if the
 * user cancels.
 */
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
