/**
 * Links that contain SQL text. The text is stored in the URL fragment, which browsers do not send
 * to servers.
 */
import { editor } from '../state/editor.js';
import type { Workspace } from '../state/workspace.js';
import { copy } from '../ui/clipboard.js';
import { texts } from '../texts.js';

const MARK = '#query=';

/** Returns a URL that opens a SQL text in this console. */
function linkTo(text: string): string {
  const { origin, pathname } = location;
  return `${origin}${pathname}${MARK}${encodeURIComponent(text)}`;
}

/** Copies a link that opens the statement under the cursor, or the whole tab. */
export function copyLink(workspace: Workspace, all: boolean): void {
  const text = all ? workspace.activeDraft : editor()?.statementToRun()?.text;
  void copy(linkTo(text ?? ''), all ? texts.tabs.linkTab : texts.tabs.linkStatement);
}

/** Removes the shared text from the URL and returns it, so that the link runs only once. */
export function takeShared(): string | undefined {
  const { hash, pathname, search } = location;
  if (!hash.startsWith(MARK)) {
    return undefined;
  }
  history.replaceState(null, '', pathname + search);
  try {
    return decodeURIComponent(hash.slice(MARK.length));
  } catch {
    return undefined;
  }
}
