/** Opens saved notebooks in a tab, without running them. */
import * as notebooks from '../api/notebooks.js';
import { openPage } from '../page/pages.js';
import { savedNotebookOf } from './sync.js';
import type { Workspace } from '../state/workspace.js';

/** Activates the tab that contains the notebook, or opens the notebook in a new tab. */
export async function openSaved(workspace: Workspace, id: string): Promise<void> {
  if (!select(workspace, id)) {
    add(workspace, await notebooks.open(id));
  }
}

export async function openLink(workspace: Workspace, link: string): Promise<void> {
  const opened = await notebooks.openLinked(link);
  if (!select(workspace, opened.id)) {
    add(workspace, opened, link);
  }
}

function select(workspace: Workspace, id: string): boolean {
  const tab = workspace.tabs.find(({ notebook }) => notebook?.kept?.id === id);
  if (tab) {
    openPage('sql');
    workspace.select(tab.id);
  }
  return tab !== undefined;
}

function add(workspace: Workspace, opened: notebooks.Opened, link?: string): void {
  openPage('sql');
  const savedNotebook = savedNotebookOf(opened, opened.text, link);
  workspace.addNotebook(opened.title, opened.text, { approved: false, kept: savedNotebook });
}

/**
 * Returns the console's URL for a shared notebook. `link` is the id that the owner's link contains.
 */
export function addressOfLink(link: string): string {
  const { origin, pathname } = location;
  return `${origin}${pathname}#notebooks/${link}`;
}
