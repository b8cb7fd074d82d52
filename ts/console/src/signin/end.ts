/**
 * The one way out of a signed-in page, whatever ends it: the button, the server, the provider or
 * another window. What the user saw is in the memory of the page, so the document is replaced: the
 * new one has none of it.
 */
import { clearRecords, sealUnsaved, UNSAVED } from '../state/store.js';
import type { Workspace } from '../state/workspace.js';
import { exited, forgetUser, leaveNotice, signedInUser } from './memory.js';

/** A server that does not answer does not hold up the sign-out. */
const MAX_SAVE_MS = 3000;

interface Ending {
  readonly workspace: Workspace;
  readonly user: string;
  /** Why, for the next page. */
  readonly notice: string | undefined;
  /** Where the browser goes; unless said otherwise, to the sign-in page. */
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
  // Another user may have signed in in another window: what the browser has now is that user's.
  if ([undefined, user].includes(signedInUser())) {
    exited();
    await forgetBrowser();
  }
  if (notice !== undefined) {
    leaveNotice(notice);
  }
  // In place of this entry of the history: going back does not restore the page. Without the
  // fragment, which may name tables.
  location.replace(address ?? location.pathname);
}

export async function saveInTime(workspace: Workspace): Promise<void> {
  const limit = new Promise<void>((resolve) => setTimeout(resolve, MAX_SAVE_MS));
  await Promise.race([workspace.saveNow(), limit]);
}

/** Removes everything of a user from this browser but what is encrypted for the user. */
export async function forgetBrowser(): Promise<void> {
  forgetUser(UNSAVED);
  await clearRecords((name) => name === 'editor-height');
}
