/**
 * Synchronizes a tab's notebook with the server: saves the notebook, and detects versions that
 * other users have saved.
 */
import type { Accessor } from 'solid-js';
import * as notebooks from '../api/notebooks.js';
import { SqlError } from '../api/client.js';
import { showFailure, showToast } from '../page/notices.js';
import type { SavedNotebook, Tab } from '../state/tab.js';
import type { Workspace } from '../state/workspace.js';
import { signal } from '../model/signal.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

const NOT_FOUND = 404;

export class NotebookSync {
  readonly #isSaving = signal(false);
  readonly isSaving: Accessor<boolean> = this.#isSaving;
  readonly #newer = signal<notebooks.Opened | undefined>(undefined);
  /** The version that another user has saved since this tab read the notebook. */
  readonly newer: Accessor<notebooks.Opened | undefined> = this.#newer;
  readonly #workspace: Workspace;
  readonly #tab: Tab;

  constructor(workspace: Workspace, tab: Tab) {
    this.#workspace = workspace;
    this.#tab = tab;
  }

  get savedNotebook(): SavedNotebook | undefined {
    return this.#tab.notebook?.kept;
  }

  get title(): string {
    return this.#tab.title;
  }

  /** Replaces the draft with the text of an earlier version. */
  restore(text: string): void {
    this.#workspace.setDraft(this.#tab.id, text);
  }

  /** True if the tab has changes that are not saved on the server. */
  get isChanged(): boolean {
    const { savedNotebook } = this;
    return savedNotebook?.text !== this.#tab.draft || savedNotebook.title !== this.#tab.title;
  }

  /** Saves the notebook as its next version, or as a new notebook of this user. */
  async save(text = this.#tab.draft, based = this.savedNotebook?.version): Promise<void> {
    const { savedNotebook } = this;
    if (this.isSaving()) {
      return;
    }
    this.#isSaving.set(true);
    try {
      const { title } = this.#tab;
      const isOwn =
        savedNotebook !== undefined && savedNotebook.access !== 'read' && based !== undefined;
      const saved = isOwn
        ? await notebooks.save(savedNotebook.id, based, { title, text })
        : await notebooks.create(title, text);
      this.#workspace.setSaved(this.#tab.id, savedNotebookOf(saved, text));
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
      await this.poll();
      return;
    }
    if (cause instanceof SqlError && cause.status === NOT_FOUND) {
      this.#workspace.setSaved(this.#tab.id, undefined);
      showFailure(texts.saving.notebookGone);
      return;
    }
    showFailure(cause);
  }

  /**
   * Checks whether another user has saved a newer version. Errors are ignored, because the check is
   * repeated.
   */
  async poll(): Promise<void> {
    const { savedNotebook } = this;
    if (savedNotebook === undefined || document.hidden) {
      return;
    }
    try {
      const { id, link, version } = savedNotebook;
      const now = await (link === undefined
        ? notebooks.poll(id, version)
        : notebooks.openLinked(link));
      if (now.version !== this.savedNotebook?.version) {
        const text = now.text ?? (await notebooks.open(savedNotebook.id)).text;
        this.#newer.set({ ...now, text });
      } else if (now.access !== savedNotebook.access) {
        this.#workspace.setSaved(this.#tab.id, { ...savedNotebook, access: now.access });
      }
    } catch {
      // Connection errors are reported elsewhere. If the notebook was deleted, the next save
      // reports it.
    }
  }

  /** Replaces the notebook with the other user's version. Local changes move to a new notebook. */
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
    workspace.replaceNotebook(
      this.#tab.id,
      savedNotebookOf(newer, newer.text, this.savedNotebook?.link),
    );
    this.#newer.set(undefined);
  }

  /** Replaces the draft with a merged text, and saves it on top of the other user's version. */
  async saveMerged(text: string): Promise<void> {
    const newer = this.newer();
    if (newer) {
      this.#workspace.replaceNotebook(this.#tab.id, savedNotebookOf(newer, newer.text), text);
      this.#newer.set(undefined);
      await this.save(text, newer.version);
    }
  }
}

export function savedNotebookOf(
  { id, version, title, access }: notebooks.Listed,
  text: string,
  link?: string,
): SavedNotebook {
  return { id, version, title, access, text, ...(link === undefined ? {} : { link }) };
}
