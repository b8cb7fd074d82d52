/**
 * The workspace's tabs: their text, the active tab, and their runs. Text is saved shortly after
 * each change, survives a reload, and is shared between windows.
 */
import { createSignal, type Accessor } from 'solid-js';
import { createStore, produce, reconcile } from 'solid-js/store';
import { forgetLog, storeEntry, storedLog, LOG_ENTRIES, type LogEntry } from './history.js';
import type { Versions } from './lazy-rows.js';
import { Runner, type Run, type StatementText } from './run.js';
import type { ChartSpec, FollowSpec, SavedNotebook, NotebookSpec, ResultView, Tab } from './tab.js';
import { byClosing, MAX_CLOSED_TABS, TabStore, type TabRecord } from './tab-store.js';
import { signal } from '../model/signal.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

const FIRST_TAB = 'first';
const FIRST_DRAFT = `-- ${texts.tabs.firstDraft}\nSELECT * FROM tables();\n`;

export class Workspace {
  readonly #active = signal('');
  readonly active: Accessor<string> = this.#active;
  readonly savedAt: Accessor<Date | undefined>;
  readonly #log = signal<readonly LogEntry[]>([]);
  readonly log: Accessor<readonly LogEntry[]> = this.#log;
  readonly #closed = signal<readonly Tab[]>([]);
  /** Closed tabs that can be reopened, newest first. */
  readonly closed: Accessor<readonly Tab[]> = this.#closed;
  readonly #state: { readonly tabs: readonly Tab[] };
  readonly #setState: ReturnType<typeof createStore<{ tabs: Tab[] }>>[1];
  readonly #store: TabStore;
  readonly #runners = new Map<string, Runner>();
  /** Called when another window has changed the text of a tab. */
  onRewritten: ((tab: string, text: string) => void) | undefined;
  /** Called when another window has closed a tab. */
  onClosed: ((tab: string) => void) | undefined;
  /** Returns the last known versions of the tables. */
  versions: () => Versions = () => new Map();
  #lastNumber = 0;

  private constructor(
    store: TabStore,
    { records, active: activeId }: Awaited<ReturnType<TabStore['open']>>,
    savedAt: Accessor<Date | undefined>,
  ) {
    const open = records.filter(({ closedAt }) => closedAt === undefined);
    const closedRecords = records.filter(({ closedAt }) => closedAt !== undefined).sort(byClosing);
    const tabs = open.sort((left, right) => left.place - right.place).map(({ tab }) => copyOf(tab));
    this.#store = store;
    this.#lastNumber = tabs.length;
    if (tabs.length === 0) {
      // Empty windows that open at the same time get the same first tab.
      const firstTab = this.#newTab(FIRST_DRAFT);
      const first = records.length === 0 ? { ...firstTab, id: FIRST_TAB } : firstTab;
      tabs.push(first);
      store.note(copyOf(first), { place: 0 });
    }
    const [state, setState] = createStore({ tabs });
    const known = tabs.some((tab) => tab.id === activeId);
    this.#active.set((known ? activeId : tabs[0]?.id) ?? '');
    this.#closed.set(closedRecords.map(({ tab }) => tab));
    this.#state = state;
    this.savedAt = savedAt;
    this.#setState = setState;
    store.onChange = (record) => this.#take(record);
    void storedLog().then((stored) => this.#log.set([...this.log(), ...stored]));
  }

  static async open(): Promise<Workspace> {
    const [savedAt, setSavedAt] = createSignal<Date>();
    const store = new TabStore(setSavedAt);
    return new Workspace(store, await store.open(), savedAt);
  }

  /** The open tabs; never empty. */
  get tabs(): readonly Tab[] {
    return this.#state.tabs;
  }

  /** Result view of the active tab. */
  view(): ResultView {
    return this.tabs.find((tab) => tab.id === this.active())?.view ?? 'grid';
  }

  setView(view: ResultView): void {
    if (view !== this.view()) {
      this.#change(this.active(), (tab) => (tab.view = view));
    }
  }

  /** Chart settings of the active tab, if they apply to these columns. */
  chart(columns: string): ChartSpec {
    const chart = this.tabs.find((tab) => tab.id === this.active())?.chart;
    return chart?.columns === columns ? chart : {};
  }

  setChart(columns: string, change: ChartSpec): void {
    const chart = { ...this.chart(columns), ...change, columns };
    this.#change(this.active(), (tab) => (tab.chart = chart));
  }

  get activeDraft(): string {
    const tab = this.tabs.find(({ id }) => id === this.active());
    return tab?.notebook ? '' : (tab?.draft ?? '');
  }

  /** True if the user has not written any text yet. */
  get isUntouched(): boolean {
    return this.tabs.length === 1 && this.activeDraft === FIRST_DRAFT;
  }

  runner(id: string): Runner {
    let runner = this.#runners.get(id);
    if (!runner) {
      this.#runners.set(id, (runner = new Runner(() => this.versions())));
    }
    return runner;
  }

  select(id: string): void {
    this.#active.set(id);
    this.#store.setActive(id);
  }

  /**
   * Activates the tab `steps` positions to the right. After the last tab, continues with the first.
   */
  step(steps: number): void {
    const index = this.tabs.findIndex((tab) => tab.id === this.active());
    const next = this.tabs.at((index + steps) % this.tabs.length);
    if (next) {
      this.select(next.id);
    }
  }

  add(draft = ''): Tab {
    const tab = this.#newTab(draft);
    this.#append(tab);
    return tab;
  }

  /**
   * Adds a tab that follows a table or a query. The tab's draft is the query that reads the
   * followed rows.
   */
  addFollow(spec: FollowSpec, draft: string): void {
    const tab = {
      ...this.#newTab(draft),
      title: fill(texts.common.followTable, { table: spec.table }),
      follow: spec,
    };
    this.#append(tab);
  }

  addNotebook(title: string, draft: string, spec: NotebookSpec): Tab {
    const shortTitle = title.trim().slice(0, MAX_TITLE_LENGTH) || texts.common.notebook;
    const tab = { ...this.#newTab(draft), title: shortTitle, notebook: spec };
    this.#append(tab);
    return tab;
  }

  /** Allows the statements of a notebook to run automatically. */
  approveNotebook(id: string): void {
    if (this.tabs.find((tab) => tab.id === id)?.notebook?.approved === false) {
      this.#changeNotebook(id, { approved: true });
    }
  }

  /**
   * Records the saved version of a notebook; `undefined` if the notebook exists only in this
   * browser.
   */
  setSaved(id: string, savedNotebook: SavedNotebook | undefined): void {
    this.#changeNotebook(id, { kept: savedNotebook });
  }

  /** Replaces a notebook with another user's version, which then does not run automatically. */
  replaceNotebook(id: string, savedNotebook: SavedNotebook, draft = savedNotebook.text): void {
    this.#change(id, (tab) => {
      tab.draft = draft;
      tab.title = savedNotebook.title;
      tab.notebook = { approved: false, kept: savedNotebook };
    });
  }

  #changeNotebook(id: string, change: { approved?: true; kept?: SavedNotebook | undefined }): void {
    this.#change(id, (tab) => {
      const { kept, ...rest } = { approved: false, ...tab.notebook, ...change };
      tab.notebook = kept ? { ...rest, kept } : rest;
    });
  }

  setFollow(id: string, change: Partial<FollowSpec>): void {
    this.#change(id, (tab) => {
      if (tab.follow) {
        tab.follow = { ...tab.follow, ...change };
      }
    });
  }

  /** The table or query that the active tab follows, if any. */
  get activeFollow(): FollowSpec | undefined {
    return this.tabs.find(({ id }) => id === this.active())?.follow;
  }

  /**
   * True if the active tab follows a table or shows a notebook instead of an editor and a result.
   */
  get isWithoutEditor(): boolean {
    const tab = this.tabs.find(({ id }) => id === this.active());
    return (tab?.follow ?? tab?.notebook) !== undefined;
  }

  /** Closes a tab. If it was the last tab, opens an empty one. */
  close(id: string): Tab | undefined {
    const closed = this.tabs.find((tab) => tab.id === id);
    if (!closed) {
      return undefined;
    }
    const copy = copyOf(closed);
    this.#store.put(copy, { closedAt: Date.now() });
    this.#remove(copy);
    return copy;
  }

  #remove(tab: Tab): void {
    const index = this.tabs.findIndex(({ id }) => id === tab.id);
    this.#runners.get(tab.id)?.cancel();
    this.#runners.delete(tab.id);
    if (tab.draft.trim() !== '') {
      const others = this.closed().filter(({ id }) => id !== tab.id);
      this.#closed.set([tab, ...others].slice(0, MAX_CLOSED_TABS));
    }
    if (this.tabs.length === 1) {
      this.add();
    } else if (this.active() === tab.id) {
      this.select(this.tabs[index === 0 ? 1 : index - 1]?.id ?? '');
    }
    this.#setState('tabs', (tabs) => tabs.filter(({ id }) => id !== tab.id));
  }

  /** Appends a closed tab to the open tabs. */
  restore(tab: Tab): void {
    this.#closed.set(this.closed().filter(({ id }) => id !== tab.id));
    this.#append({ ...tab });
  }

  #append(tab: Tab): void {
    this.#setState('tabs', (tabs) => [...tabs, tab]);
    this.#store.put(copyOf(tab), { place: Date.now() });
    this.select(tab.id);
  }

  /** Applies another window's change to a tab. */
  #take({ tab, closedAt }: TabRecord): void {
    const known = this.tabs.find(({ id }) => id === tab.id);
    if (closedAt !== undefined) {
      if (known) {
        this.#remove(tab);
        this.onClosed?.(tab.id);
      }
      return;
    }
    this.#closed.set(this.closed().filter(({ id }) => id !== tab.id));
    const tabs = [...this.tabs.filter(({ id }) => id !== tab.id), tab]
      .map((one) => copyOf(one))
      .sort((left, right) => this.#store.positionOf(left.id) - this.#store.positionOf(right.id));
    this.#setState('tabs', reconcile(tabs, { key: 'id' }));
    // The workspace's editor does not show notebooks, which have editors of their own.
    if (known && !tab.notebook) {
      this.onRewritten?.(tab.id, tab.draft);
    }
  }

  rename(id: string, title: string): void {
    const shortTitle = title.trim().slice(0, MAX_TITLE_LENGTH);
    if (shortTitle !== '') {
      this.#change(id, (tab) => (tab.title = shortTitle));
    }
  }

  /** Moves a tab to a position counted from the left. */
  move(id: string, to: number): void {
    const tabs = [...this.tabs];
    const [tab] = tabs.splice(
      tabs.findIndex((candidate) => candidate.id === id),
      1,
    );
    if (tab) {
      tabs.splice(Math.max(0, Math.min(tabs.length, to)), 0, tab);
      this.#setState('tabs', tabs);
      tabs.forEach((moved, index) => this.#store.put(copyOf(moved), { place: index }));
    }
  }

  setParameter(id: string, name: string, value: string): void {
    this.#change(id, (tab) => (tab.parameters = { ...tab.parameters, [name]: value }));
  }

  parametersOf(id: string): Readonly<Record<string, string>> {
    return this.tabs.find((tab) => tab.id === id)?.parameters ?? {};
  }

  /** Exports all open tabs in the format that `importTabs` reads. */
  exportTabs(): string {
    const tabs = this.tabs.map(({ title, draft, notebook }) => ({
      title,
      draft,
      ...(notebook ? { notebook: true } : {}),
    }));
    return `${JSON.stringify({ format: TABS_FORMAT, tabs }, null, 2)}\n`;
  }

  /**
   * Adds the tabs of an exported text and returns their number. Throws if the text is not an
   * export.
   */
  importTabs(text: string): number {
    const tabs = tabsOf(text);
    tabs.forEach(({ draft, ...rest }) => this.#append({ ...this.#newTab(draft), ...rest }));
    return tabs.length;
  }

  setDraft(id: string, draft: string): void {
    if (this.tabs.find((tab) => tab.id === id)?.draft !== draft) {
      this.#change(id, (tab) => (tab.draft = draft));
    }
  }

  async run(id: string, statement: StatementText): Promise<Run> {
    const finished = await this.runner(id).start(statement);
    const title = this.tabs.find((tab) => tab.id === id)?.title ?? '';
    const entry = { run: finished, at: new Date(), tab: title };
    this.#log.set([entry, ...this.log()].slice(0, LOG_ENTRIES));
    storeEntry(entry);
    return finished;
  }

  /** Stores a plan with the last run of its statement. */
  storePlan(text: string, plan: readonly string[]): void {
    const last = this.log().find(({ run }) => run.statement.text === text);
    if (last) {
      const entry = { ...last, plan };
      this.#log.set(this.log().map((one) => (one === last ? entry : one)));
      storeEntry(entry);
    }
  }

  async forgetLog(): Promise<void> {
    this.#log.set([]);
    await forgetLog();
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
    const changed = this.tabs.find((tab) => tab.id === id);
    if (changed) {
      this.#store.put(copyOf(changed));
    }
  }

  #newTab(draft: string): Tab {
    const number = ++this.#lastNumber;
    // `randomUUID` is not used because browsers offer it only on secure origins, which excludes
    // plain HTTP in a LAN.
    const [random = 0] = crypto.getRandomValues(new Uint32Array(1));
    const id = `${Date.now().toString(36)}-${random.toString(36)}`;
    return { id, title: fill(texts.tabs.queryTitle, { number }), draft };
  }

  /** Saves pending changes immediately. Called before the user leaves the page. */
  async saveNow(): Promise<void> {
    await this.#store.flush();
  }
}

/** Copies a tab without the store's proxies, which the browser's database cannot store. */
function copyOf({ parameters, follow, notebook, chart, ...tab }: Tab): Tab {
  return {
    ...tab,
    ...(parameters ? { parameters: { ...parameters } } : {}),
    ...(follow ? { follow: { ...follow } } : {}),
    ...(notebook ? { notebook: copyOfNotebook(notebook) } : {}),
    ...(chart
      ? { chart: { ...chart, options: { ...chart.options }, series: { ...chart.series } } }
      : {}),
  };
}

function copyOfNotebook({ approved, kept }: NotebookSpec): NotebookSpec {
  return { approved, ...(kept ? { kept: { ...kept } } : {}) };
}

const TABS_FORMAT = 'tidemark-tabs';
const MAX_TITLE_LENGTH = 80;

function tabsOf(text: string): Pick<Tab, 'title' | 'draft' | 'notebook'>[] {
  const value = JSON.parse(text) as { format?: unknown; tabs?: unknown } | null;
  const tabs: unknown = value?.format === TABS_FORMAT ? value.tabs : undefined;
  if (!Array.isArray(tabs)) {
    throw new Error(fill(texts.tabs.notATabExport, { format: TABS_FORMAT }));
  }
  return tabs.map((entry: unknown, index) => {
    const { title, draft, notebook } = (entry ?? {}) as Readonly<Record<string, unknown>>;
    if (typeof title !== 'string' || typeof draft !== 'string') {
      throw new Error(fill(texts.tabs.incompleteTab, { number: index + 1 }));
    }
    const copy = { title: title.slice(0, MAX_TITLE_LENGTH), draft };
    return notebook === true ? { ...copy, notebook: { approved: false } } : copy;
  });
}
