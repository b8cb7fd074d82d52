/**
 * Runs statements: the statement under the cursor, all statements of a tab, or a statement from
 * another view.
 */
import type { Accessor } from 'solid-js';
import { bind, parametersOf } from '../sql/parameters.js';
import { editor } from './editor.js';
import { announce } from '../page/notices.js';
import { openPage } from '../page/pages.js';
import type { Plans } from './plans.js';
import { confirmed } from '../page/questions.js';
import type { Results } from './results.js';
import { runTitle, type Run, type StatementText } from './run.js';
import type { Schema } from './schema.js';
import type { Server } from './server.js';
import { signal } from '../model/signal.js';
import type { Workspace } from './workspace.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

interface StatementsContext {
  readonly workspace: Workspace;
  readonly server: Server;
  readonly schema: Schema;
  readonly plans: Plans;
  readonly results: Results;
}

export class Statements {
  readonly #context: StatementsContext;
  readonly #workspace: Workspace;
  readonly #parameters = signal<readonly string[]>([]);
  /** Parameters of the statement under the cursor. */
  readonly parameters: Accessor<readonly string[]> = this.#parameters;

  constructor(context: StatementsContext) {
    this.#context = context;
    this.#workspace = context.workspace;
  }

  setParameters(names: readonly string[]): void {
    if (names.join() !== this.parameters().join()) {
      this.#parameters.set(names);
    }
  }

  /** Runs the selection or, without a selection, the statement under the cursor. */
  async run(): Promise<void> {
    const statement = this.#current(texts.query.toRun);
    const tab = this.#workspace.active();
    if (statement && (!this.#workspace.runner(tab).running || (await mayCancel()))) {
      await this.#runOne(tab, statement);
    }
  }

  /** Runs all statements of the tab in order. Stops at the first failure. */
  async runAll(): Promise<void> {
    if (this.#isWithoutEditor()) {
      return;
    }
    const tab = this.#workspace.active();
    for (const statement of editor()?.statements() ?? []) {
      const finished = await this.#runOne(tab, statement);
      if (finished.state !== 'done') {
        return;
      }
    }
  }

  /** Runs the query of the displayed result again to read another range of its rows. */
  async showRows(skip: number): Promise<void> {
    const tab = this.#workspace.active();
    const runner = this.#workspace.runner(tab);
    const text = runner.result()?.statement;
    if (text !== undefined && !runner.running) {
      const start = runner.run()?.statement.start ?? 0;
      announce(runTitle(await this.#workspace.run(tab, { text, start, skip })));
    }
  }

  /** Opens a query in a new tab and runs it. */
  preview(query: string): void {
    openPage('sql');
    this.#workspace.add(`${query};\n`);
    const statement = { text: query, start: 0 };
    // The editor shows the new tab in the next microtask.
    queueMicrotask(() => void this.#runOne(this.#workspace.active(), statement));
  }

  /**
   * Opens the text of a shared link in a tab. A single read-only statement runs immediately; a text
   * that may modify data runs only if the user agrees.
   */
  async openShared(text: string): Promise<void> {
    this.#workspace.add(text);
    const { onlyReads } = await import('../sql/effects.js');
    const statements = editor()?.statements() ?? [];
    const changing = statements.filter((statement) => !onlyReads(statement.text));
    const isSafe = changing.length === 0 && statements.length === 1;
    const runs =
      isSafe ||
      (changing.length > 0 &&
        (await confirmed({
          title: texts.query.runLinkQuestion,
          text: texts.query.runLinkConsequences,
          statement: changing.map((statement) => statement.text).join(';\n'),
          cancel: texts.query.openWithoutRunning,
          destroy: texts.common.run,
        })));
    if (runs) {
      await this.runAll();
    }
  }

  /** Shows the plan of the selection or, without a selection, of the statement under the cursor. */
  explain(): void {
    const statement = this.#current(texts.query.toExplain);
    if (statement) {
      this.#workspace.setView('plan');
      void this.#context.plans.explain(this.#workspace.active(), statement.text, false);
    }
  }

  /**
   * Shows the plan. If no plan has been requested yet, requests the plan of the statement under the
   * cursor.
   */
  showPlan(): void {
    if (this.#context.plans.of(this.#workspace.active()) === undefined) {
      this.explain();
    }
    this.#workspace.setView('plan');
  }

  cancel(): void {
    this.#workspace.runner(this.#workspace.active()).cancel();
  }

  /**
   * Returns the selection or the statement under the cursor. Notifies the user if there is no
   * statement.
   */
  #current(action: string): StatementText | undefined {
    if (this.#isWithoutEditor()) {
      return undefined;
    }
    const statement = editor()?.statementToRun();
    if (!statement) {
      announce(fill(texts.query.noStatement, { action }));
    }
    return statement;
  }

  /**
   * True if the tab follows a table or shows a notebook, and thus has no statement under a cursor.
   */
  #isWithoutEditor(): boolean {
    const { isWithoutEditor, activeFollow } = this.#workspace;
    if (isWithoutEditor) {
      announce(activeFollow ? texts.query.tabFollows : texts.query.tabIsNotebook);
    }
    return isWithoutEditor;
  }

  async #runOne(tab: string, written: StatementText): Promise<Run> {
    const { results, schema, server } = this.#context;
    const statement = this.#bound(tab, written);
    const view = editor();
    view?.clearProblem(tab);
    view?.mark(tab, statement.start, 'running', texts.common.running);
    const finished = await this.#workspace.run(tab, statement);
    view?.mark(tab, statement.start, finished.state, runTitle(finished));
    announce(runTitle(finished));
    if (finished.failure?.offset !== undefined) {
      view?.showProblem(tab, finished.failure.offset, finished.failure.message);
    }
    if (finished.failure && !finished.failure.reachable) {
      server.connection.set('lost');
    }
    if (finished.state === 'done') {
      void schema.refreshAfter(statement.text);
      void results.store(tab, finished);
    }
    return finished;
  }

  #bound(tab: string, statement: StatementText): StatementText {
    const hasParameters = parametersOf(statement.text).length > 0;
    const values = this.#workspace.parametersOf(tab);
    return hasParameters ? { ...statement, bound: bind(statement.text, values) } : statement;
  }
}

function mayCancel(): Promise<boolean> {
  return confirmed({
    title: texts.query.replaceQuestion,
    text: texts.query.replaceConsequences,
    cancel: texts.query.keepRunning,
    destroy: texts.query.cancelAndRun,
  });
}
