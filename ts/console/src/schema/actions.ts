/** Actions on a table of the tree. */
import { EXPORT_FORMATS, FORMAT_NAMES, query } from '../api/client.js';
import { showFailure, showToast } from '../page/notices.js';
import { askToDrop } from '../dialogs/ask-to-drop.js';
import { copy } from '../ui/clipboard.js';
import { confirmed } from '../page/questions.js';
import { download } from '../ui/files.js';
import type { MenuItem } from '../ui/Menu.js';
import { openPage } from '../page/pages.js';
import type { Session } from '../state/session.js';
import { createStatement } from '../state/schema.js';
import { KIND_WORDS, type TableEntry } from '../model/schema.js';
import { quoted } from '../sql/names.js';
import { editor } from '../state/editor.js';

const PREVIEW_ROWS = 1000;

export function previewTable(session: Session, table: TableEntry): void {
  session.statements.preview(`SELECT * FROM ${quoted(table.name)} LIMIT ${PREVIEW_ROWS}`);
}

export function tableActions(session: Session, table: TableEntry): MenuItem[] {
  const { name } = table;
  const isTable = table.kind === 'table';
  const items: (MenuItem | false)[] = [
    {
      label: 'Preview rows',
      icon: 'play',
      keys: 'Shift+Enter',
      run: () => previewTable(session, table),
    },
    table.kind !== 'view' && {
      label: 'Show details',
      icon: 'tables',
      run: () => openPage('tables', name),
    },
    table.kind !== 'view' && {
      label: 'Follow',
      icon: 'follow',
      run: () => session.tabs.follow(name),
    },
    {
      label: 'Insert name',
      icon: 'sql',
      run: () => editor()?.insert(quoted(name)),
    },
    { label: 'Copy name', icon: 'copy', apart: true, run: () => void copy(name, 'Name') },
    { label: 'Copy DDL', icon: 'copy', run: () => void copyStatement(table).catch(showFailure) },
    ...EXPORT_FORMATS.map((format, index): MenuItem => ({
      label: `Download as ${FORMAT_NAMES[format]}`,
      icon: 'export',
      apart: index === 0,
      run: () => void download(name, `SELECT * FROM ${quoted(name)}`, format),
    })),
    isTable && { label: 'Import into…', icon: 'import', run: () => openPage('import', name) },
    isTable &&
      table.suspended && {
        label: 'Show damage',
        icon: 'alert',
        apart: true,
        run: () => session.statements.preview(`RECOVER TABLE ${quoted(name)}`),
      },
    isTable &&
      table.suspended && {
        label: 'Recover intact data…',
        icon: 'refresh',
        run: () => void recoverTable(session, name),
      },
    {
      label: `Drop ${KIND_WORDS[table.kind]}…`,
      icon: 'alert',
      apart: true,
      run: () => void dropTable(session, table),
    },
  ];
  return items.filter((item) => item !== false);
}

async function copyStatement(table: TableEntry): Promise<void> {
  await copy(await createStatement(table.name, table.kind), 'DDL');
}

async function dropTable(session: Session, table: TableEntry): Promise<void> {
  const statement = await askToDrop(table);
  if (statement !== undefined) {
    await run(session, statement, `${table.name} was dropped`);
  }
}

async function recoverTable(session: Session, name: string): Promise<void> {
  const statement = `RECOVER TABLE ${quoted(name)} SKIP`;
  const isSure = await confirmed({
    title: `Discard the damaged parts of ${name}?`,
    text: 'Their rows are lost; "Show damage" lists them. This cannot be undone.',
    statement,
    keep: 'Cancel',
    destroy: `Recover ${name}`,
  });
  if (isSure) {
    await run(session, statement, `${name} accepts writes again`);
  }
}

async function run(session: Session, statement: string, done: string): Promise<void> {
  await query(statement).then(() => showToast({ text: done }), showFailure);
  await session.schema.refresh();
}
