/** The ways to a notebook: a new one, one of a file, one of what has been run. */
import { showFailure, showToast } from '../shell/announce.js';
import { saveFile } from '../shell/files.js';
import { openPage } from '../shell/pages.js';
import type { Session } from '../state/session.js';
import type { Tab } from '../state/tab.js';
import { LARGEST_FILE, NotebookError, read, write } from './file.js';
import { EMPTY, MOST_CELLS, newId, type Cell, type NotebookSettings } from './model.js';

export function create(session: Session): void {
  add(session, [{ kind: 'sql', id: newId(), name: 'cell_1', text: '', view: 'grid' }]);
}

/** A grid without cells, refreshed when its tables change. */
export function createDashboard(session: Session): void {
  add(session, [], { name: 'Dashboard', layout: 'grid', refresh: 'changes' });
}

/** Each statement that ran to its end once, the oldest first. */
export function fromLog(session: Session, log = session.workspace.log()): void {
  const done = log.filter(({ run }) => run.state === 'done');
  const texts = [...new Set(done.map(({ run }) => run.statement.text))].slice(0, MOST_CELLS);
  if (texts.length === 0) {
    showFailure('Nothing has run yet that could become a notebook.');
    return;
  }
  const cells = texts.reverse().map((text, index): Cell => ({
    kind: 'sql',
    id: newId(),
    name: `cell_${index + 1}`,
    text,
    view: 'grid',
  }));
  add(session, cells);
}

function add(
  session: Session,
  cells: readonly Cell[],
  { name, ...settings }: { name: string } & Partial<NotebookSettings> = { name: 'Notebook' },
): void {
  openPage('sql');
  const numbers = session.workspace.tabs.filter(({ notebook }) => notebook).length + 1;
  const spec = { approved: true };
  const text = write({ ...EMPTY, ...settings, cells });
  session.workspace.addNotebook(`${name} ${numbers}`, text, spec);
}

/** Opens a file that the user chooses; nothing of it runs. */
export function open(session: Session): void {
  const input = document.createElement('input');
  input.type = 'file';
  input.accept = '.md,text/markdown,text/plain';
  input.onchange = () => void openFile(session, input.files?.[0]);
  input.click();
}

async function openFile(session: Session, file: File | undefined): Promise<void> {
  if (!file) {
    return;
  }
  if (file.size > LARGEST_FILE) {
    showFailure(`${file.name} was not opened: it is larger than 4 MiB.`);
    return;
  }
  const text = await file.text();
  openPage('sql');
  session.workspace.addNotebook(file.name.replace(/\.md$/i, ''), text, { approved: false });
  try {
    const { cells } = read(text);
    const count = `${cells.length} ${cells.length === 1 ? 'cell' : 'cells'}`;
    showToast({ text: `${file.name}: ${count}. Nothing has run.` });
  } catch (cause) {
    if (cause instanceof NotebookError) {
      showFailure(`${file.name} is shown as a text. ${sentence(cause.message)}`);
      return;
    }
    throw cause;
  }
}

export function sentence(message: string): string {
  const text = message.charAt(0).toUpperCase() + message.slice(1);
  return /[.:]$/.test(text) ? text : `${text}.`;
}

/** Offers the notebook as a file. */
export function exportFile({ title, draft }: Pick<Tab, 'title' | 'draft'>): void {
  const name = title.replace(/[^\p{L}\p{N}._ -]+/gu, '_').trim() || 'notebook';
  saveFile(`${name}.md`, 'text/markdown', draft);
}
