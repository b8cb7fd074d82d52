/** Context menu of a grid column. */
import { copy } from '../ui/clipboard.js';
import type { MenuItem } from '../ui/Menu.js';
import type { GridContext } from './context.js';
import { texts } from '../texts.js';

/** Returns the menu items for the column at `position`. `act` moves the cursor to a column. */
export function columnMenu(
  { state, result, layout }: GridContext,
  position: number,
  act: (position: number) => void,
): MenuItem[] {
  const column = layout.columnAt(position);
  const count = result.columns.length;
  const sort = state.sort();
  const isSorted = (descending: boolean): boolean =>
    sort?.column === column && sort.descending === descending;
  const sortItem = (label: string, descending: boolean): MenuItem => ({
    label,
    checked: isSorted(descending),
    run: () => state.sortBy(isSorted(descending) ? undefined : { column, descending }),
  });
  const move = (to: number): void => {
    state.move(count, position, to);
    act(to);
  };
  const isFrozenHere = state.frozen() === position + 1;
  return [
    sortItem(texts.columnMenu.sortAscending, false),
    sortItem(texts.columnMenu.sortDescending, true),
    { label: texts.columnMenu.moveToFront, keys: '/', divider: true, run: () => move(0) },
    { label: texts.columnMenu.moveLeft, run: () => move(Math.max(0, position - 1)) },
    { label: texts.columnMenu.moveRight, run: () => move(Math.min(count - 1, position + 1)) },
    {
      label: texts.columnMenu.freeze,
      checked: isFrozenHere,
      run: () => state.freeze(isFrozenHere ? 0 : position + 1),
    },
    {
      label: texts.columnMenu.widen,
      run: () => layout.setWidth(position, layout.width(position) * 1.5),
    },
    {
      label: texts.columnMenu.narrow,
      run: () => layout.setWidth(position, layout.width(position) / 1.5),
    },
    {
      label: texts.columnMenu.showProfile,
      divider: true,
      keys: 'Enter',
      run: () => {
        act(position);
        state.inspected.set(true);
      },
    },
    {
      label: texts.common.copyName,
      run: () => void copy(result.columns[column]?.name ?? '', texts.common.name),
    },
    { label: texts.columnMenu.resetGrid, keys: 'Ctrl+B', run: () => state.reset() },
  ];
}
