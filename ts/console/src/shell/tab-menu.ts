/**
 * Menu actions for tabs: reopen closed tabs, export all tabs to a file, and import tabs from a
 * file.
 */
import { withNotebooks } from '../notebook/load.js';
import type { Session } from '../state/session.js';
import { showFailure, showToast } from '../page/notices.js';
import { saveFile } from '../ui/files.js';
import type { MenuItem } from '../ui/Menu.js';
import { messageOf } from '../model/message.js';
import { fill } from '../fill.js';
import { countText } from '../model/format.js';
import { texts } from '../texts.js';

const SHOWN_CLOSED = 10;

export function tabMenu(session: Session, rename: () => void): MenuItem[] {
  const { workspace } = session;
  const closed = workspace.closed().slice(0, SHOWN_CLOSED);
  return [
    { label: texts.tabs.renameTab, keys: 'F2', run: rename },
    {
      label: texts.common.closeTab,
      keys: 'Alt+W',
      run: () => session.tabs.close(workspace.active()),
    },
    {
      label: texts.common.newNotebook,
      divider: true,
      run: () => withNotebooks((all) => all.create(workspace)),
    },
    {
      label: texts.common.newDashboard,
      run: () => withNotebooks((all) => all.createDashboard(workspace)),
    },
    {
      label: texts.common.openNotebookFile,
      run: () => withNotebooks((all) => all.open(workspace)),
    },
    {
      label: texts.common.notebookFromLog,
      run: () => withNotebooks((all) => all.fromLog(workspace)),
    },
    { label: texts.common.exportAllTabs, divider: true, run: () => exportTabs(session) },
    { label: texts.common.importTabs, run: () => importTabs(session) },
    ...closed.map((tab, index) => ({
      label: fill(texts.tabs.reopen, { title: tab.title }),
      divider: index === 0,
      run: () => workspace.restore(tab),
    })),
  ];
}

export function exportTabs({ workspace }: Session): void {
  saveFile('tidemark-tabs.json', 'application/json', workspace.exportTabs());
}

export function importTabs(session: Session): void {
  const input = document.createElement('input');
  input.type = 'file';
  input.accept = '.json,application/json';
  input.onchange = () => void readTabs(session, input.files?.[0]);
  input.click();
}

async function readTabs({ workspace }: Session, file: File | undefined): Promise<void> {
  if (!file) {
    return;
  }
  try {
    const count = workspace.importTabs(await file.text());
    showToast({ text: countText(count, texts.tabs.imported) });
  } catch (cause) {
    const why = messageOf(cause);
    showFailure(fill(texts.tabs.wasNotImported, { name: file.name, reason: why }));
  }
}
