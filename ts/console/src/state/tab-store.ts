/**
 * Stores the tabs. Each tab is one record, which is written when the tab changes and sent to the
 * console's other windows. If two windows change a tab, the later change wins; a window never
 * overwrites a later change from another window.
 */
import { load, loadAll, remove, saveAtOnce, saveDated, workspaceId } from './store.js';
import type { Dated } from '../api/workspace.js';
import type { Tab } from './tab.js';

export interface TabRecord extends Dated {
  readonly tab: Tab;
  /** Sort key that determines the order of tabs. */
  readonly place: number;
  /** Time at which the tab was closed; absent for an open tab. */
  readonly closedAt?: number;
}

interface StoredTabs {
  readonly records: readonly TabRecord[];
  /** Id of the active tab. */
  readonly active: string | undefined;
}

/** All tabs in a single value, as stored by earlier versions of the console. */
interface LegacyTabs {
  readonly tabs: readonly Tab[];
  readonly active: string;
  readonly closed?: readonly Tab[];
}

const PREFIX = 'tab/';
const LEGACY_KEY = 'tabs';
const ACTIVE = 'active-tab';
const CHANNEL = 'tidemark-tabs';
const SAVE_AFTER_MS = 300;
export const MAX_CLOSED_TABS = 50;

export class TabStore {
  /** Called when another window has changed a tab. */
  onChange: ((record: TabRecord) => void) | undefined;
  readonly #saved: (at: Date) => void;
  readonly #channel = new BroadcastChannel(CHANNEL + workspaceId());
  /** Time of the last change to each tab, in any window. */
  readonly #changed = new Map<string, number>();
  readonly #positions = new Map<string, number>();
  /** Records that are not saved yet. */
  readonly #waiting = new Map<string, TabRecord>();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(saved: (at: Date) => void) {
    this.#saved = saved;
    this.#channel.onmessage = ({ data }: MessageEvent<TabRecord>) => this.#take(data);
    addEventListener('pagehide', () => this.#savePending());
    document.addEventListener('visibilitychange', () => document.hidden && void this.flush());
  }

  async open(): Promise<StoredTabs> {
    const found = await loadAll<TabRecord>(PREFIX);
    const legacy = workspaceId() === '' ? await load<LegacyTabs>(LEGACY_KEY) : undefined;
    if (legacy) {
      for (const record of separated(legacy)) {
        found.set(PREFIX + record.tab.id, found.get(PREFIX + record.tab.id) ?? record);
      }
      if (await saveDated(found)) {
        await remove([LEGACY_KEY]);
      }
    }
    const records = [...found.values()];
    for (const { tab, changed, place } of records) {
      this.#changed.set(tab.id, changed);
      this.#positions.set(tab.id, place);
    }
    const forgotten = records
      .filter(({ closedAt }) => closedAt !== undefined)
      .sort(byClosing)
      .slice(MAX_CLOSED_TABS);
    void remove(forgotten.map(({ tab }) => PREFIX + tab.id));
    const active = sessionStorage.getItem(ACTIVE) ?? localStorage.getItem(ACTIVE);
    return {
      records: records.filter((record) => !forgotten.includes(record)),
      active: active ?? legacy?.active,
    };
  }

  /** Saves a tab after a short delay. A new tab is placed last. */
  put(tab: Tab, change: { readonly place?: number; readonly closedAt?: number } = {}): void {
    this.note(tab, change);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.flush(), SAVE_AFTER_MS);
  }

  /** Saves a tab together with the next change to any tab. */
  note(tab: Tab, { place, ...closing }: { place?: number; closedAt?: number } = {}): void {
    const changed = Math.max(Date.now(), (this.#changed.get(tab.id) ?? 0) + 1);
    const position = place ?? this.#positions.get(tab.id) ?? Date.now();
    this.#changed.set(tab.id, changed);
    this.#positions.set(tab.id, position);
    this.#waiting.set(tab.id, { tab, place: position, changed, ...closing });
  }

  positionOf(id: string): number {
    return this.#positions.get(id) ?? Infinity;
  }

  /** Stores the active tab, both for this window and as the initial tab of new windows. */
  setActive(id: string): void {
    try {
      sessionStorage.setItem(ACTIVE, id);
      localStorage.setItem(ACTIVE, id);
    } catch {
      // Storage is disabled: the active tab is not remembered.
    }
  }

  /** Saves pending changes immediately. */
  async flush(): Promise<void> {
    clearTimeout(this.#timer);
    const records = [...this.#waiting.values()];
    if (records.length === 0) {
      return;
    }
    records.forEach((record) => this.#channel.postMessage(record));
    if (await saveDated(named(records))) {
      // Records are removed only after the save. If the page is closed before that, `saveAtOnce`
      // stores them.
      for (const record of records) {
        if (this.#waiting.get(record.tab.id) === record) {
          this.#waiting.delete(record.tab.id);
        }
      }
      this.#saved(new Date());
    }
  }

  #take(record: TabRecord): void {
    const { tab, changed, place } = record;
    if (changed <= (this.#changed.get(tab.id) ?? 0)) {
      return;
    }
    this.#changed.set(tab.id, changed);
    this.#positions.set(tab.id, place);
    this.#waiting.delete(tab.id);
    this.onChange?.(record);
  }

  #savePending(): void {
    const records = [...this.#waiting.values()];
    records.forEach((record) => this.#channel.postMessage(record));
    saveAtOnce(named(records));
  }
}

function named(records: readonly TabRecord[]): Map<string, TabRecord> {
  return new Map(records.map((record) => [PREFIX + record.tab.id, record]));
}

/** Orders tabs by closing time, most recently closed first. */
export function byClosing(left: TabRecord, right: TabRecord): number {
  return (right.closedAt ?? 0) - (left.closedAt ?? 0);
}

function separated({ tabs, closed = [] }: LegacyTabs): TabRecord[] {
  const open = tabs.map((tab, index) => ({ tab, place: index, changed: 0 }));
  const closedRecords = closed.map((tab, index) => ({
    tab,
    place: tabs.length,
    changed: 0,
    closedAt: closed.length - index,
  }));
  return [...open, ...closedRecords];
}
