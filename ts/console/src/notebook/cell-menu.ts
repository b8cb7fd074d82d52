/** Actions on a cell other than running it. */
import { showFailure, showToast } from '../page/notices.js';
import type { MenuItem } from '../ui/Menu.js';
import { scan } from '../sql/scanner.js';
import { statementsOf } from '../sql/statements.js';
import { addCell } from './AddCells.js';
import type { CellProps } from './parts.js';
import {
  freeName,
  MAX_CELLS,
  newId,
  type Cell,
  type Command,
  type SqlCell,
} from '../cells/model.js';
import { move } from './parts.js';

export function cellMenu(props: CellProps): MenuItem[] {
  const { cell, document: doc } = props;
  const at = doc.notebook().cells.findIndex(({ id }) => id === cell.id);
  return [
    ...(cell.kind === 'sql' ? sqlItems(props, cell) : []),
    { label: 'Move up', keys: 'Alt+↑', apart: true, run: () => move(props, cell.id, -1) },
    { label: 'Move down', keys: 'Alt+↓', run: () => move(props, cell.id, 1) },
    { label: 'Add SQL cell below', apart: true, run: () => addCell(props, 'sql', at + 1) },
    { label: 'Add chart cell below', run: () => addCell(props, 'chart', at + 1) },
    { label: 'Add text cell below', run: () => addCell(props, 'markdown', at + 1) },
    { label: 'Duplicate', run: () => duplicate(props, at) },
    { label: 'Delete', apart: true, run: () => remove(props) },
  ];
}

function sqlItems({ document: doc, refresher }: CellProps, cell: SqlCell): MenuItem[] {
  const isFolded = cell.folded === true;
  return [
    { label: 'Run', keys: 'Ctrl+Enter', run: () => void doc.runCell(cell.id) },
    { label: 'Run from here', run: () => void doc.runFrom(cell.id) },
    {
      label: cell.view === 'grid' ? 'Show as chart' : 'Show as grid',
      apart: true,
      run: () => {
        const view = cell.view === 'grid' ? 'chart' : 'grid';
        doc.change({ kind: 'change', id: cell.id, patch: { view } });
        refresher.shownAs(cell.id);
      },
    },
    {
      label: 'Show statement',
      checked: !isFolded,
      run: () =>
        doc.change({
          kind: 'change',
          id: cell.id,
          patch: { folded: isFolded ? undefined : true },
        }),
    },
  ];
}

function remove({ cell, document: doc }: CellProps): void {
  doc.change({ kind: 'remove', ids: [cell.id] });
  showToast({
    text: cell.kind === 'sql' ? `${cell.name} deleted` : 'Text deleted',
    action: { label: 'Undo', run: () => doc.undo() },
  });
}

function duplicate({ cell, document: doc }: CellProps, at: number): void {
  const notebook = doc.notebook();
  if (notebook.cells.length >= MAX_CELLS) {
    showFailure(`A notebook can have at most ${MAX_CELLS} cells.`);
    return;
  }
  const copy: Cell =
    cell.kind === 'sql'
      ? { ...cell, id: newId(), name: freeName(notebook, cell.name) }
      : { ...cell, id: newId() };
  doc.change({ kind: 'add', at: at + 1, cells: [copy] });
}

/** Moves each statement of a cell to a separate cell; the first one stays. */
export function split({ cell, document: doc }: CellProps<SqlCell>): void {
  const { text } = cell;
  const [first, ...rest] = statementsOf(scan(text)).map(({ start, end }) => text.slice(start, end));
  const at = doc.notebook().cells.findIndex(({ id }) => id === cell.id);
  let { cells } = doc.notebook();
  const added = rest.map((statement): Cell => {
    const made = { ...cell, id: newId(), name: freeName({ cells }), text: statement };
    cells = [...cells, made];
    return made;
  });
  if (cells.length > MAX_CELLS) {
    showFailure(`A notebook can have at most ${MAX_CELLS} cells.`);
    return;
  }
  const commands: Command[] = [
    { kind: 'change', id: cell.id, patch: { text: first ?? '' } },
    { kind: 'add', at: at + 1, cells: added },
  ];
  doc.change({ kind: 'all', commands });
}
