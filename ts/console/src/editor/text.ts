/**
 * State derived from the editor's text: tokens, statements and colours. It is recomputed on every
 * change.
 */
import { RangeSetBuilder, StateField, type EditorState } from '@codemirror/state';
import {
  Decoration,
  EditorView,
  ViewPlugin,
  type DecorationSet,
  type ViewUpdate,
} from '@codemirror/view';
import { scan, type Token } from '../sql/scanner.js';
import { statementAt, statementsOf, type Statement } from '../sql/statements.js';

/**
 * Tokens of the whole text. Scanning a megabyte takes tens of milliseconds, and a typical query
 * takes almost no time.
 */
export const tokens = StateField.define<readonly Token[]>({
  create: (state) => scan(state.doc.toString()),
  update: (value, transaction) =>
    transaction.docChanged ? scan(transaction.newDoc.toString()) : value,
});

const MARKS = new Map(
  (['keyword', 'function', 'string', 'number', 'variable', 'comment', 'operator'] as const).map(
    (kind) => [kind as Token['kind'], Decoration.mark({ class: `tok-${kind}` })],
  ),
);

function colours(view: EditorView): DecorationSet {
  const builder = new RangeSetBuilder<Decoration>();
  const all = view.state.field(tokens);
  for (const { from, to } of view.visibleRanges) {
    for (const { kind, start, end } of all.slice(
      firstEndingAfter(all, from),
      firstEndingAfter(all, to),
    )) {
      const mark = MARKS.get(kind);
      if (mark) {
        builder.add(Math.max(start, from), Math.min(end, to), mark);
      }
    }
  }
  return builder.finish();
}

function firstEndingAfter(all: readonly Token[], offset: number): number {
  let low = 0;
  let high = all.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((all[middle]?.end ?? 0) <= offset) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

/** Plugin that colours the visible text. */
export const highlighting = ViewPlugin.fromClass(
  class {
    decorations: DecorationSet;

    constructor(view: EditorView) {
      this.decorations = colours(view);
    }

    update(update: ViewUpdate): void {
      if (update.docChanged || update.viewportChanged) {
        this.decorations = colours(update.view);
      }
    }
  },
  { decorations: (plugin) => plugin.decorations },
);

/** Returns the statement at the cursor, which runs if no text is selected. */
export function currentStatement(state: EditorState): Statement | undefined {
  return statementAt(state.doc.toString(), state.selection.main.head, allStatements(state));
}

const IN_STATEMENT = Decoration.line({ class: 'cm-in-statement' });

function statementLines(state: EditorState): DecorationSet {
  const statement = currentStatement(state);
  if (!statement) {
    return Decoration.none;
  }
  const builder = new RangeSetBuilder<Decoration>();
  const last = state.doc.lineAt(Math.min(statement.end, state.doc.length)).number;
  for (let line = state.doc.lineAt(statement.start).number; line <= last; line++) {
    const { from } = state.doc.line(line);
    builder.add(from, from, IN_STATEMENT);
  }
  return builder.finish();
}

/** Draws a bar along the lines of the current statement. */
export const statementBar = StateField.define<DecorationSet>({
  create: statementLines,
  update: (value, transaction) =>
    transaction.docChanged || transaction.selection ? statementLines(transaction.state) : value,
  provide: (field) => EditorView.decorations.from(field),
});

/** Returns all statements in the text, in order. */
export function allStatements(state: EditorState): Statement[] {
  return statementsOf(state.field(tokens));
}
