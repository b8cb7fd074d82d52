/** Menu of the actions on one column. */
import { copy } from '../ui/clipboard.js';
import type { MenuItem } from '../ui/Menu.js';
import type { GridParts } from './parts.js';
import { texts } from '../texts.js';

/** `act` moves the cursor to a position. */
export function columnMenu(
  { state, result, layout }: GridParts,
  place: number,
  act: (place: number) => void,
): MenuItem[] {
  const column = layout.columnAt(place);
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
    state.move(count, place, to);
    act(to);
  };
  const isHeldHere = state.frozen() === place + 1;
  return [
    sortItem(texts.columnMenu.sortAscending, false),
    sortItem(texts.columnMenu.sortDescending, true),
    { label: texts.columnMenu.moveToFront, keys: '/', apart: true, run: () => move(0) },
    { label: texts.columnMenu.moveLeft, run: () => move(Math.max(0, place - 1)) },
    { label: texts.columnMenu.moveRight, run: () => move(Math.min(count - 1, place + 1)) },
    {
      label: texts.columnMenu.freeze,
      checked: isHeldHere,
      run: () => state.freeze(isHeldHere ? 0 : place + 1),
    },
    { label: texts.columnMenu.widen, run: () => layout.setWidth(place, layout.width(place) * 1.5) },
    {
      label: texts.columnMenu.narrow,
      run: () => layout.setWidth(place, layout.width(place) / 1.5),
    },
    {
      label: texts.columnMenu.showProfile,
      apart: true,
      keys: 'Enter',
      run: () => {
        act(place);
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
