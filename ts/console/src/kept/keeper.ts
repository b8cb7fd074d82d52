/** A notebook of a tab and what the server keeps of it: saving, and what others have saved. */
import type { Accessor } from 'solid-js';
import * as notebooks from '../api/notebooks.js';
import { SqlError } from '../api/client.js';
import { showFailure, showToast } from '../page/notices.js';
import type { KeptNotebook, Tab } from '../state/tab.js';
import type { Workspace } from '../state/workspace.js';
import { signal } from '../model/signal.js';

const GONE = 404;

export class Keeper {
  readonly #isSaving = signal(false);
  readonly isSaving: Accessor<boolean> = this.#isSaving;
  readonly #newer = signal<notebooks.Opened | undefined>(undefined);
  /** What someone else has saved since this was read. */
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

  /** Makes the text of an earlier version the draft. */
  restore(text: string): void {
    this.#workspace.setDraft(this.#tab.id, text);
  }

  /** Whether there is something that the server does not have. */
  get isChanged(): boolean {
    const { kept } = this;
    return kept?.text !== this.#tab.draft || kept.title !== this.#tab.title;
  }

  /** Keeps the notebook as it is now: as the next version, or as a notebook of the user's own. */
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
      showToast({ text: `${saved.title}: version ${saved.version} is kept` });
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
      showFailure('The server has this notebook no longer, or not for you. Save keeps it anew.');
      return;
    }
    showFailure(cause);
  }

  /** Looks whether someone else has saved meanwhile. What is not answered is asked again later. */
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
      // The connection is reported elsewhere; a notebook that is gone when it is saved.
    }
  }

  /** Takes what someone else has saved; what was changed here becomes a notebook of its own. */
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

  /** Makes a text that has both people's changes the draft, and saves it over theirs. */
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
