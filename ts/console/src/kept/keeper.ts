/**
 * Connects a tab's notebook with its version on the server: saves it, and detects versions that
 * other users have saved.
 */
import type { Accessor } from 'solid-js';
import * as notebooks from '../api/notebooks.js';
import { SqlError } from '../api/client.js';
import { showFailure, showToast } from '../page/notices.js';
import type { KeptNotebook, Tab } from '../state/tab.js';
import type { Workspace } from '../state/workspace.js';
import { signal } from '../model/signal.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

const GONE = 404;

export class Keeper {
  readonly #isSaving = signal(false);
  readonly isSaving: Accessor<boolean> = this.#isSaving;
  readonly #newer = signal<notebooks.Opened | undefined>(undefined);
  /** Version that another user has saved since this tab read the notebook. */
  readonly newer: Accessor<notebooks.Opened | undefined> = this.#newer;
  readonly #workspace: Workspace;
  readonly #tab: Tab;

  constructor(workspace: Workspace, tab: Tab) {
    this.#workspace = workspace;
    this.#tab = tab;
  }

  get kept(): KeptNotebook | undefined {
    return this.#tab.notebook?.kept;
  }

  get title(): string {
    return this.#tab.title;
  }

  /** Restores the text of an earlier version as the draft. */
  restore(text: string): void {
    this.#workspace.setDraft(this.#tab.id, text);
  }

  /** Whether the tab has changes that are not saved on the server. */
  get isChanged(): boolean {
    const { kept } = this;
    return kept?.text !== this.#tab.draft || kept.title !== this.#tab.title;
  }

  /** Saves the notebook: as the next version, or as a new notebook of this user. */
  async save(text = this.#tab.draft, based = this.kept?.version): Promise<void> {
    const { kept } = this;
    if (this.isSaving()) {
      return;
    }
    this.#isSaving.set(true);
    try {
      const { title } = this.#tab;
      const isOwn = kept !== undefined && kept.access !== 'read' && based !== undefined;
      const saved = isOwn
        ? await notebooks.save(kept.id, based, { title, text })
        : await notebooks.create(title, text);
      this.#workspace.keepNotebook(this.#tab.id, keptOf(saved, text));
      this.#newer.set(undefined);
      showToast({
        text: fill(texts.saving.versionSaved, { title: saved.title, version: saved.version }),
      });
    } catch (cause) {
      await this.#failed(cause);
    } finally {
      this.#isSaving.set(false);
    }
  }

  async #failed(cause: unknown): Promise<void> {
    if (cause instanceof notebooks.Outdated) {
      await this.look();
      return;
    }
    if (cause instanceof SqlError && cause.status === GONE) {
      this.#workspace.keepNotebook(this.#tab.id, undefined);
      showFailure(texts.saving.notebookGone);
      return;
    }
    showFailure(cause);
  }

  /**
   * Checks whether another user has saved a newer version. Failures are ignored; the next check
   * follows.
   */
  async look(): Promise<void> {
    const { kept } = this;
    if (kept === undefined || document.hidden) {
      return;
    }
    try {
      const { id, link, version } = kept;
      const now = await (link === undefined
        ? notebooks.look(id, version)
        : notebooks.openLinked(link));
      if (now.version !== this.kept?.version) {
        const text = now.text ?? (await notebooks.open(kept.id)).text;
        this.#newer.set({ ...now, text });
      } else if (now.access !== kept.access) {
        this.#workspace.keepNotebook(this.#tab.id, { ...kept, access: now.access });
      }
    } catch {
      // Connection failures are reported elsewhere. That the notebook was deleted is reported on
      // the next save.
    }
  }

  /** Replaces the notebook with the other user's version; local changes move to a new notebook. */
  takeTheirs(): void {
    const newer = this.newer();
    const workspace = this.#workspace;
    if (!newer) {
      return;
    }
    if (this.isChanged) {
      const { title, draft } = this.#tab;
      workspace.addNotebook(`${title} (mine)`, draft, { approved: false });
      workspace.select(this.#tab.id);
    }
    workspace.replaceNotebook(this.#tab.id, keptOf(newer, newer.text, this.kept?.link));
    this.#newer.set(undefined);
  }

  /** Uses a merged text as the draft, and saves it over the other user's version. */
  async saveMerged(text: string): Promise<void> {
    const newer = this.newer();
    if (newer) {
      this.#workspace.replaceNotebook(this.#tab.id, keptOf(newer, newer.text), text);
      this.#newer.set(undefined);
      await this.save(text, newer.version);
    }
  }
}

export function keptOf(
  { id, version, title, access }: notebooks.Listed,
  text: string,
  link?: string,
): KeptNotebook {
  return { id, version, title, access, text, ...(link === undefined ? {} : { link }) };
}
