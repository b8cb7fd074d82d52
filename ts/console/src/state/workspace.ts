/**
 * The tabs of the workspace: their texts, which one is in front, what each of them ran.
 * Texts are saved a moment after each change and come back after a reload.
 */
import { createSignal, type Accessor } from 'solid-js';
import { createStore, produce } from 'solid-js/store';
import { Runner, type Run, type StatementText } from './run.js';
import { load, save, saveAtOnce } from './store.js';

/** What a tab shows that follows a table instead of running statements. */
export interface FollowSpec {
  readonly table: string;
  /** How many of the last rows. */
  readonly rows: number;
  readonly view: 'grid' | 'chart';
}

/** What a tab is that shows a notebook; its draft is the notebook's text. */
interface NotebookSpec {
  /** Whether its statements may run by themselves; not before the user has run one of them. */
  readonly approved: boolean;
}

export interface Tab {
  readonly id: string;
  title: string;
  draft: string;
  /** Values of the draft's parameters, by name. */
  parameters?: Readonly<Record<string, string>>;
  follow?: FollowSpec;
  notebook?: NotebookSpec;
}

export interface LogEntry {
  readonly run: Run;
  readonly at: Date;
  readonly tab: string;
}

export type ResultView = 'grid' | 'chart' | 'plan' | 'log';

interface Saved {
  readonly tabs: readonly Tab[];
  readonly active: string;
  /** Closed tabs, the newest first. */
  readonly closed?: readonly Tab[];
}

const SAVE_AFTER_MS = 300;
const LOG_ENTRIES = 200;
const KEPT_CLOSED = 50;

const FIRST_DRAFT = '-- Ctrl+Enter runs the statement under the cursor\nSELECT * FROM tables();\n';

export class Workspace {
  readonly active: Accessor<string>;
  readonly savedAt: Accessor<Date | undefined>;
  readonly log: Accessor<readonly LogEntry[]>;
  readonly view: Accessor<ResultView>;
  readonly setView: (view: ResultView) => void;
  /** Closed tabs that can come back, the newest first. */
  readonly closed: Accessor<readonly Tab[]>;
  readonly #state: { readonly tabs: readonly Tab[] };
  readonly #setState: ReturnType<typeof createStore<{ tabs: Tab[] }>>[1];
  readonly #setClosed: (tabs: readonly Tab[]) => void;
  readonly #setActive: (id: string) => void;
  readonly #setSavedAt: (at: Date) => void;
  readonly #setLog: (update: (log: readonly LogEntry[]) => readonly LogEntry[]) => void;
  readonly #runners = new Map<string, Runner>();
  /** There is one from a change until it is saved. */
  #saveTimer: ReturnType<typeof setTimeout> | undefined;
  #lastNumber = 0;

  private constructor(saved: Saved | undefined) {
    const tabs = saved?.tabs.length ? saved.tabs.map((tab) => ({ ...tab })) : [];
    this.#lastNumber = tabs.length;
    if (tabs.length === 0) {
      tabs.push(this.#newTab(FIRST_DRAFT));
    }
    const [state, setState] = createStore({ tabs });
    const known = tabs.some((tab) => tab.id === saved?.active);
    const [active, setActive] = createSignal((known ? saved?.active : tabs[0]?.id) ?? '');
    const [savedAt, setSavedAt] = createSignal<Date>();
    const [log, setLog] = createSignal<readonly LogEntry[]>([]);
    const [view, setView] = createSignal<ResultView>('grid');
    const [closed, setClosed] = createSignal<readonly Tab[]>(saved?.closed ?? []);
    this.closed = closed;
    this.#setClosed = setClosed;
    this.#state = state;
    this.active = active;
    this.savedAt = savedAt;
    this.log = log;
    this.view = view;
    this.setView = setView;
    this.#setState = setState;
    this.#setActive = setActive;
    this.#setSavedAt = setSavedAt;
    this.#setLog = setLog;
  }

  static async open(): Promise<Workspace> {
    const workspace = new Workspace(await load<Saved>('tabs'));
    addEventListener('pagehide', () => workspace.#saveLast());
    return workspace;
  }

  /** There is always at least one. */
  get tabs(): readonly Tab[] {
    return this.#state.tabs;
  }

  get activeDraft(): string {
    const tab = this.tabs.find(({ id }) => id === this.active());
    return tab?.notebook ? '' : (tab?.draft ?? '');
  }

  /** Whether the user has written nothing here yet. */
  get isUntouched(): boolean {
    return this.tabs.length === 1 && this.activeDraft === FIRST_DRAFT;
  }

  runner(id: string): Runner {
    let runner = this.#runners.get(id);
    if (!runner) {
      this.#runners.set(id, (runner = new Runner()));
    }
    return runner;
  }

  select(id: string): void {
    this.#setActive(id);
    this.#saveSoon();
  }

  /** Selects the tab `steps` further on, around the ends. */
  step(steps: number): void {
    const index = this.tabs.findIndex((tab) => tab.id === this.active());
    const next = this.tabs.at((index + steps) % this.tabs.length);
    if (next) {
      this.select(next.id);
    }
  }

  add(draft = ''): Tab {
    const tab = this.#newTab(draft);
    this.#setState('tabs', (tabs) => [...tabs, tab]);
    this.select(tab.id);
    return tab;
  }

  /** Adds a tab that follows a table; its draft is the query of its rows. */
  addFollow(spec: FollowSpec, draft: string): void {
    const tab = { ...this.#newTab(draft), title: `Follow ${spec.table}`, follow: spec };
    this.#setState('tabs', (tabs) => [...tabs, tab]);
    this.select(tab.id);
  }

  /** Adds a tab with a notebook. */
  addNotebook(title: string, draft: string, spec: NotebookSpec): Tab {
    const kept = title.trim().slice(0, LONGEST_TITLE) || 'Notebook';
    const tab = { ...this.#newTab(draft), title: kept, notebook: spec };
    this.#setState('tabs', (tabs) => [...tabs, tab]);
    this.select(tab.id);
    return tab;
  }

  /** From now on the statements of a notebook may run by themselves. */
  approveNotebook(id: string): void {
    this.#change(id, (tab) => (tab.notebook = { approved: true }));
  }

  setFollow(id: string, change: Partial<FollowSpec>): void {
    this.#change(id, (tab) => {
      if (tab.follow) {
        tab.follow = { ...tab.follow, ...change };
      }
    });
  }

  /** What the tab in front follows, if it does. */
  get activeFollow(): FollowSpec | undefined {
    return this.tabs.find(({ id }) => id === this.active())?.follow;
  }

  /** Whether the tab in front shows something else than an editor and a result. */
  get isWithoutEditor(): boolean {
    const tab = this.tabs.find(({ id }) => id === this.active());
    return (tab?.follow ?? tab?.notebook) !== undefined;
  }

  /** Takes a tab away; an empty one takes its place when it was the last. */
  close(id: string): Tab | undefined {
    const index = this.tabs.findIndex((tab) => tab.id === id);
    const closed = this.tabs[index];
    if (!closed) {
      return undefined;
    }
    this.#runners.get(id)?.cancel();
    this.#runners.delete(id);
    const kept = copyOf(closed);
    if (kept.draft.trim() !== '') {
      this.#setClosed([kept, ...this.closed()].slice(0, KEPT_CLOSED));
    }
    if (this.tabs.length === 1) {
      this.add();
    } else if (this.active() === id) {
      this.select(this.tabs[index === 0 ? 1 : index - 1]?.id ?? '');
    }
    this.#setState('tabs', (tabs) => tabs.filter((tab) => tab.id !== id));
    this.#saveSoon();
    return kept;
  }

  /** Puts a closed tab back at the end. */
  restore(tab: Tab): void {
    this.#setClosed(this.closed().filter(({ id }) => id !== tab.id));
    this.#setState('tabs', (tabs) => [...tabs, { ...tab }]);
    this.select(tab.id);
  }

  rename(id: string, title: string): void {
    const kept = title.trim().slice(0, LONGEST_TITLE);
    if (kept !== '') {
      this.#change(id, (tab) => (tab.title = kept));
    }
  }

  /** Moves a tab to a place, counted from the left. */
  move(id: string, to: number): void {
    const tabs = [...this.tabs];
    const [tab] = tabs.splice(
      tabs.findIndex((candidate) => candidate.id === id),
      1,
    );
    if (tab) {
      tabs.splice(Math.max(0, Math.min(tabs.length, to)), 0, tab);
      this.#setState('tabs', tabs);
      this.#saveSoon();
    }
  }

  setParameter(id: string, name: string, value: string): void {
    this.#change(id, (tab) => (tab.parameters = { ...tab.parameters, [name]: value }));
  }

  parametersOf(id: string): Readonly<Record<string, string>> {
    return this.tabs.find((tab) => tab.id === id)?.parameters ?? {};
  }

  /** All open tabs as a text that `importTabs` reads. */
  exportTabs(): string {
    const tabs = this.tabs.map(({ title, draft, notebook }) => ({
      title,
      draft,
      ...(notebook ? { notebook: true } : {}),
    }));
    return `${JSON.stringify({ format: TABS_FORMAT, tabs }, null, 2)}\n`;
  }

  /** Adds the tabs of an exported text; returns how many. Throws when it is not one. */
  importTabs(text: string): number {
    const tabs = tabsOf(text).map(({ draft, ...rest }) => ({ ...this.#newTab(draft), ...rest }));
    this.#setState('tabs', (before) => [...before, ...tabs]);
    this.select(tabs.at(-1)?.id ?? this.active());
    return tabs.length;
  }

  setDraft(id: string, draft: string): void {
    this.#change(id, (tab) => (tab.draft = draft));
  }

  async run(id: string, statement: StatementText): Promise<Run> {
    const finished = await this.runner(id).start(statement);
    const title = this.tabs.find((tab) => tab.id === id)?.title ?? '';
    const entry = { run: finished, at: new Date(), tab: title };
    this.#setLog((log) => [entry, ...log].slice(0, LOG_ENTRIES));
    return finished;
  }

  #change(id: string, change: (tab: Tab) => void): void {
    this.#setState(
      produce((state) => {
        const tab = state.tabs.find((candidate) => candidate.id === id);
        if (tab) {
          change(tab);
        }
      }),
    );
    this.#saveSoon();
  }

  #newTab(draft: string): Tab {
    const number = ++this.#lastNumber;
    // Not randomUUID: browsers offer it on secure origins only, and plain HTTP in a LAN is not one.
    return { id: `${Date.now().toString(36)}-${number}`, title: `Query ${number}`, draft };
  }

  /** Saves what was to be saved in a moment: the page is about to be left. */
  async saveNow(): Promise<void> {
    clearTimeout(this.#saveTimer);
    await this.#save();
  }

  #saveSoon(): void {
    clearTimeout(this.#saveTimer);
    this.#saveTimer = setTimeout(() => void this.#save(), SAVE_AFTER_MS);
  }

  /** Keeps what is not saved yet: anything else may be older than what another window has saved. */
  #saveLast(): void {
    if (this.#saveTimer !== undefined) {
      saveAtOnce('tabs', this.#saved());
    }
  }

  #saved(): Saved {
    const tabs = this.tabs.map(copyOf);
    return { tabs, active: this.active(), closed: this.closed() };
  }

  async #save(): Promise<void> {
    const timer = this.#saveTimer;
    if (await save('tabs', this.#saved())) {
      this.#setSavedAt(new Date());
      if (this.#saveTimer === timer) {
        this.#saveTimer = undefined;
      }
    }
  }
}

/** Of what a tab has, without the store's wrapping, which the browser's database refuses. */
function copyOf({ parameters, follow, notebook, ...tab }: Tab): Tab {
  return {
    ...tab,
    ...(parameters ? { parameters: { ...parameters } } : {}),
    ...(follow ? { follow: { ...follow } } : {}),
    ...(notebook ? { notebook: { ...notebook } } : {}),
  };
}

const TABS_FORMAT = 'tidemark-tabs';
const LONGEST_TITLE = 80;

function tabsOf(text: string): Pick<Tab, 'title' | 'draft' | 'notebook'>[] {
  const value = JSON.parse(text) as { format?: unknown; tabs?: unknown } | null;
  const tabs: unknown = value?.format === TABS_FORMAT ? value.tabs : undefined;
  if (!Array.isArray(tabs)) {
    throw new Error(`not a file of tabs: "format" is not "${TABS_FORMAT}"`);
  }
  return tabs.map((entry: unknown, index) => {
    const { title, draft, notebook } = (entry ?? {}) as Readonly<Record<string, unknown>>;
    if (typeof title !== 'string' || typeof draft !== 'string') {
      throw new Error(`tab ${index + 1} has no title or no draft`);
    }
    const kept = { title: title.slice(0, LONGEST_TITLE), draft };
    return notebook === true ? { ...kept, notebook: { approved: false } } : kept;
  });
}
