/** Buttons that add a cell at a position, or a variable for all cells. */
import { For, type JSX } from 'solid-js';
import { announce, showFailure } from '../page/notices.js';
import { Icon, type IconName } from '../ui/icons.js';
import { freeName, MAX_CELLS, newId, type Cell } from '../cells/model.js';
import type { NotebookParts } from './parts.js';
import { openVariables } from './VariableBar.js';

type Added = 'sql' | 'chart' | 'markdown';

const KINDS: readonly (readonly [Added, string, IconName])[] = [
  ['sql', 'SQL', 'sql'],
  ['chart', 'Chart', 'chart'],
  ['markdown', 'Text', 'text'],
];

export function AddCells(props: NotebookParts & { at: number }): JSX.Element {
  return (
    <div class="add-cells" role="group" aria-label="Add a cell">
      <For each={KINDS}>
        {([kind, name, icon]) => (
          <button class="button" onClick={() => addCell(props, kind, props.at)}>
            <Icon name={icon} />
            {name}
          </button>
        )}
      </For>
      <button
        class="button"
        title="A value that statements use as @name, set above the cells"
        onClick={() => openVariables()}
      >
        <Icon name="filter" />
        Variable
      </button>
    </div>
  );
}

export function addCell({ document: doc }: NotebookParts, kind: Added, at: number): void {
  const notebook = doc.notebook();
  if (notebook.cells.length >= MAX_CELLS) {
    showFailure(`A notebook can have at most ${MAX_CELLS} cells.`);
    return;
  }
  const id = newId();
  const cell: Cell =
    kind === 'markdown'
      ? { kind, id, text: '' }
      : {
          kind: 'sql',
          id,
          name: freeName(notebook),
          text: '',
          view: kind === 'chart' ? 'chart' : 'grid',
        };
  doc.change({ kind: 'add', at, cells: [cell] });
  announce(`Cell ${at + 1} added`);
}
