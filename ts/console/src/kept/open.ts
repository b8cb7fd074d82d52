/** Opening what the server keeps in a tab; nothing of it runs. */
import * as notebooks from '../api/notebooks.js';
import { openPage } from '../shell/pages.js';
import type { Session } from '../state/session.js';
import { keptOf } from './keeper.js';

/** Brings the tab that has it to the front, or opens one. */
export async function openKept(session: Session, id: string): Promise<void> {
  if (!select(session, id)) {
    add(session, await notebooks.open(id));
  }
}

export async function openLink(session: Session, link: string): Promise<void> {
  const opened = await notebooks.openLinked(link);
  if (!select(session, opened.id)) {
    add(session, opened, link);
  }
}

function select({ workspace }: Session, id: string): boolean {
  const tab = workspace.tabs.find(({ notebook }) => notebook?.kept?.id === id);
  if (tab) {
    openPage('sql');
    workspace.select(tab.id);
  }
  return tab !== undefined;
}

function add({ workspace }: Session, opened: notebooks.Opened, link?: string): void {
  openPage('sql');
  const kept = keptOf(opened, opened.text, link);
  workspace.addNotebook(opened.title, opened.text, { approved: false, kept });
}

/** The address of a link that the owner has made. */
export function addressOfLink(link: string): string {
  const { origin, pathname } = location;
  return `${origin}${pathname}#notebooks/${link}`;
}
