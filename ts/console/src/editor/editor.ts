/**
 * The SQL editor as one object: a CodeMirror view and the few things the workspace asks of it.
 * It knows texts and places, nothing of servers and results.
 *
 * The view lives in a shadow root: there CodeMirror puts its rules into constructed style sheets,
 * which `style-src 'self'` allows, where in the document it would write a style element.
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
import type { Place } from '../state/problems.js';
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

export interface EditorEvents {
  readonly changed: (tab: string, text: string) => void;
  readonly run: () => void;
  readonly runAll: () => void;
  readonly names: NameSource;
  readonly validate: Validate;
  /** What is wrong in the tab in front, or that nothing is; and how many places are. */
  readonly problem: (tab: string, place: Place | undefined, count: number) => void;
  /** The text of the statement under the cursor, after it may have changed. */
  readonly statement: (text: string) => void;
}

/** What Ctrl+/ writes before lines, and Alt+Shift+A around a part of one. */
const COMMENTS = { line: '--', block: { open: '/*', close: '*/' } };

/** Names of buttons as everywhere else. */
const SEARCH_WORDS = {
  next: 'Next',
  previous: 'Previous',
  all: 'Select all',
  replace: 'Replace',
  'replace all': 'Replace all',
  'match case': 'Match case',
  regexp: 'Regular expression',
  'by word': 'Whole words',
  close: 'Close',
};

/** After the editor has lost the focus, completions of a click are taken. */
const BLUR_MS = 10;
/** A Tab after Escape leaves the editor instead of indenting, for this long. */
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

  /** Shows a tab's text; each tab keeps its own history, cursor and marks. */
  show(tab: string, text: string): void {
    if (tab === this.#tab) {
      return;
    }
    if (this.#tab !== '') {
      this.#states.set(this.#tab, this.#view.state);
    }
    this.#tab = tab;
    const kept = this.#states.get(tab);
    this.#view.setState(kept ?? this.#newState(text));
    this.#tell();
  }

  /** Takes over the text that a tab has got in another window; the rest of its state stays. */
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

  /** The selection, or else the statement under the cursor. */
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

  /** Marks the line a statement begins on, if its tab is still in front. */
  mark(tab: string, at: number, mark: MarkState, title: string): void {
    this.#dispatch(tab, (state) => ({
      effects: setMark.of({ at: Math.min(at, state.doc.length), state: mark, title }),
    }));
  }

  /** Underlines the text at an offset, where a run failed. */
  showProblem(tab: string, offset: number, message: string): void {
    this.#dispatch(tab, (state) => {
      const found = problemAt(state, offset, message, 'run');
      return { effects: setProblems.of({ finder: 'run', problems: found ? [found] : [] }) };
    });
  }

  /** Forgets where the last run failed. */
  clearProblem(tab: string): void {
    this.#dispatch(tab, () => ({ effects: setProblems.of({ finder: 'run', problems: [] }) }));
  }

  /** Puts the cursor on the next underlined place, or with -1 on the one before. */
  goToProblem(step: 1 | -1 = 1): void {
    const place = nextProblem(this.#view.state, step);
    if (!place) {
      return;
    }
    const selection = EditorSelection.cursor(place.from);
    this.#view.dispatch({ selection, scrollIntoView: true });
    this.#view.focus();
  }

  /** Writes another name over the foremost underlined one. */
  replaceProblem(text: string): void {
    const place = foremostProblem(this.#view.state);
    if (!place) {
      return;
    }
    this.#view.dispatch({ changes: { from: place.from, to: place.to, insert: text } });
    this.#view.focus();
  }

  /** Lays out the selection, or else the whole text. */
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

  /** Writes over the selection, as if typed. */
  insert(text: string): void {
    this.#view.dispatch(this.#view.state.replaceSelection(text));
    this.#view.focus();
  }

  destroy(): void {
    this.#view.destroy();
  }

  /** Applies a change to a tab's state, in view or not. */
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

  /** Tells which place is wrong, which statement is meant. */
  #tell(): void {
    const { state } = this.#view;
    const found = foremostProblem(state);
    const place = found && this.#placeOf(found);
    this.#events.problem(this.#tab, place, state.field(problems).length);
    const statement = currentStatement(state);
    this.#events.statement(statement ? state.sliceDoc(statement.start, statement.end) : '');
  }

  #placeOf({ from, to, message }: Problem): Place {
    const { state } = this.#view;
    const line = state.doc.lineAt(from);
    const text = state.sliceDoc(from, to);
    const statement = allStatements(state).find(({ start, end }) => start <= from && from <= end);
    const around = statement ? state.sliceDoc(statement.start, statement.end) : '';
    const { sources } = scopeAt(around, from - (statement?.start ?? from));
    const tables = sources.flatMap(({ table }) => table ?? []);
    return { line: line.number, column: from - line.from + 1, text, message, tables };
  }

  #newState(text: string): EditorState {
    return EditorState.create({ doc: text, extensions: this.#extensions() });
  }

  #extensions(): Extension {
    // An open list of completions would take the next Enter.
    const run = (view: EditorView): boolean => (closeCompletion(view), this.#events.run(), true);
    const runAll = (view: EditorView): boolean => (
      closeCompletion(view),
      this.#events.runAll(),
      true
    );
    return [
      // What is asked for while the editor is left would open over something else.
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
      placeholder('Write SQL here'),
      // Characters that are not seen, and those that turn the direction of others.
      highlightSpecialChars({ addSpecialChars: /[\u202a-\u202c\u2060\u2068]/ }),
      wrapping(),
      EditorState.tabSize.of(2),
      EditorState.languageData.of(() => [{ commentTokens: COMMENTS }]),
      tokens,
      highlighting,
      statementBar,
      problems,
      watchProblems(this.#events.validate, () => this.#tell()),
      hover(this.#events.names.names),
      theme,
      search({ top: true }),
      EditorState.phrases.of(SEARCH_WORDS),
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
        // Alt+L copies a link, here as everywhere.
        ...defaultKeymap.filter(({ key }) => key !== 'Alt-l'),
      ]),
      EditorView.contentAttributes.of({
        'aria-label': 'SQL editor. Escape, then Tab leaves it.',
        // What scrolls is reached by the keyboard: axe does not see that a text can be edited.
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

/** The part in which two texts differ: cursors before and behind it stay where they are. */
function changeBetween(
  before: string,
  after: string,
): { from: number; to: number; insert: string } {
  const most = Math.min(before.length, after.length);
  let from = 0;
  while (from < most && before[from] === after[from]) {
    from += 1;
  }
  let same = 0;
  while (same < most - from && before.at(-1 - same) === after.at(-1 - same)) {
    same += 1;
  }
  return { from, to: before.length - same, insert: after.slice(from, after.length - same) };
}
