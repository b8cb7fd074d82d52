/** What runs have left in the editor: a mark beside each statement. */
import { RangeSet, StateEffect, StateField } from '@codemirror/state';
import { gutter, GutterMarker } from '@codemirror/view';

export type MarkState = 'running' | 'done' | 'failed' | 'cancelled';

const SVG = 'http://www.w3.org/2000/svg';

const SHAPES: Readonly<Record<MarkState, string>> = {
  running: 'M8 2.5A5.5 5.5 0 1 1 2.5 8',
  done: 'M3.5 8.5l3 3 6-7',
  failed: 'M8 2.5 14.2 13.3H1.8zM8 6.5v3.2M8 11.3v.3',
  cancelled: 'M4.5 4.5h7v7h-7z',
};

class RunMarker extends GutterMarker {
  readonly state: MarkState;
  readonly title: string;

  constructor(state: MarkState, title: string) {
    super();
    this.state = state;
    this.title = title;
  }

  override eq(other: RunMarker): boolean {
    return other.state === this.state && other.title === this.title;
  }

  override toDOM(): Node {
    const holder = document.createElement('span');
    holder.className = `cm-run-mark cm-run-${this.state}`;
    holder.title = this.title;
    const image = document.createElementNS(SVG, 'svg');
    image.setAttribute('viewBox', '0 0 16 16');
    image.setAttribute('role', 'img');
    image.setAttribute('aria-label', this.title);
    const path = document.createElementNS(SVG, 'path');
    path.setAttribute('d', SHAPES[this.state]);
    image.append(path);
    holder.append(image);
    return holder;
  }
}

/** Sets the mark of the line where a statement begins. */
export const setMark = StateEffect.define<{ at: number; state: MarkState; title: string }>({
  map: (value, changes) => ({ ...value, at: changes.mapPos(value.at) }),
});

const marks = StateField.define<RangeSet<RunMarker>>({
  create: () => RangeSet.empty,
  update: (before, transaction) => {
    let value = before.map(transaction.changes);
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

export const runMarks = [
  marks,
  gutter({
    class: 'cm-run-gutter',
    markers: (view) => view.state.field(marks),
    initialSpacer: () => new RunMarker('done', ''),
  }),
];
