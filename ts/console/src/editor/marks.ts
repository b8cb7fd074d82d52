/**
 * Gutter marks. A mark shows the state of a statement's last run, or is a button that runs the
 * statement.
 */
import {
  RangeSet,
  StateEffect,
  StateField,
  type EditorState,
  type Extension,
  type Transaction,
} from '@codemirror/state';
import { gutter, GutterMarker } from '@codemirror/view';
import type { Run } from '../state/run.js';
import { allStatements, statementBar } from './text.js';
import { texts } from '../texts.js';

export type MarkState = Run['state'];

const SVG = 'http://www.w3.org/2000/svg';

const SHAPES: Readonly<Record<MarkState | 'ready', string>> = {
  ready: 'M5 3.5v9l7-4.5z',
  running: 'M8 2.5A5.5 5.5 0 1 1 2.5 8',
  done: 'M3.5 8.5l3 3 6-7',
  failed: 'M8 2.5 14.2 13.3H1.8zM8 6.5v3.2M8 11.3v.3',
  cancelled: 'M4.5 4.5h7v7h-7z',
};

class RunMarker extends GutterMarker {
  readonly state: MarkState | 'ready';
  readonly title: string;

  constructor(state: MarkState | 'ready', title: string) {
    super();
    this.state = state;
    this.title = title;
  }

  override eq(other: RunMarker): boolean {
    return other.state === this.state && other.title === this.title;
  }

  override toDOM(): Node {
    const mark = document.createElement('span');
    mark.className = `cm-run-mark cm-run-${this.state}`;
    mark.title = this.title;
    const image = document.createElementNS(SVG, 'svg');
    image.setAttribute('viewBox', '0 0 16 16');
    image.setAttribute('role', 'img');
    image.setAttribute('aria-label', this.title);
    const path = document.createElementNS(SVG, 'path');
    path.setAttribute('d', SHAPES[this.state]);
    image.append(path);
    mark.append(image);
    return mark;
  }
}

/** Sets the mark of the line where a statement begins. */
export const setMark = StateEffect.define<{ at: number; state: MarkState; title: string }>({
  map: (value, changes) => ({ ...value, at: changes.mapPos(value.at) }),
});

/** Removes the marks of statements that were edited after they ran. */
function untouched(
  marks: RangeSet<RunMarker>,
  { startState, changes }: Transaction,
): RangeSet<RunMarker> {
  const statements = allStatements(startState);
  return marks
    .update({
      filter: (from, _to, { state }) => {
        const ran = statements.find(({ start }) => start >= from);
        return state === 'running' || !ran || changes.touchesRange(ran.start, ran.end) === false;
      },
    })
    .map(changes);
}

const marks = StateField.define<RangeSet<RunMarker>>({
  create: () => RangeSet.empty,
  update: (before, transaction) => {
    let value = transaction.docChanged ? untouched(before, transaction) : before;
    for (const effect of transaction.effects) {
      if (!effect.is(setMark)) {
        continue;
      }
      const line = transaction.state.doc.lineAt(effect.value.at);
      const marker = new RunMarker(effect.value.state, effect.value.title);
      value = value.update({
        filter: (from) => from < line.from || from > line.to,
        add: [marker.range(line.from)],
      });
    }
    return value;
  },
});

const READY = new RunMarker('ready', texts.editor.runStatement);

/** Returns the run button of the statement under the cursor, unless a run has left a mark there. */
function readyMarks(state: EditorState): RangeSet<RunMarker> {
  const { from, value } = state.field(statementBar).iter();
  const isMarked = state.field(marks).iter(from).from === from;
  return RangeSet.of(value === null || isMarked ? [] : [READY.range(from)]);
}

/**
 * Returns the start of the statement on a line. If several statements begin on the line, returns
 * the first.
 */
function statementOn(state: EditorState, lineStart: number): number | undefined {
  const { from, to } = state.doc.lineAt(lineStart);
  const near = allStatements(state).filter(({ start, end }) => start <= to && end >= from);
  return (near.find(({ start }) => start >= from) ?? near[0])?.start;
}

/**
 * Gutter with the marks of statements. A click beside a statement moves the cursor into the
 * statement and calls `run`.
 */
export function runMarks(run: () => void): Extension {
  return [
    marks,
    gutter({
      class: 'cm-run-gutter',
      markers: ({ state }) => [state.field(marks), readyMarks(state)],
      initialSpacer: () => new RunMarker('done', ''),
      domEventHandlers: {
        click: (view, { from }) => {
          const start = statementOn(view.state, from);
          if (start === undefined) {
            return false;
          }
          view.dispatch({ selection: { anchor: start } });
          view.focus();
          run();
          return true;
        },
      },
    }),
  ];
}
