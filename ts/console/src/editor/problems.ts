/**
 * Problems that are underlined in the text. The parser reports them while the user types, the
 * server for the statement under the cursor, and the last run if it failed.
 */
import { StateEffect, StateField, type ChangeDesc, type EditorState } from '@codemirror/state';
import { Decoration, EditorView, ViewPlugin, type ViewUpdate } from '@codemirror/view';
import { parse, SyntaxError_ } from '../../../sql/index.js';
import { wrongSpan } from '../sql/error-span.js';
import type { Statement } from '../sql/statements.js';
import { allStatements, currentStatement } from './text.js';

/** Where a problem was found: by the parser in the page, by the server's check, or in a run. */
type Finder = 'parser' | 'server' | 'run';

export interface Problem {
  readonly from: number;
  readonly to: number;
  readonly message: string;
  readonly finder: Finder;
}

/** Effect that replaces the problems of one source. */
export const setProblems = StateEffect.define<{
  readonly finder: Finder;
  readonly problems: readonly Problem[];
}>({
  map: ({ finder, problems }, changes) => ({ finder, problems: moved(problems, changes) }),
});

function moved(problems: readonly Problem[], changes: ChangeDesc): Problem[] {
  return problems.flatMap((problem) => {
    const touched = changes.touchesRange(problem.from, problem.to);
    const [from, to] = [changes.mapPos(problem.from, 1), changes.mapPos(problem.to, -1)];
    return touched === false && to > from ? [{ ...problem, from, to }] : [];
  });
}

const SQUIGGLE = Decoration.mark({ class: 'cm-squiggle' });

/** Problems in text order. A problem is removed as soon as the user edits its text. */
export const problems = StateField.define<readonly Problem[]>({
  create: () => [],
  update: (before, transaction) => {
    let value = transaction.docChanged ? moved(before, transaction.changes) : before;
    for (const effect of transaction.effects) {
      if (!effect.is(setProblems)) {
        continue;
      }
      const { finder } = effect.value;
      const others = value.filter((problem) => problem.finder !== finder);
      value = withoutOverlaps([...others, ...effect.value.problems]);
    }
    return value;
  },
  provide: (field) =>
    EditorView.decorations.from(field, (value) =>
      Decoration.set(value.map(({ from, to }) => SQUIGGLE.range(from, to))),
    ),
});

/**
 * Keeps only one of several overlapping problems. Problems from a run take precedence over problems
 * from the server, and these over problems from the parser.
 */
function withoutOverlaps(all: readonly Problem[]): readonly Problem[] {
  const rank: readonly Finder[] = ['run', 'server', 'parser'];
  const accepted: Problem[] = [];
  for (const finder of rank) {
    for (const problem of all.filter((candidate) => candidate.finder === finder)) {
      if (accepted.every(({ from, to }) => problem.to <= from || to <= problem.from)) {
        accepted.push(problem);
      }
    }
  }
  return accepted.sort((left, right) => left.from - right.from);
}

/** Creates a problem at an offset. Returns `undefined` if there is no text to underline. */
export function problemAt(
  state: EditorState,
  offset: number,
  message: string,
  finder: Finder,
): Problem | undefined {
  const { start, end } = wrongSpan(state.doc.toString(), offset, message);
  return end > start ? { from: start, to: end, message, finder } : undefined;
}

/**
 * Returns the next problem after the cursor, or the previous one if `step` is -1. The search wraps
 * around.
 */
export function nextProblem(state: EditorState, step: 1 | -1): Problem | undefined {
  const all = state.field(problems);
  const at = state.selection.main.head;
  return step > 0
    ? (all.find(({ from }) => from > at) ?? all[0])
    : (all.findLast(({ from }) => from < at) ?? all.at(-1));
}

/**
 * Returns the most important problem: one from the last run, one in the statement under the cursor,
 * or else the first in the text.
 */
export function foremostProblem(state: EditorState): Problem | undefined {
  const all = state.field(problems);
  const current = currentStatement(state);
  return (
    all.find(({ finder }) => finder === 'run') ??
    all.find(({ from }) => current && from >= current.start && from <= current.end) ??
    all[0]
  );
}

/** Maximum text length that the page parses. In longer texts, only the server finds problems. */
const MAX_TEXT_LENGTH = 200_000;
const READ_AFTER_MS = 600;
const VALIDATE_AFTER_MS = 400;

export interface Refusal {
  readonly message: string;
  /** Offset in the statement, in UTF-16 code units. */
  readonly position: number;
}

/** Asks the server to check a statement. Resolves to `undefined` if the statement is valid. */
export type Validate = (statement: string, signal: AbortSignal) => Promise<Refusal | undefined>;

/**
 * Parses the text shortly after each change, then asks the server to check the current statement.
 */
export function watchProblems(validate: Validate, notify: () => void): ViewPlugin<Watcher> {
  return ViewPlugin.define((view) => new Watcher(view, validate, notify));
}

class Watcher {
  readonly #view: EditorView;
  readonly #validate: Validate;
  readonly #notify: () => void;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #abort: AbortController | undefined;
  #requestedText = '';

  constructor(view: EditorView, validate: Validate, notify: () => void) {
    this.#view = view;
    this.#validate = validate;
    this.#notify = notify;
    this.#later(() => this.#read(), READ_AFTER_MS);
  }

  update({ docChanged, selectionSet, transactions }: ViewUpdate): void {
    if (docChanged) {
      this.#requestedText = '';
      this.#later(() => this.#read(), READ_AFTER_MS);
    } else if (selectionSet) {
      this.#later(() => void this.#requestProblems(), VALIDATE_AFTER_MS);
    }
    const hasNewProblems = transactions.some(({ effects }) =>
      effects.some((one) => one.is(setProblems)),
    );
    if (docChanged || selectionSet || hasNewProblems) {
      // Notify later, because listeners may dispatch transactions, which is forbidden during an
      // update.
      queueMicrotask(this.#notify);
    }
  }

  destroy(): void {
    clearTimeout(this.#timer);
    this.#abort?.abort();
  }

  #later(work: () => void, ms: number): void {
    clearTimeout(this.#timer);
    this.#abort?.abort();
    this.#timer = setTimeout(work, ms);
  }

  #read(): void {
    const { state } = this.#view;
    const found = state.doc.length > MAX_TEXT_LENGTH ? [] : syntaxProblems(state);
    if (found.length > 0 || state.field(problems).some(({ finder }) => finder === 'parser')) {
      this.#view.dispatch({ effects: setProblems.of({ finder: 'parser', problems: found }) });
    }
    void this.#requestProblems();
  }

  async #requestProblems(): Promise<void> {
    const { state } = this.#view;
    const statement = currentStatement(state);
    const text = statement ? state.sliceDoc(statement.start, statement.end) : '';
    if (!statement || text === this.#requestedText || syntaxProblem(state, statement)) {
      return;
    }
    const abort = (this.#abort = new AbortController());
    const refusal = await this.#validate(text, abort.signal);
    if (abort.signal.aborted) {
      return;
    }
    this.#requestedText = text;
    const found =
      refusal && problemAt(state, statement.start + refusal.position, refusal.message, 'server');
    this.#view.dispatch({
      effects: setProblems.of({ finder: 'server', problems: found ? [found] : [] }),
    });
  }
}

function syntaxProblems(state: EditorState): Problem[] {
  return allStatements(state).flatMap((statement) => syntaxProblem(state, statement) ?? []);
}

/** Returns the parser's error in one statement, if any. */
function syntaxProblem(state: EditorState, { start, end }: Statement): Problem | undefined {
  try {
    parse(state.sliceDoc(start, end));
    return undefined;
  } catch (error) {
    if (!(error instanceof SyntaxError_)) {
      throw error;
    }
    // If the error is past the end of the statement, mark its last character.
    const at = Math.min(start + error.start, Math.max(start, end - 1));
    return problemAt(state, at, error.message, 'parser');
  }
}
