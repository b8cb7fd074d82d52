/**
 * The tabs of the workspace: their texts, which one is in front, what each of them ran.
 * Texts are saved a moment after each change, come back after a reload, and are shared by windows.
 */
import { createSignal, type Accessor } from 'solid-js';
import { createStore, produce, reconcile } from 'solid-js/store';
import { forgetLog, keepEntry, keptLog, LOG_ENTRIES, type LogEntry } from './history.js';
import type { Versions } from './beyond.js';
import { Runner, type Run, type StatementText } from './run.js';
import type { ChartSpec, FollowSpec, KeptNotebook, NotebookSpec, ResultView, Tab } from './tab.js';
import { byClosing, KEPT_CLOSED, TabStore, type TabRecord } from './tab-store.js';
import { signal } from '../model/signal.js';

const FIRST_TAB = 'first';
const FIRST_DRAFT = '-- Ctrl+Enter runs the statement under the cursor\nSELECT * FROM tables();\n';

export class Workspace {
  readonly #active = signal('');
  readonly active: Accessor<string> = this.#active;
  readonly savedAt: Accessor<Date | undefined>;
  readonly #log = signal<readonly LogEntry[]>([]);
  readonly log: Accessor<readonly LogEntry[]> = this.#log;
  readonly #closed = signal<readonly Tab[]>([]);
  /** Closed tabs that can come back, the newest first. */
  readonly closed: Accessor<readonly Tab[]> = this.#closed;
  readonly #state: { readonly tabs: readonly Tab[] };
  readonly #setState: ReturnType<typeof createStore<{ tabs: Tab[] }>>[1];
  readonly #store: TabStore;
  readonly #runners = new Map<string, Runner>();
  /** Called with a text that another window has written into a tab. */
  onRewritten: ((tab: string, text: string) => void) | undefined;
  /** Called with a tab that another window has closed. */
  onClosed: ((tab: string) => void) | undefined;
  /** The versions of tables, as far as the page knows them. */
  versions: () => Versions = () => new Map();
  #lastNumber = 0;

  private constructor(
    store: TabStore,
    { records, active: wanted }: Awaited<ReturnType<TabStore['open']>>,
    savedAt: Accessor<Date | undefined>,
  ) {
    const open = records.filter(({ closedAt }) => closedAt === undefined);
    const shut = records.filter(({ closedAt }) => closedAt !== undefined).sort(byClosing);
    const tabs = open.sort((left, right) => left.place - right.place).map(({ tab }) => copyOf(tab));
    this.#store = store;
    this.#lastNumber = tabs.length;
    if (tabs.length === 0) {
      // Windows that begin with nothing at the same time begin with the same tab.
      const made = this.#newTab(FIRST_DRAFT);
      const first = records.length === 0 ? { ...made, id: FIRST_TAB } : made;
      tabs.push(first);
      store.note(copyOf(first), { place: 0 });
    }
    const [state, setState] = createStore({ tabs });
    const known = tabs.some((tab) => tab.id === wanted);
    this.#active.set((known ? wanted : tabs[0]?.id) ?? '');
    this.#closed.set(shut.map(({ tab }) => tab));
    this.#state = state;
    this.savedAt = savedAt;
    this.#setState = setState;
    store.onChange = (record) => this.#take(record);
    void keptLog().then((kept) => this.#log.set([...this.log(), ...kept]));
  }

  static async open(): Promise<Workspace> {
    const [savedAt, setSavedAt] = createSignal<Date>();
    const store = new TabStore(setSavedAt);
    return new Workspace(store, await store.open(), savedAt);
  }

  /** There is always at least one. */
  get tabs(): readonly Tab[] {
    return this.#state.tabs;
  }

  /** How the result of the tab in front is looked at. */
  view(): ResultView {
    return this.tabs.find((tab) => tab.id === this.active())?.view ?? 'grid';
  }

  setView(view: ResultView): void {
    if (view !== this.view()) {
      this.#change(this.active(), (tab) => (tab.view = view));
    }
  }

  /** What was chosen of the chart of the tab in front, where its result has these columns. */
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

  /** Whether the user has written nothing here yet. */
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
    this.#append(tab);
    return tab;
  }

  /** Adds a tab that follows a table or a query; its draft is the query of its rows. */
  addFollow(spec: FollowSpec, draft: string): void {
    const tab = { ...this.#newTab(draft), title: `Follow ${spec.table}`, follow: spec };
    this.#append(tab);
  }

  /** Adds a tab with a notebook. */
  addNotebook(title: string, draft: string, spec: NotebookSpec): Tab {
    const kept = title.trim().slice(0, MAX_TITLE_LENGTH) || 'Notebook';
    const tab = { ...this.#newTab(draft), title: kept, notebook: spec };
    this.#append(tab);
    return tab;
  }

  /** From now on the statements of a notebook may run by themselves. */
  approveNotebook(id: string): void {
    if (this.tabs.find((tab) => tab.id === id)?.notebook?.approved === false) {
      this.#changeNotebook(id, { approved: true });
    }
  }

  /** Notes what the server has of a notebook; nothing: it is in this browser alone. */
  keepNotebook(id: string, kept: KeptNotebook | undefined): void {
    this.#changeNotebook(id, { kept });
  }

  /** Takes over what someone else has made of a notebook: it runs nothing by itself. */
  replaceNotebook(id: string, kept: KeptNotebook, draft = kept.text): void {
    this.#change(id, (tab) => {
      tab.draft = draft;
      tab.title = kept.title;
      tab.notebook = { approved: false, kept };
    });
  }

  #changeNotebook(id: string, change: { approved?: true; kept?: KeptNotebook | undefined }): void {
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
    const closed = this.tabs.find((tab) => tab.id === id);
    if (!closed) {
      return undefined;
    }
    const kept = copyOf(closed);
    this.#store.put(kept, { closedAt: Date.now() });
    this.#takeAway(kept);
    return kept;
  }

  #takeAway(tab: Tab): void {
    const index = this.tabs.findIndex(({ id }) => id === tab.id);
    this.#runners.get(tab.id)?.cancel();
    this.#runners.delete(tab.id);
    if (tab.draft.trim() !== '') {
      const others = this.closed().filter(({ id }) => id !== tab.id);
      this.#closed.set([tab, ...others].slice(0, KEPT_CLOSED));
    }
    if (this.tabs.length === 1) {
      this.add();
    } else if (this.active() === tab.id) {
      this.select(this.tabs[index === 0 ? 1 : index - 1]?.id ?? '');
    }
    this.#setState('tabs', (tabs) => tabs.filter(({ id }) => id !== tab.id));
  }

  /** Puts a closed tab back at the end. */
  restore(tab: Tab): void {
    this.#closed.set(this.closed().filter(({ id }) => id !== tab.id));
    this.#append({ ...tab });
  }

  #append(tab: Tab): void {
    this.#setState('tabs', (tabs) => [...tabs, tab]);
    this.#store.put(copyOf(tab), { place: Date.now() });
    this.select(tab.id);
  }

  /** Takes over what another window has made of a tab. */
  #take({ tab, closedAt }: TabRecord): void {
    const known = this.tabs.find(({ id }) => id === tab.id);
    if (closedAt !== undefined) {
      if (known) {
        this.#takeAway(tab);
        this.onClosed?.(tab.id);
      }
      return;
    }
    this.#closed.set(this.closed().filter(({ id }) => id !== tab.id));
    const tabs = [...this.tabs.filter(({ id }) => id !== tab.id), tab]
      .map((one) => copyOf(one))
      .sort((left, right) => this.#store.placeOf(left.id) - this.#store.placeOf(right.id));
    this.#setState('tabs', reconcile(tabs, { key: 'id' }));
    // A notebook has editors of its own.
    if (known && !tab.notebook) {
      this.onRewritten?.(tab.id, tab.draft);
    }
  }

  rename(id: string, title: string): void {
    const kept = title.trim().slice(0, MAX_TITLE_LENGTH);
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
      tabs.forEach((moved, place) => this.#store.put(copyOf(moved), { place }));
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
    keepEntry(entry);
    return finished;
  }

  /** Keeps a plan with the last run of its statement. */
  keepPlan(text: string, plan: readonly string[]): void {
    const last = this.log().find(({ run }) => run.statement.text === text);
    if (last) {
      const entry = { ...last, plan };
      this.#log.set(this.log().map((one) => (one === last ? entry : one)));
      keepEntry(entry);
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
    // Not randomUUID: browsers offer it on secure origins only, and plain HTTP in a LAN is not one.
    const [random = 0] = crypto.getRandomValues(new Uint32Array(1));
    const id = `${Date.now().toString(36)}-${random.toString(36)}`;
    return { id, title: `Query ${number}`, draft };
  }

  /** Saves what was to be saved in a moment: the page is about to be left. */
  async saveNow(): Promise<void> {
    await this.#store.flush();
  }
}

/** Of what a tab has, without the store's wrapping, which the browser's database refuses. */
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
    throw new Error(`not a file of tabs: "format" is not "${TABS_FORMAT}"`);
  }
  return tabs.map((entry: unknown, index) => {
    const { title, draft, notebook } = (entry ?? {}) as Readonly<Record<string, unknown>>;
    if (typeof title !== 'string' || typeof draft !== 'string') {
      throw new Error(`tab ${index + 1} has no title or no draft`);
    }
    const kept = { title: title.slice(0, MAX_TITLE_LENGTH), draft };
    return notebook === true ? { ...kept, notebook: { approved: false } } : kept;
  });
}
