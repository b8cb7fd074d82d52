/** Opens, closes and reopens tabs. */
import { quoted } from '../sql/names.js';
import { editor } from './editor.js';
import { announce, showToast } from '../page/notices.js';
import { openPage } from '../page/pages.js';
import type { Problems } from './problems.js';
import type { Results } from './results.js';
import type { Workspace } from './workspace.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

interface TabsContext {
  readonly workspace: Workspace;
  readonly problems: Problems;
  readonly results: Results;
}

const FOLLOWED_ROWS = 500;

export class Tabs {
  readonly #context: TabsContext;
  readonly #workspace: Workspace;

  constructor(context: TabsContext) {
    this.#context = context;
    this.#workspace = context.workspace;
  }

  /** Opens a text in a new tab. */
  edit(text: string): void {
    openPage('sql');
    this.#workspace.add(text);
    editor()?.focus();
  }

  /** Stores text as the user types it. */
  edited(tab: string, text: string): void {
    // A notebook has its own editors, which store their text.
    if (this.#workspace.tabs.find(({ id }) => id === tab)?.notebook === undefined) {
      this.#workspace.setDraft(tab, text);
    }
  }

  /** Follows the last rows of a table in a new tab. */
  follow(table: string): void {
    openPage('sql');
    const spec = { table, rows: FOLLOWED_ROWS, view: 'grid' } as const;
    this.#workspace.addFollow(spec, `SELECT * FROM ${quoted(table)} LIMIT -${FOLLOWED_ROWS};\n`);
  }

  /** Follows the last rows of a query in a new tab. */
  async followQuery(query: string): Promise<void> {
    const { isQuery } = await import('../sql/effects.js');
    if (!isQuery(query)) {
      showToast({ text: texts.tabs.onlyQueriesFollowed });
      return;
    }
    const workspace = this.#workspace;
    const table = workspace.tabs.find(({ id }) => id === workspace.active())?.title ?? '';
    const spec = { table, query, rows: FOLLOWED_ROWS, view: 'grid' } as const;
    workspace.addFollow(spec, `${query};\n`);
  }

  close(id: string): void {
    const closed = this.#workspace.close(id);
    if (!closed) {
      return;
    }
    this.forget(id);
    if (closed.draft.trim() === '') {
      return;
    }
    showToast({
      text: fill(texts.tabs.wasClosed, { title: closed.title }),
      action: { label: texts.common.undo, run: () => this.#workspace.restore(closed) },
    });
  }

  /** Removes a deleted tab's state from the editor, the problem list and the browser. */
  forget(id: string): void {
    editor()?.forget(id);
    void this.#context.results.forget(id);
    this.#context.problems.clear(id);
  }

  /** Reopens the tab that was closed last. */
  reopen(): void {
    const [last] = this.#workspace.closed();
    if (last) {
      this.#workspace.restore(last);
    } else {
      announce(texts.tabs.nothingToReopen);
    }
  }
}
