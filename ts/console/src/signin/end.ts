/**
 * Ends a signed-in page after the user, the server, the provider or another window has signed the
 * user out. The document is replaced, because its memory still contains the user's data.
 */
import { clearRecords, sealUnsaved, UNSAVED } from '../state/store.js';
import type { Workspace } from '../state/workspace.js';
import { exited, forgetUser, leaveNotice, signedInUser } from './memory.js';

/** Maximum time that a sign-out waits for changes to be saved if the server does not respond. */
const MAX_SAVE_MS = 3000;

interface Ending {
  readonly workspace: Workspace;
  readonly user: string;
  /** Reason for the sign-out, shown on the next page. */
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
  // Replaces this history entry, so that the back button does not restore the page. The fragment is
  // dropped because it may name tables.
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
