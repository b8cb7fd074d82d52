/** Creates notebooks: empty notebooks, or notebooks from a file or from the log. */
import { showFailure, showToast } from '../page/notices.js';
import { saveFile } from '../ui/files.js';
import { openPage } from '../page/pages.js';
import type { Tab } from '../state/tab.js';
import { MAX_FILE_BYTES, NotebookError, read, write } from '../cells/file.js';
import { EMPTY, MAX_CELLS, newId, type Cell, type NotebookSettings } from '../cells/model.js';
import type { Workspace } from '../state/workspace.js';
import { fill } from '../fill.js';
import { countText } from '../model/format.js';
import { texts } from '../texts.js';

export function create(workspace: Workspace): void {
  add(workspace, [{ kind: 'sql', id: newId(), name: 'cell_1', text: '', view: 'grid' }]);
}

/** Creates an empty notebook in grid layout that refreshes when its tables change. */
export function createDashboard(workspace: Workspace): void {
  add(workspace, [], { name: texts.notebook.dashboard, layout: 'grid', refresh: 'changes' });
}

/**
 * Creates a notebook from the completed statements in the log, oldest first and without duplicates.
 */
export function fromLog(workspace: Workspace, log = workspace.log()): void {
  const done = log.filter(({ run }) => run.state === 'done');
  const statements = [...new Set(done.map(({ run }) => run.statement.text))].slice(0, MAX_CELLS);
  if (statements.length === 0) {
    showFailure(texts.notebook.nothingInLog);
    return;
  }
  const cells = statements.reverse().map((text, index): Cell => ({
    kind: 'sql',
    id: newId(),
    name: `cell_${index + 1}`,
    text,
    view: 'grid',
  }));
  add(workspace, cells);
}

function add(
  workspace: Workspace,
  cells: readonly Cell[],
  { name, ...settings }: { name: string } & Partial<NotebookSettings> = {
    name: texts.common.notebook,
  },
): void {
  openPage('sql');
  const numbers = workspace.tabs.filter(({ notebook }) => notebook).length + 1;
  const spec = { approved: true };
  const text = write({ ...EMPTY, ...settings, cells });
  workspace.addNotebook(`${name} ${numbers}`, text, spec);
}

/** Opens a file that the user selects, without running any of its statements. */
export function open(workspace: Workspace): void {
  const input = document.createElement('input');
  input.type = 'file';
  input.accept = '.md,text/markdown,text/plain';
  input.onchange = () => void openFile(workspace, input.files?.[0]);
  input.click();
}

async function openFile(workspace: Workspace, file: File | undefined): Promise<void> {
  if (!file) {
    return;
  }
  if (file.size > MAX_FILE_BYTES) {
    showFailure(fill(texts.notebook.fileTooLarge, { name: file.name }));
    return;
  }
  const text = await file.text();
  openPage('sql');
  workspace.addNotebook(file.name.replace(/\.md$/i, ''), text, { approved: false });
  try {
    const { cells } = read(text);
    const count = countText(cells.length, texts.counts.cells);
    showToast({ text: fill(texts.notebook.opened, { name: file.name, cells: count }) });
  } catch (cause) {
    if (cause instanceof NotebookError) {
      showFailure(
        fill(texts.notebook.openedAsText, { name: file.name, message: sentence(cause.message) }),
      );
      return;
    }
    throw cause;
  }
}

export function sentence(message: string): string {
  const text = message.charAt(0).toUpperCase() + message.slice(1);
  return /[.:]$/.test(text) ? text : `${text}.`;
}

/** Offers the notebook as a download. */
export function exportFile({ title, draft }: Pick<Tab, 'title' | 'draft'>): void {
  const name = title.replace(/[^\p{L}\p{N}._ -]+/gu, '_').trim() || 'notebook';
  saveFile(`${name}.md`, 'text/markdown', draft);
}
