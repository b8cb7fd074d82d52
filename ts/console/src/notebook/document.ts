/** A notebook that is open in a tab: its text, its undo history and its runs. */
import type { Accessor } from 'solid-js';
import { announce } from '../page/notices.js';
import { type Runner, runTitle } from '../state/run.js';
import { CellRun } from './cell-run.js';
import { NotebookError, read, write } from '../cells/file.js';
import {
  apply,
  EMPTY,
  inverse,
  sqlCells,
  type Cell,
  type Command,
  type Notebook,
  type SqlCell,
} from '../cells/model.js';
import { compose } from '../cells/statement.js';
import type { Workspace } from '../state/workspace.js';
import type { Schema } from '../state/schema.js';
import { signal } from '../model/signal.js';

const MAX_STEPS = 200;

interface DocumentContext {
  readonly workspace: Workspace;
  readonly schema: Schema;
}

export class NotebookDocument {
  readonly #notebook = signal(EMPTY);
  readonly notebook: Accessor<Notebook> = this.#notebook;
  readonly #problem = signal<NotebookError | undefined>(undefined);
  /** Why the tab's text cannot be parsed as a notebook. Such text is left unchanged. */
  readonly problem: Accessor<NotebookError | undefined> = this.#problem;
  readonly canUndo: Accessor<boolean> = () => this.#steps().undo > 0;
  readonly canRedo: Accessor<boolean> = () => this.#steps().redo > 0;
  readonly #isRunning = signal(false);
  /** True while cells are being run one after another. */
  readonly isRunning: Accessor<boolean> = this.#isRunning;
  readonly #steps = signal({ undo: 0, redo: 0 });
  readonly #workspace: Workspace;
  readonly #schema: Schema;
  readonly #tab: string;
  /** Called after each cell that the user has run to completion. */
  ran: ((cell: SqlCell) => void) | undefined;
  readonly #runs = new Map<string, CellRun>();
  #undo: Command[] = [];
  #redo: Command[] = [];
  #written = '';
  /** Incremented by each run and each stop, so that a run can detect that it was stopped. */
  #generation = 0;

  constructor({ workspace, schema }: DocumentContext, tab: string, text: string) {
    this.#workspace = workspace;
    this.#schema = schema;
    this.#tab = tab;
    this.adopt(text);
    if (workspace.tabs.find(({ id }) => id === tab)?.notebook?.approved === true) {
      sqlCells(this.notebook()).forEach((cell) => this.run(cell.id).resume(cell.text));
    }
  }

  /**
   * Returns the notebook with each cell's text as of its last run. Refreshes use this text while
   * the user edits cells.
   */
  asRun(): Notebook {
    const notebook = this.notebook();
    const cells = notebook.cells.flatMap((cell): readonly Cell[] => {
      const text = cell.kind === 'sql' ? this.run(cell.id).text() : undefined;
      return cell.kind === 'sql' && text !== undefined ? [{ ...cell, text }] : [];
    });
    return { ...notebook, cells };
  }

  /** Parses the tab's text if it differs from the text that this document wrote last. */
  adopt(text: string): void {
    if (text === this.#written) {
      return;
    }
    this.#written = text;
    try {
      const next = read(text);
      this.#problem.set(undefined);
      this.#notebook.set({ ...next, cells: sameIds(this.notebook().cells, next.cells) });
    } catch (cause) {
      const isKnown = cause instanceof NotebookError;
      this.#problem.set(isKnown ? cause : new NotebookError(String(cause), 1));
    }
  }

  cell(id: string): Cell | undefined {
    return this.notebook().cells.find((cell) => cell.id === id);
  }

  run(id: string): CellRun {
    let run = this.#runs.get(id);
    if (!run) {
      this.#runs.set(id, (run = new CellRun()));
    }
    return run;
  }

  /** Applies a change that can be undone. */
  change(command: Command): void {
    this.#undo = [...this.#undo, inverse(this.notebook(), command)].slice(-MAX_STEPS);
    this.#redo = [];
    this.#set(apply(this.notebook(), command));
  }

  /** Stores a cell's text as it is typed. The editor has its own undo history. */
  type(id: string, text: string): void {
    if (this.cell(id)?.text !== text) {
      this.#set(apply(this.notebook(), { kind: 'change', id, patch: { text } }));
    }
  }

  undo(): void {
    this.#step(this.#undo, this.#redo);
  }

  redo(): void {
    this.#step(this.#redo, this.#undo);
  }

  /** Applies the last command of one list, and adds the inverse command to the other list. */
  #step(from: Command[], to: Command[]): void {
    const command = from.pop();
    if (command) {
      to.push(inverse(this.notebook(), command));
      this.#set(apply(this.notebook(), command));
    }
  }

  #set(notebook: Notebook): void {
    this.#notebook.set(notebook);
    this.#steps.set({ undo: this.#undo.length, redo: this.#redo.length });
    this.#written = write(notebook);
    this.#workspace.setDraft(this.#tab, this.#written);
  }

  async runCell(id: string): Promise<void> {
    await this.#inOrder([id]);
  }

  /** Runs all cells, or the given cell and all cells below it. Stops at the first failure. */
  async runFrom(id?: string): Promise<void> {
    const all = sqlCells(this.notebook())
      .filter(({ text }) => text.trim() !== '')
      .map((cell) => cell.id);
    await this.#inOrder(id === undefined ? all : all.slice(Math.max(0, all.indexOf(id))));
  }

  stop(): void {
    this.#generation += 1;
    this.#isRunning.set(false);
    this.#runs.forEach(({ runner }) => runner.cancel());
  }

  async #inOrder(ids: readonly string[]): Promise<void> {
    const generation = (this.#generation += 1);
    this.#workspace.approveNotebook(this.#tab);
    this.#isRunning.set(true);
    for (const id of ids) {
      const cell = this.cell(id);
      const isDone = cell?.kind === 'sql' && (await this.#one(cell));
      if (!isDone || this.#generation !== generation) {
        break;
      }
    }
    if (this.#generation === generation) {
      this.#isRunning.set(false);
    }
  }

  /** Runs one cell and returns true if the run was successful. */
  async #one(cell: SqlCell): Promise<boolean> {
    const run = this.run(cell.id);
    const { statement, trouble } = compose(this.notebook(), cell.id, Date.now());
    if (trouble) {
      run.refuse(trouble);
      announce(`${cell.name}: ${trouble.message}`);
      return false;
    }
    const finished = await run.run(statement, cell.text);
    announce(`${cell.name}: ${runTitle(finished)}`);
    if (finished.state === 'done') {
      this.ran?.(cell);
      void this.#schema.refreshAfter(statement.text);
    }
    return finished.state === 'done';
  }
}

/**
 * Preserves the ids, and thus the runs, of cells that were parsed again. Cells are matched by name
 * or by text.
 */
function sameIds(before: readonly Cell[], after: readonly Cell[]): readonly Cell[] {
  const key = (cell: Cell): string =>
    cell.kind === 'sql' ? `sql ${cell.name}` : `markdown ${cell.text}`;
  const ids = new Map(before.map((cell) => [key(cell), cell.id]));
  return after.map((cell) => ({ ...cell, id: ids.get(key(cell)) ?? cell.id }));
}

const documents = new WeakMap<Runner, NotebookDocument>();

/** Returns a tab's document, which is retained while another tab is active. */
export function documentOf(context: DocumentContext, tab: string, text: string): NotebookDocument {
  const key = context.workspace.runner(tab);
  let found = documents.get(key);
  if (!found) {
    documents.set(key, (found = new NotebookDocument(context, tab, text)));
  }
  return found;
}
