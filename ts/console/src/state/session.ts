/** What the page shares: workspace, schema, connection, and what commands do with them. */
import { createSignal, type Accessor } from 'solid-js';
import { query, savePreferences, settings, SqlError, type Settings } from '../api/client.js';
import type { Answer } from '../api/cells.js';
import type { Place, SqlEditor } from '../editor/editor.js';
import { duration, grouped, type Zone } from '../model/format.js';
import { nearest, quoted } from '../schema/model.js';
import { expectedWord } from '../sql/meant.js';
import { bind, parametersOf } from '../sql/parameters.js';
import { announce, copy, showToast } from '../shell/announce.js';
import { confirmed } from '../dialogs/ConfirmDialog.js';
import { openPage } from '../shell/pages.js';
import { linkTo } from '../shell/share.js';
import { Activity } from './activity.js';
import { keptChoice } from './choice.js';
import { Jobs } from './jobs.js';
import { followServer, type LiveName } from './live.js';
import { Plans } from './plans.js';
import type { Run, StatementText } from './run.js';
import { Schema } from './schema.js';
import { Vitals } from './vitals.js';
import { type Workspace } from './workspace.js';

export interface Problem extends Place {
  /** How many places of the tab are wrong. */
  readonly count: number;
  readonly advice: string | undefined;
  readonly replacement: string | undefined;
}

type Connection = 'connecting' | 'connected' | 'lost';

const FOLLOWED_ROWS = 500;

export class Session {
  readonly workspace: Workspace;
  readonly schema = new Schema();
  readonly activity = new Activity();
  readonly vitals = new Vitals();
  readonly jobs = new Jobs();
  readonly plans = new Plans();
  readonly connection: Accessor<Connection>;
  readonly settings: Accessor<Settings | undefined>;
  readonly zone: Accessor<Zone>;
  readonly setZone: (zone: Zone) => void;
  readonly problems: Accessor<ReadonlyMap<string, Problem>>;
  /** Whether a file is on its way to the server. */
  readonly importing: Accessor<boolean>;
  readonly setImporting: (isImporting: boolean) => void;
  /** Files that were dropped somewhere on the page, until the import page takes them. */
  readonly dropped: Accessor<readonly File[]>;
  readonly setDropped: (files: readonly File[]) => void;
  /** Parameters of the statement under the cursor. */
  readonly parameters: Accessor<readonly string[]>;
  editor: SqlEditor | undefined;
  /** Whether the user of the page may see users and their rights. */
  readonly listsUsers: Accessor<boolean>;
  /** Whose results are kept over a reload; nothing while that is not known. */
  #keptFor: string | undefined;
  readonly #setListsUsers: (may: boolean) => void;
  readonly #setParameters: (names: readonly string[]) => void;
  readonly #setConnection: (connection: Connection) => void;
  readonly #setSettings: (settings: Settings) => void;
  readonly #setProblems: (problems: ReadonlyMap<string, Problem>) => void;

  constructor(workspace: Workspace) {
    this.plans.onPlan = (text, lines) => workspace.keepPlan(text, lines);
    const [connection, setConnection] = createSignal<Connection>('connecting');
    const [known, setSettings] = createSignal<Settings>();
    const [zone, setZone] = keptChoice<Zone>('tidemark.zone', ['utc', 'local']);
    const [problems, setProblems] = createSignal<ReadonlyMap<string, Problem>>(new Map());
    const [importing, setImporting] = createSignal(false);
    const [dropped, setDropped] = createSignal<readonly File[]>([]);
    this.importing = importing;
    this.setImporting = setImporting;
    this.dropped = dropped;
    this.setDropped = setDropped;
    const [parameters, setParameters] = createSignal<readonly string[]>([]);
    const [listsUsers, setListsUsers] = createSignal(false);
    this.listsUsers = listsUsers;
    this.#setListsUsers = setListsUsers;
    this.workspace = workspace;
    workspace.versions = () => this.schema.versions();
    this.parameters = parameters;
    this.#setParameters = setParameters;
    this.connection = connection;
    this.settings = known;
    this.zone = zone;
    this.setZone = setZone;
    this.problems = problems;
    this.#setConnection = setConnection;
    this.#setSettings = setSettings;
    this.#setProblems = setProblems;
  }

  /** Whether the server tells people apart, so that there are rights to look at. */
  get hasUsers(): boolean {
    return this.settings()?.config['acl.enabled'] === true;
  }

  /** Asks whether there are users that this one may see; once for each who signs in. */
  async askForUsers(): Promise<void> {
    try {
      await query('SHOW USERS', { maxRows: 1 });
      this.#setListsUsers(true);
    } catch (cause) {
      if (cause instanceof SqlError) {
        this.#setListsUsers(false);
      }
    }
  }

  /** Shows what the user's tabs showed before the page was loaded, and keeps what they show now. */
  async restoreResults(user: string): Promise<void> {
    this.#keptFor = user;
    const { keptResults } = await import('./kept-results.js');
    for (const [tab, earlier] of await keptResults(user)) {
      if (this.#keptFor === user && this.workspace.tabs.some(({ id }) => id === tab)) {
        this.workspace.runner(tab).restore(earlier);
      }
    }
  }

  async #keepResult(tab: string, { hasRows }: Run): Promise<void> {
    const result = this.workspace.runner(tab).result();
    const user = this.#keptFor;
    if (hasRows && result && user !== undefined) {
      const { keepResult } = await import('./kept-results.js');
      await keepResult(tab, result, user);
    }
  }

  /** Whether the server keeps notebooks for its users. */
  get keepsNotebooks(): boolean {
    return this.settings()?.config['notebooks.kept'] === true;
  }

  /** Whether the server refuses everything that writes and comes over HTTP. */
  get isReadOnly(): boolean {
    const writers = this.settings()?.config['accepting.writes'];
    return Array.isArray(writers) && !writers.includes('http');
  }

  /** Whether the server lets the page change what it is called. */
  get savesPreferences(): boolean {
    return this.settings()?.config['http.settings.readonly'] === false;
  }

  /** Changes what the server is called, for every user. */
  async savePreferences(changed: Readonly<Record<string, string>>): Promise<void> {
    try {
      await savePreferences(changed, this.settings()?.version ?? 0);
    } finally {
      this.#setSettings(await settings());
    }
  }

  /** Follows the server while the page is looked at. */
  watch(): () => void {
    return followServer({
      greet: (signal) => this.#greet(signal),
      ask: () => this.#ask(),
      take: (name, answer, now) => this.#take(name, answer, now),
      lost: () => this.#lose(),
      isLost: () => this.connection() === 'lost',
    });
  }

  /** Asks the server who it is, and once for what seldom changes. */
  async #greet(signal: AbortSignal): Promise<void> {
    this.#setSettings(await settings(signal));
    this.#setConnection('connected');
    await this.schema.refresh();
  }

  /** Asks for all that the server would tell by itself. */
  async #ask(): Promise<void> {
    this.#setSettings(await settings());
    const before = this.connection();
    this.#setConnection('connected');
    if (before !== 'connected') {
      await this.schema.refresh();
    } else if (this.schema.tables().state === 'ready') {
      await this.schema.look();
    }
    // Who may not read the tables is not asked for what runs either.
    if (this.schema.tables().state === 'ready') {
      await this.activity.refresh();
      await this.vitals.refresh(this.schema.rowCount);
      await this.jobs.watch();
    }
  }

  #take(name: LiveName, answer: Answer | undefined, now: string): void {
    if (name === 'tables') {
      if (answer) {
        this.schema.take(answer, now);
      }
      this.vitals.note(this.schema.rowCount);
    } else if (answer) {
      const takers = { queries: this.activity, memory: this.vitals, jobs: this.jobs };
      takers[name].take(answer);
    }
  }

  #lose(): void {
    if (this.connection() === 'connected') {
      announce('The server does not answer.');
    }
    this.#setConnection('lost');
  }

  /** Runs the selection or the statement under the cursor. */
  async run(): Promise<void> {
    if (this.#isWithoutEditor()) {
      return;
    }
    const statement = this.editor?.statementToRun();
    if (!statement) {
      announce('There is no statement to run.');
      return;
    }
    const tab = this.workspace.active();
    if (!this.workspace.runner(tab).running || (await this.#mayCancel())) {
      await this.#runOne(tab, statement);
    }
  }

  /** A tab that follows a table or shows a notebook has no statement under a cursor. */
  #isWithoutEditor(): boolean {
    const { isWithoutEditor, activeFollow } = this.workspace;
    if (isWithoutEditor) {
      announce(
        activeFollow
          ? 'This tab follows rows. Open its query to run it.'
          : 'This tab is a notebook: its cells are run one by one.',
      );
    }
    return isWithoutEditor;
  }

  #mayCancel(): Promise<boolean> {
    return confirmed({
      title: 'A query is running in this tab',
      text: 'Running another one cancels it. The rows it has sent so far go with it.',
      keep: 'Let it run',
      destroy: 'Cancel it and run',
    });
  }

  /** Opens the text of a shared link in a tab; runs it if it only reads or the user agrees. */
  async openShared(text: string): Promise<void> {
    this.workspace.add(text);
    const { onlyReads } = await import('../sql/effects.js');
    const statements = this.editor?.statements() ?? [];
    const changing = statements.filter((statement) => !onlyReads(statement.text));
    const isSafe = changing.length === 0 && statements.length === 1;
    const runs =
      isSafe ||
      (changing.length > 0 &&
        (await confirmed({
          title: 'Run what this link brought?',
          text: 'It may change data or tables, and whoever made the link wrote it.',
          statement: changing.map((statement) => statement.text).join(';\n'),
          keep: 'Only open it',
          destroy: 'Run it',
        })));
    if (runs) {
      await this.runAll();
    }
  }

  /** Copies a link that opens the statement under the cursor, or all of the tab. */
  copyLink(all: boolean): void {
    const text = all ? this.workspace.activeDraft : this.editor?.statementToRun()?.text;
    void copy(linkTo(text ?? ''), all ? 'Link to the tab' : 'Link to the statement');
  }

  /** Shows how the selection or the statement under the cursor would run. */
  explain(): void {
    if (this.#isWithoutEditor()) {
      return;
    }
    const statement = this.editor?.statementToRun();
    if (!statement) {
      announce('There is no statement to explain.');
      return;
    }
    this.workspace.setView('plan');
    void this.plans.explain(this.workspace.active(), statement.text, false);
  }

  /** Brings the plan to the front; the first time, of the statement under the cursor. */
  showPlan(): void {
    if (this.plans.of(this.workspace.active()) === undefined) {
      this.explain();
    }
    this.workspace.setView('plan');
  }

  /** Runs every statement of the tab in order and stops at the first failure. */
  async runAll(): Promise<void> {
    if (this.#isWithoutEditor()) {
      return;
    }
    const tab = this.workspace.active();
    for (const statement of this.editor?.statements() ?? []) {
      const finished = await this.#runOne(tab, statement);
      if (finished.state !== 'done') {
        return;
      }
    }
  }

  /** Runs the query of the shown result again, for another range of it. */
  async showRows(skip: number): Promise<void> {
    const tab = this.workspace.active();
    const runner = this.workspace.runner(tab);
    const text = runner.result()?.statement;
    if (text !== undefined && !runner.running) {
      const start = runner.run()?.statement.start ?? 0;
      announce(runTitle(await this.workspace.run(tab, { text, start, skip })));
    }
  }

  /** Opens a text in a tab of its own. */
  edit(text: string): void {
    openPage('sql');
    this.workspace.add(text);
    this.editor?.focus();
  }

  /** Opens a query in a tab of its own and runs it. */
  preview(query: string): void {
    openPage('sql');
    this.workspace.add(`${query};\n`);
    const statement = { text: query, start: 0 };
    // The editor shows the new tab in the next turn.
    queueMicrotask(() => void this.#runOne(this.workspace.active(), statement));
  }

  /** Follows the last rows of a table in a tab of its own. */
  follow(table: string): void {
    openPage('sql');
    const spec = { table, rows: FOLLOWED_ROWS, view: 'grid' } as const;
    this.workspace.addFollow(spec, `SELECT * FROM ${quoted(table)} LIMIT -${FOLLOWED_ROWS};\n`);
  }

  /** Follows the last rows of a query in a tab of its own. */
  async followQuery(query: string): Promise<void> {
    const { isQuery } = await import('../sql/effects.js');
    if (!isQuery(query)) {
      showToast({ text: 'Only the rows of a query can be followed.' });
      return;
    }
    const { workspace } = this;
    const table = workspace.tabs.find(({ id }) => id === workspace.active())?.title ?? '';
    const spec = { table, query, rows: FOLLOWED_ROWS, view: 'grid' } as const;
    workspace.addFollow(spec, `${query};\n`);
  }

  cancel(): void {
    this.workspace.runner(this.workspace.active()).cancel();
  }

  closeTab(id: string): void {
    const closed = this.workspace.close(id);
    if (!closed) {
      return;
    }
    this.forgetTab(id);
    if (closed.draft.trim() === '') {
      return;
    }
    showToast({
      text: `${closed.title} closed`,
      action: { label: 'Undo', run: () => this.workspace.restore(closed) },
    });
  }

  /** Forgets what the editor and its problems hold of a tab that is gone. */
  forgetTab(id: string): void {
    this.editor?.forget(id);
    void import('./kept-results.js').then(({ forgetResult }) => forgetResult(id));
    this.#clearProblem(id);
  }

  /** Brings back the tab that was closed last. */
  reopenTab(): void {
    const [last] = this.workspace.closed();
    if (last) {
      this.workspace.restore(last);
    } else {
      announce('No tab has been closed.');
    }
  }

  edited(tab: string, text: string): void {
    // A notebook has editors of its own.
    if (this.workspace.tabs.find(({ id }) => id === tab)?.notebook === undefined) {
      this.workspace.setDraft(tab, text);
    }
  }

  /** Takes over what is wrong in a tab, with what could be meant. */
  setProblem(tab: string, place: Place | undefined, count: number): void {
    if (!place) {
      this.#clearProblem(tab);
      return;
    }
    const replacement = this.#suggestion(place);
    const advice = replacement === undefined ? undefined : `The closest name is ${replacement}.`;
    const problem = { ...place, count, advice, replacement };
    const before = this.problems().get(tab);
    if (JSON.stringify(problem) !== JSON.stringify(before)) {
      this.#setProblems(new Map(this.problems()).set(tab, problem));
      void this.#readNames(tab, problem);
    }
  }

  /** A near name may be in a table whose columns have not been read yet. */
  async #readNames(tab: string, problem: Problem): Promise<void> {
    const { tables } = this.schema.names();
    const unread = problem.tables.filter(
      (name) =>
        tables.some((table) => table.name === name) && this.schema.columnsOf(name).length === 0,
    );
    if (problem.replacement !== undefined || unread.length === 0) {
      return;
    }
    await Promise.all(unread.map((name) => this.schema.open(name)));
    if (this.problems().get(tab) === problem && this.#suggestion(problem) !== undefined) {
      this.setProblem(tab, problem, problem.count);
    }
  }

  setParameters(names: readonly string[]): void {
    if (names.join() !== this.parameters().join()) {
      this.#setParameters(names);
    }
  }

  replaceProblem(tab: string): void {
    const replacement = this.problems().get(tab)?.replacement;
    if (replacement !== undefined) {
      this.editor?.replaceProblem(replacement);
    }
  }

  async #runOne(tab: string, written: StatementText): Promise<Run> {
    const { editor } = this;
    const statement = this.#bound(tab, written);
    editor?.clearProblem(tab);
    editor?.mark(tab, statement.start, 'running', 'Running');
    const finished = await this.workspace.run(tab, statement);
    editor?.mark(tab, statement.start, finished.state, runTitle(finished));
    announce(runTitle(finished));
    if (finished.failure?.offset !== undefined) {
      editor?.showProblem(tab, finished.failure.offset, finished.failure.message);
    }
    if (finished.failure && !finished.failure.reachable) {
      this.#setConnection('lost');
    }
    if (finished.state === 'done') {
      void this.followStatement(statement.text);
      void this.#keepResult(tab, finished);
    }
    return finished;
  }

  /** Tables may be others after a statement that does more than read. */
  async followStatement(statement: string): Promise<void> {
    const { onlyReads } = await import('../sql/effects.js');
    if (!onlyReads(statement)) {
      await this.schema.refresh();
    }
  }

  #bound(tab: string, statement: StatementText): StatementText {
    const hasParameters = parametersOf(statement.text).length > 0;
    const values = this.workspace.parametersOf(tab);
    return hasParameters ? { ...statement, bound: bind(statement.text, values) } : statement;
  }

  #suggestion({ message, text }: Place): string | undefined {
    if (!/invalid column|does not exist|unknown (?:column|table)/i.test(message)) {
      return expectedWord(text, message);
    }
    const names = this.schema.names();
    return nearest(text, [...names.columns, ...names.tables.map(({ name }) => name)]);
  }

  #clearProblem(tab: string): void {
    if (!this.problems().has(tab)) {
      return;
    }
    const kept = new Map(this.problems());
    kept.delete(tab);
    this.#setProblems(kept);
  }
}

/** A run in one sentence: for the mark's tooltip, the log and the live region. */
export function runTitle(run: Run): string {
  const took = run.totalMs === undefined ? '' : ` in ${duration(run.totalMs)}`;
  switch (run.state) {
    case 'running':
      return 'Running';
    case 'cancelled':
      return `Cancelled after ${duration(run.totalMs ?? 0)}`;
    case 'failed':
      return `Failed: ${run.failure?.message ?? ''}`;
    case 'done':
      return `${outcome(run)}${took}`;
  }
}

/** What a finished run did: `72 rows`, `OK`, `2 rows updated`. */
export function outcome({ hasRows, tail }: Run): string {
  if (hasRows) {
    return `${tail?.isCut ? 'more than ' : ''}${rowsText(tail?.count ?? 0)}`;
  }
  if (tail?.updated !== undefined) {
    return `${rowsText(tail.updated)} updated`;
  }
  return tail?.notice ?? tail?.ddl ?? tail?.dml ?? 'OK';
}

export function rowsText(count: number): string {
  return `${grouped(String(count))} ${count === 1 ? 'row' : 'rows'}`;
}
