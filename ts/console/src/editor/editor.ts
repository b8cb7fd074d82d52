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
  completionKeymap,
} from '@codemirror/autocomplete';
import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands';
import { bracketMatching } from '@codemirror/language';
import {
  EditorSelection,
  EditorState,
  type Extension,
  type TransactionSpec,
} from '@codemirror/state';
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  keymap,
  lineNumbers,
  placeholder,
} from '@codemirror/view';
import { spanAt } from '../sql/statements.js';
import type { StatementText } from '../state/run.js';
import { completions, type KnownNames } from './completion.js';
import { plainTyping } from './input.js';
import { problem, problemAt, runMarks, setMark, setProblem, type MarkState } from './marks.js';
import { allStatements, currentStatement, highlighting, statementBar, tokens } from './text.js';
import { theme } from './theme.js';

export interface EditorEvents {
  readonly changed: (tab: string, text: string) => void;
  readonly run: () => void;
  readonly runAll: () => void;
  readonly names: () => KnownNames;
}

export interface Place {
  readonly line: number;
  readonly column: number;
  /** The text under the mark. */
  readonly text: string;
}

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

  /** Underlines what stands at an offset and tells where that is. */
  showProblem(tab: string, offset: number): Place | undefined {
    let place: Place | undefined;
    this.#dispatch(tab, (state) => {
      const { start, end } = spanAt(state.doc.toString(), offset);
      const line = state.doc.lineAt(start);
      place = {
        line: line.number,
        column: start - line.from + 1,
        text: state.sliceDoc(start, end),
      };
      return end > start ? { effects: setProblem.of({ from: start, to: end }) } : {};
    });
    return place;
  }

  clearProblem(tab: string): void {
    this.#dispatch(tab, () => ({ effects: setProblem.of(undefined) }));
  }

  /** Puts the cursor on the underlined place. */
  goToProblem(): void {
    const place = problemAt(this.#view.state.field(problem));
    if (!place) {
      return;
    }
    const selection = EditorSelection.cursor(place.from);
    this.#view.dispatch({ selection, scrollIntoView: true });
    this.#view.focus();
  }

  /** Writes another name over the underlined one. */
  replaceProblem(text: string): void {
    const place = problemAt(this.#view.state.field(problem));
    if (!place) {
      return;
    }
    this.#view.dispatch({ changes: { ...place, insert: text } });
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

  #newState(text: string): EditorState {
    return EditorState.create({ doc: text, extensions: this.#extensions() });
  }

  #extensions(): Extension {
    const run = (): boolean => (this.#events.run(), true);
    const runAll = (): boolean => (this.#events.runAll(), true);
    return [
      runMarks,
      lineNumbers(),
      history(),
      drawSelection(),
      bracketMatching(),
      closeBrackets(),
      highlightActiveLine(),
      highlightActiveLineGutter(),
      placeholder('Write SQL here'),
      EditorState.tabSize.of(2),
      tokens,
      highlighting,
      statementBar,
      problem,
      theme,
      plainTyping,
      autocompletion({ override: [completions(this.#events.names)], icons: false }),
      keymap.of([
        { key: 'Mod-Enter', run },
        { key: 'Mod-Shift-Enter', run: runAll },
        { key: 'F9', run },
        ...completionKeymap,
        { key: 'Escape', run: (view) => (view.setTabFocusMode(TAB_LEAVES_MS), false) },
        indentWithTab,
        ...closeBracketsKeymap,
        ...historyKeymap,
        ...defaultKeymap,
      ]),
      EditorView.contentAttributes.of({
        'aria-label': 'SQL editor. Escape, then Tab leaves it.',
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
