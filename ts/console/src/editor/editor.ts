/**
 * The SQL editor: a CodeMirror view and the few operations that the workspace needs. It handles
 * text and positions, and knows nothing about servers and results.
 *
 * The view is inside a shadow root. There, CodeMirror uses constructed style sheets, which the
 * policy `style-src 'self'` allows. In the document, it would create a style element, which the
 * policy forbids.
 */
import {
  autocompletion,
  closeBrackets,
  closeBracketsKeymap,
  closeCompletion,
  completionKeymap,
} from '@codemirror/autocomplete';
import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands';
import { bracketMatching } from '@codemirror/language';
import { search, searchKeymap } from '@codemirror/search';
import {
  EditorSelection,
  EditorState,
  Transaction,
  type Extension,
  type TransactionSpec,
} from '@codemirror/state';
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  highlightSpecialChars,
  keymap,
  lineNumbers,
  placeholder,
} from '@codemirror/view';
import { scopeAt } from '../../../sql/index.js';
import { format } from '../sql/format.js';
import type { ProblemReport } from '../state/problems.js';
import type { StatementText } from '../state/run.js';
import { completions } from './completion.js';
import type { NameSource } from './names.js';
import { hover } from './hover.js';
import { plainTyping } from './input.js';
import { runMarks, setMark, type MarkState } from './marks.js';
import {
  foremostProblem,
  nextProblem,
  problemAt,
  problems,
  setProblems,
  watchProblems,
  type Problem,
  type Validate,
} from './problems.js';
import { allStatements, currentStatement, highlighting, statementBar, tokens } from './text.js';
import { theme } from './theme.js';
import { wrapKey, wrapping } from './wrap.js';
import { texts } from '../texts.js';

export interface EditorEvents {
  readonly changed: (tab: string, text: string) => void;
  readonly run: () => void;
  readonly runAll: () => void;
  readonly names: NameSource;
  readonly validate: Validate;
  /**
   * Called with the most important problem of the active tab, if any, and the number of problems.
   */
  readonly problem: (tab: string, report: ProblemReport | undefined, count: number) => void;
  /** Called with the statement under the cursor whenever it may have changed. */
  readonly statement: (text: string) => void;
}

/** Comment syntax. Ctrl+/ comments out lines, and Alt+Shift+A comments out the selection. */
const COMMENTS = { line: '--', block: { open: '/*', close: '*/' } };

/** Labels of the search panel, worded as elsewhere in the console. */
const SEARCH_PHRASES = {
  next: texts.editor.next,
  previous: texts.editor.previous,
  all: texts.editor.selectAll,
  replace: texts.common.replace,
  'replace all': texts.editor.replaceAll,
  'match case': texts.editor.matchCase,
  regexp: texts.editor.regularExpression,
  'by word': texts.editor.wholeWords,
  close: texts.common.close,
};

/** Delay before the completion list closes after the editor has lost focus. */
const BLUR_MS = 10;
/** Time after Escape during which Tab leaves the editor instead of indenting. */
const TAB_LEAVES_MS = 2000;

export class SqlEditor {
  readonly #view: EditorView;
  readonly #events: EditorEvents;
  readonly #states = new Map<string, EditorState>();
  #tab = '';

  constructor(host: HTMLElement, events: EditorEvents) {
    this.#events = events;
    const root = host.shadowRoot ?? host.attachShadow({ mode: 'open' });
    this.#view = new EditorView({
      root,
      parent: root,
      state: EditorState.create({ extensions: this.#extensions() }),
    });
  }

  /** Shows the text of a tab. Each tab keeps its own history, cursor and marks. */
  show(tab: string, text: string): void {
    if (tab === this.#tab) {
      return;
    }
    if (this.#tab !== '') {
      this.#states.set(this.#tab, this.#view.state);
    }
    this.#tab = tab;
    const state = this.#states.get(tab);
    this.#view.setState(state ?? this.#newState(text));
    this.#notify();
  }

  /**
   * Applies a change that was made to a tab's text in another window. History, cursor and marks are
   * kept.
   */
  rewrite(tab: string, text: string): void {
    this.#dispatch(tab, (state) => {
      const changes = changeBetween(state.doc.toString(), text);
      return { changes, annotations: Transaction.addToHistory.of(false) };
    });
  }

  forget(tab: string): void {
    this.#states.delete(tab);
  }

  focus(): void {
    this.#view.focus();
  }

  /** Returns the selection, or else the statement under the cursor. */
  statementToRun(): StatementText | undefined {
    const { state } = this.#view;
    const { main } = state.selection;
    const selected = state.sliceDoc(main.from, main.to);
    if (selected.trim() !== '') {
      const lead = selected.length - selected.trimStart().length;
      return { text: selected.trim().replace(/[;\s]+$/, ''), start: main.from + lead };
    }
    const statement = currentStatement(state);
    if (!statement) {
      return undefined;
    }
    return { text: state.sliceDoc(statement.start, statement.end), start: statement.start };
  }

  statements(): StatementText[] {
    const { state } = this.#view;
    return allStatements(state).map(({ start, end }) => ({
      text: state.sliceDoc(start, end),
      start,
    }));
  }

  /** Marks the line on which a statement begins, if its tab is still open. */
  mark(tab: string, at: number, mark: MarkState, title: string): void {
    this.#dispatch(tab, (state) => ({
      effects: setMark.of({ at: Math.min(at, state.doc.length), state: mark, title }),
    }));
  }

  /** Underlines the text at the offset of an error that the last run reported. */
  showProblem(tab: string, offset: number, message: string): void {
    this.#dispatch(tab, (state) => {
      const found = problemAt(state, offset, message, 'run');
      return { effects: setProblems.of({ finder: 'run', problems: found ? [found] : [] }) };
    });
  }

  /** Removes the problem reported by the last run. */
  clearProblem(tab: string): void {
    this.#dispatch(tab, () => ({ effects: setProblems.of({ finder: 'run', problems: [] }) }));
  }

  /** Moves the cursor to the next problem, or to the previous one if `step` is -1. */
  goToProblem(step: 1 | -1 = 1): void {
    const next = nextProblem(this.#view.state, step);
    if (!next) {
      return;
    }
    const selection = EditorSelection.cursor(next.from);
    this.#view.dispatch({ selection, scrollIntoView: true });
    this.#view.focus();
  }

  /** Replaces the text of the most important problem. */
  replaceProblem(text: string): void {
    const first = foremostProblem(this.#view.state);
    if (!first) {
      return;
    }
    this.#view.dispatch({ changes: { from: first.from, to: first.to, insert: text } });
    this.#view.focus();
  }

  /** Formats the selection, or else the whole text. */
  format(): void {
    const { state } = this.#view;
    const { from, to, empty } = state.selection.main;
    const range = empty ? { from: 0, to: state.doc.length } : { from, to };
    const before = state.sliceDoc(range.from, range.to);
    const after = empty ? format(before) : format(before).trimEnd();
    if (after !== before) {
      const head = Math.min(range.from + after.length, state.selection.main.head);
      this.#view.dispatch({
        changes: { ...range, insert: after },
        selection: EditorSelection.cursor(head),
        userEvent: 'input.format',
      });
    }
    this.#view.focus();
  }

  /** Replaces the selection, as if the user had typed the text. */
  insert(text: string): void {
    this.#view.dispatch(this.#view.state.replaceSelection(text));
    this.#view.focus();
  }

  destroy(): void {
    this.#view.destroy();
  }

  /** Applies a change to the state of a tab, whether or not the tab is active. */
  #dispatch(tab: string, change: (state: EditorState) => TransactionSpec): void {
    if (tab === this.#tab) {
      this.#view.dispatch(change(this.#view.state));
      return;
    }
    const state = this.#states.get(tab);
    if (state) {
      this.#states.set(tab, state.update(change(state)).state);
    }
  }

  /** Reports the most important problem and the current statement. */
  #notify(): void {
    const { state } = this.#view;
    const found = foremostProblem(state);
    const report = found && this.#reportOf(found);
    this.#events.problem(this.#tab, report, state.field(problems).length);
    const statement = currentStatement(state);
    this.#events.statement(statement ? state.sliceDoc(statement.start, statement.end) : '');
  }

  #reportOf({ from, to, message }: Problem): ProblemReport {
    const { state } = this.#view;
    const line = state.doc.lineAt(from);
    const text = state.sliceDoc(from, to);
    const statement = allStatements(state).find(({ start, end }) => start <= from && from <= end);
    const statementText = statement ? state.sliceDoc(statement.start, statement.end) : '';
    const { sources } = scopeAt(statementText, from - (statement?.start ?? from));
    const tables = sources.flatMap(({ table }) => table ?? []);
    return { line: line.number, column: from - line.from + 1, text, message, tables };
  }

  #newState(text: string): EditorState {
    return EditorState.create({ doc: text, extensions: this.#extensions() });
  }

  #extensions(): Extension {
    // Close the completion list, which would otherwise consume the next Enter.
    const run = (view: EditorView): boolean => (closeCompletion(view), this.#events.run(), true);
    const runAll = (view: EditorView): boolean => (
      closeCompletion(view),
      this.#events.runAll(),
      true
    );
    return [
      // Completions that arrive after the editor has lost focus would cover other elements.
      EditorView.domEventHandlers({
        blur: (_event, view) => {
          setTimeout(() => view.hasFocus || closeCompletion(view), BLUR_MS);
        },
      }),
      runMarks(this.#events.run),
      lineNumbers(),
      history(),
      drawSelection(),
      bracketMatching(),
      closeBrackets(),
      highlightActiveLine(),
      highlightActiveLineGutter(),
      placeholder(texts.editor.placeholder),
      // Also show invisible characters and characters that change the text direction.
      highlightSpecialChars({ addSpecialChars: /[\u202a-\u202c\u2060\u2068]/ }),
      wrapping(),
      EditorState.tabSize.of(2),
      EditorState.languageData.of(() => [{ commentTokens: COMMENTS }]),
      tokens,
      highlighting,
      statementBar,
      problems,
      watchProblems(this.#events.validate, () => this.#notify()),
      hover(this.#events.names.names),
      theme,
      search({ top: true }),
      EditorState.phrases.of(SEARCH_PHRASES),
      plainTyping,
      autocompletion({ override: [completions(this.#events.names)], icons: false }),
      keymap.of([
        { key: 'Mod-Enter', run },
        { key: 'Mod-Shift-Enter', run: runAll },
        { key: 'F9', run },
        { key: 'Alt-Shift-f', run: () => (this.format(), true) },
        wrapKey,
        ...completionKeymap,
        { key: 'Escape', run: (view) => (view.setTabFocusMode(TAB_LEAVES_MS), false) },
        indentWithTab,
        ...closeBracketsKeymap,
        ...searchKeymap,
        ...historyKeymap,
        // Alt+L copies a link everywhere in the console, so the editor must not use it.
        ...defaultKeymap.filter(({ key }) => key !== 'Alt-l'),
      ]),
      EditorView.contentAttributes.of({
        'aria-label': texts.editor.label,
        // Scrollable content must be focusable, and axe treats this text as read-only.
        tabindex: '0',
        spellcheck: 'false',
        autocorrect: 'off',
        autocapitalize: 'off',
      }),
      EditorView.updateListener.of((update) => {
        if (update.docChanged) {
          this.#events.changed(this.#tab, update.state.doc.toString());
        }
      }),
    ];
  }
}

/**
 * Returns the change that turns one text into another. It covers only the range that differs, so
 * that cursors outside this range keep their positions.
 */
function changeBetween(
  before: string,
  after: string,
): { from: number; to: number; insert: string } {
  const shorter = Math.min(before.length, after.length);
  let from = 0;
  while (from < shorter && before[from] === after[from]) {
    from += 1;
  }
  let same = 0;
  while (same < shorter - from && before.at(-1 - same) === after.at(-1 - same)) {
    same += 1;
  }
  return { from, to: before.length - same, insert: after.slice(from, after.length - same) };
}
