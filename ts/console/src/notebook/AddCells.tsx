/** Buttons that add a cell at a position, or a variable to the notebook. */
import { For, type JSX } from 'solid-js';
import { announce, showFailure } from '../page/notices.js';
import { Icon, type IconName } from '../ui/icons.js';
import { freeName, MAX_CELLS, newId, type Cell } from '../cells/model.js';
import type { NotebookContext } from './context.js';
import { openVariables } from './VariableBar.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

type Added = 'sql' | 'chart' | 'markdown';

const KINDS: readonly (readonly [Added, string, IconName])[] = [
  ['sql', 'SQL', 'sql'],
  ['chart', texts.common.chart, 'chart'],
  ['markdown', texts.common.text, 'text'],
];

export function AddCells(props: NotebookContext & { at: number }): JSX.Element {
  return (
    <div class="add-cells" role="group" aria-label={texts.cells.addACell}>
      <For each={KINDS}>
        {([kind, name, icon]) => (
          <button class="button" onClick={() => addCell(props, kind, props.at)}>
            <Icon name={icon} />
            {name}
          </button>
        )}
      </For>
      <button class="button" title={texts.cells.variableHint} onClick={() => openVariables()}>
        <Icon name="filter" />
        {texts.cells.variable}
      </button>
    </div>
  );
}

export function addCell({ document: doc }: NotebookContext, kind: Added, at: number): void {
  const notebook = doc.notebook();
  if (notebook.cells.length >= MAX_CELLS) {
    showFailure(fill(texts.cells.tooManyCells, { max: MAX_CELLS }));
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
  announce(fill(texts.cells.added, { number: at + 1 }));
}
