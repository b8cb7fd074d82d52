/** Menu of the actions on one column. */
import { copy } from '../ui/clipboard.js';
import type { MenuItem } from '../ui/Menu.js';
import type { GridParts } from './parts.js';

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
    sortItem('Sort loaded rows ascending', false),
    sortItem('Sort loaded rows descending', true),
    { label: 'Move to front', keys: '/', apart: true, run: () => move(0) },
    { label: 'Move left', run: () => move(Math.max(0, place - 1)) },
    { label: 'Move right', run: () => move(Math.min(count - 1, place + 1)) },
    {
      label: 'Freeze up to here',
      checked: isHeldHere,
      run: () => state.freeze(isHeldHere ? 0 : place + 1),
    },
    { label: 'Widen', run: () => layout.setWidth(place, layout.width(place) * 1.5) },
    { label: 'Narrow', run: () => layout.setWidth(place, layout.width(place) / 1.5) },
    {
      label: 'Show column profile',
      apart: true,
      keys: 'Enter',
      run: () => {
        act(place);
        state.inspected.set(true);
      },
    },
    {
      label: 'Copy name',
      run: () => void copy(result.columns[column]?.name ?? '', 'Name'),
    },
    { label: 'Reset grid', keys: 'Ctrl+B', run: () => state.reset() },
  ];
}
