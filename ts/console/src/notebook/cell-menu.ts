/** Menu actions for a cell. */
import { showFailure, showToast } from '../page/notices.js';
import type { MenuItem } from '../ui/Menu.js';
import { scan } from '../sql/scanner.js';
import { statementsOf } from '../sql/statements.js';
import { addCell } from './AddCells.js';
import type { CellProps } from './context.js';
import {
  freeName,
  MAX_CELLS,
  newId,
  type Cell,
  type Command,
  type SqlCell,
} from '../cells/model.js';
import { move } from './context.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

export function cellMenu(props: CellProps): MenuItem[] {
  const { cell, document: doc } = props;
  const at = doc.notebook().cells.findIndex(({ id }) => id === cell.id);
  return [
    ...(cell.kind === 'sql' ? sqlItems(props, cell) : []),
    {
      label: texts.cells.moveUp,
      keys: 'Alt+↑',
      divider: true,
      run: () => move(props, cell.id, -1),
    },
    { label: texts.cells.moveDown, keys: 'Alt+↓', run: () => move(props, cell.id, 1) },
    {
      label: texts.cells.addSqlCellBelow,
      divider: true,
      run: () => addCell(props, 'sql', at + 1),
    },
    { label: texts.cells.addChartCellBelow, run: () => addCell(props, 'chart', at + 1) },
    { label: texts.cells.addTextCellBelow, run: () => addCell(props, 'markdown', at + 1) },
    { label: texts.cells.duplicate, run: () => duplicate(props, at) },
    { label: 'Delete', divider: true, run: () => remove(props) },
  ];
}

function sqlItems({ document: doc, refresher }: CellProps, cell: SqlCell): MenuItem[] {
  const isFolded = cell.folded === true;
  return [
    { label: texts.common.run, keys: 'Ctrl+Enter', run: () => void doc.runCell(cell.id) },
    { label: texts.cells.runFromHere, run: () => void doc.runFrom(cell.id) },
    {
      label: cell.view === 'grid' ? texts.cells.showAsChart : texts.cells.showAsGrid,
      divider: true,
      run: () => {
        const view = cell.view === 'grid' ? 'chart' : 'grid';
        doc.change({ kind: 'change', id: cell.id, patch: { view } });
        refresher.shownAs(cell.id);
      },
    },
    {
      label: texts.cells.showStatement,
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
    text:
      cell.kind === 'sql'
        ? fill(texts.cells.deleted, { name: cell.name })
        : texts.cells.textDeleted,
    action: { label: texts.common.undo, run: () => doc.undo() },
  });
}

function duplicate({ cell, document: doc }: CellProps, at: number): void {
  const notebook = doc.notebook();
  if (notebook.cells.length >= MAX_CELLS) {
    showFailure(fill(texts.cells.tooManyCells, { max: MAX_CELLS }));
    return;
  }
  const copy: Cell =
    cell.kind === 'sql'
      ? { ...cell, id: newId(), name: freeName(notebook, cell.name) }
      : { ...cell, id: newId() };
  doc.change({ kind: 'add', at: at + 1, cells: [copy] });
}

/** Splits a cell: each statement except the first is moved to a new cell. */
export function split({ cell, document: doc }: CellProps<SqlCell>): void {
  const { text } = cell;
  const [first, ...rest] = statementsOf(scan(text)).map(({ start, end }) => text.slice(start, end));
  const at = doc.notebook().cells.findIndex(({ id }) => id === cell.id);
  let { cells } = doc.notebook();
  const added = rest.map((statement): Cell => {
    const copy = { ...cell, id: newId(), name: freeName({ cells }), text: statement };
    cells = [...cells, copy];
    return copy;
  });
  if (cells.length > MAX_CELLS) {
    showFailure(fill(texts.cells.tooManyCells, { max: MAX_CELLS }));
    return;
  }
  const commands: Command[] = [
    { kind: 'change', id: cell.id, patch: { text: first ?? '' } },
    { kind: 'add', at: at + 1, cells: added },
  ];
  doc.change({ kind: 'all', commands });
}
