/**
 * The only way to leave a signed-in page, whether initiated by the button, the server, the provider
 * or another window. The data that the user saw is still in the page's memory, so the document is
 * replaced.
 */
import { clearRecords, sealUnsaved, UNSAVED } from '../state/store.js';
import type { Workspace } from '../state/workspace.js';
import { exited, forgetUser, leaveNotice, signedInUser } from './memory.js';

/** Maximum delay of a sign-out while the server does not respond. */
const MAX_SAVE_MS = 3000;

interface Ending {
  readonly workspace: Workspace;
  readonly user: string;
  /** Reason shown on the next page. */
  readonly notice: string | undefined;
  /** URL to open next; the sign-in page by default. */
  readonly address?: URL;
}

let isEnding = false;

export async function endPage({ workspace, user, notice, address }: Ending): Promise<void> {
  if (isEnding) {
    return;
  }
  isEnding = true;
  document.body.replaceChildren();
  await saveInTime(workspace);
  await sealUnsaved();
  // If another user has signed in in a different window, the stored data belongs to that user.
  if ([undefined, user].includes(signedInUser())) {
    exited();
    await forgetBrowser();
  }
  if (notice !== undefined) {
    leaveNotice(notice);
  }
  // Replaces this history entry, so that going back does not restore the page. The fragment is
  // omitted because it may name tables.
  location.replace(address ?? location.pathname);
}

export async function saveInTime(workspace: Workspace): Promise<void> {
  const limit = new Promise<void>((resolve) => setTimeout(resolve, MAX_SAVE_MS));
  await Promise.race([workspace.saveNow(), limit]);
}

/** Removes all data of a user from this browser, except the data that is encrypted for the user. */
export async function forgetBrowser(): Promise<void> {
  forgetUser(UNSAVED);
  await clearRecords((name) => name === 'editor-height');
}
