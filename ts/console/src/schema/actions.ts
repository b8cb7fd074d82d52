/** Menu actions for a table in the schema tree. */
import { EXPORT_FORMATS, FORMAT_NAMES, query } from '../api/client.js';
import { showFailure, showToast } from '../page/notices.js';
import { confirmDrop } from '../dialogs/confirm-drop.js';
import { copy } from '../ui/clipboard.js';
import { confirmed } from '../page/questions.js';
import { download } from '../ui/files.js';
import type { MenuItem } from '../ui/Menu.js';
import { openPage } from '../page/pages.js';
import type { Session } from '../state/session.js';
import { createStatement } from '../state/schema.js';
import { KIND_LABELS, type TableEntry } from '../model/schema.js';
import { quoted } from '../sql/names.js';
import { editor } from '../state/editor.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

const PREVIEW_ROWS = 1000;

export function previewTable(session: Session, table: TableEntry): void {
  session.statements.preview(`SELECT * FROM ${quoted(table.name)} LIMIT ${PREVIEW_ROWS}`);
}

export function tableActions(session: Session, table: TableEntry): MenuItem[] {
  const { name } = table;
  const isTable = table.kind === 'table';
  const items: (MenuItem | false)[] = [
    {
      label: texts.schema.previewRows,
      icon: 'play',
      keys: 'Shift+Enter',
      run: () => previewTable(session, table),
    },
    table.kind !== 'view' && {
      label: texts.schema.showDetails,
      icon: 'tables',
      run: () => openPage('tables', name),
    },
    table.kind !== 'view' && {
      label: texts.common.follow,
      icon: 'follow',
      run: () => session.tabs.follow(name),
    },
    {
      label: texts.schema.insertName,
      icon: 'sql',
      run: () => editor()?.insert(quoted(name)),
    },
    {
      label: texts.common.copyName,
      icon: 'copy',
      divider: true,
      run: () => void copy(name, texts.common.name),
    },
    {
      label: texts.common.copyDdl,
      icon: 'copy',
      run: () => void copyStatement(table).catch(showFailure),
    },
    ...EXPORT_FORMATS.map((format, index): MenuItem => ({
      label: fill(texts.schema.downloadAs, { format: FORMAT_NAMES[format] }),
      icon: 'export',
      divider: index === 0,
      run: () => void download(name, `SELECT * FROM ${quoted(name)}`, format),
    })),
    isTable && {
      label: texts.schema.importInto,
      icon: 'import',
      run: () => openPage('import', name),
    },
    isTable &&
      table.suspended && {
        label: texts.schema.showDamage,
        icon: 'alert',
        divider: true,
        run: () => session.statements.preview(`RECOVER TABLE ${quoted(name)}`),
      },
    isTable &&
      table.suspended && {
        label: texts.schema.recoverAction,
        icon: 'refresh',
        run: () => void recoverTable(session, name),
      },
    {
      label: fill(texts.common.dropAction, { kind: KIND_LABELS[table.kind] }),
      icon: 'alert',
      divider: true,
      run: () => void dropTable(session, table),
    },
  ];
  return items.filter((item) => item !== false);
}

async function copyStatement(table: TableEntry): Promise<void> {
  await copy(await createStatement(table.name, table.kind), 'DDL');
}

async function dropTable(session: Session, table: TableEntry): Promise<void> {
  const statement = await confirmDrop(table);
  if (statement !== undefined) {
    await run(session, statement, fill(texts.common.wasDropped, { name: table.name }));
  }
}

async function recoverTable(session: Session, name: string): Promise<void> {
  const statement = `RECOVER TABLE ${quoted(name)} SKIP`;
  const isSure = await confirmed({
    title: fill(texts.schema.recoverQuestion, { name }),
    text: texts.schema.recoverConsequences,
    statement,
    cancel: texts.common.cancel,
    destroy: fill(texts.schema.recover, { name }),
  });
  if (isSure) {
    await run(session, statement, fill(texts.schema.recovered, { name }));
  }
}

async function run(session: Session, statement: string, done: string): Promise<void> {
  await query(statement).then(() => showToast({ text: done }), showFailure);
  await session.schema.refresh();
}
