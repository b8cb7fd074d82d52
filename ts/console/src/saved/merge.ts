/**
 * Merges two users' changes to a notebook, cell by cell. A change that only one user made is
 * accepted. If both users changed the same cell, the user chooses a version.
 */
import {
  freeName,
  type Cell,
  type Notebook,
  type NotebookSettings,
  type Variable,
} from '../cells/model.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

/** How the user resolves a conflict. */
export type Choice = 'mine' | 'theirs' | 'both';

/** A cell or setting that both users changed differently. */
export interface Conflict {
  readonly key: string;
  readonly label: string;
  /** The user's version; `undefined` if the user deleted the cell or setting. */
  readonly mine: string | undefined;
  readonly theirs: string | undefined;
  /** True if both versions can be kept next to each other. */
  readonly canKeepBoth: boolean;
}

export interface Merge {
  readonly conflicts: readonly Conflict[];
  /** Number of cells and settings that only this user changed. */
  readonly mine: number;
  readonly theirs: number;
  /** Returns the merged notebook; requires a choice for each conflict. */
  readonly merged: (choices: ReadonlyMap<string, Choice>) => Notebook;
}

/** The cells or settings of one version, in order, by key. */
type Keyed<T> = ReadonlyMap<string, T>;

interface Comparison<T> {
  readonly key: string;
  readonly mine: T | undefined;
  readonly theirs: T | undefined;
  readonly take: 'mine' | 'theirs' | 'conflict';
  readonly isSame: boolean;
}

export function merge(base: Notebook, mine: Notebook, theirs: Notebook): Merge {
  const before = keyed(base.cells, new Map());
  const cells = {
    base: before,
    mine: keyed(mine.cells, before),
    theirs: keyed(theirs.cells, before),
  };
  const comparisons = compared(cells.base, cells.mine, cells.theirs, cellText);
  const settings = compared(settingsOf(base), settingsOf(mine), settingsOf(theirs), JSON.stringify);
  const order = orderOf([...cells.base.keys()], [...cells.mine.keys()], [...cells.theirs.keys()]);
  const all: readonly Comparison<unknown>[] = [...settings, ...comparisons];
  return {
    conflicts: [
      ...settings.filter(isConflict).map(settingConflict),
      ...comparisons.filter(isConflict).map(cellConflict),
    ],
    mine: all.filter(({ take, isSame }) => take === 'mine' && !isSame).length,
    theirs: all.filter(({ take, isSame }) => take === 'theirs' && !isSame).length,
    merged: (choices) => ({
      ...chosenSettings(settings, choices),
      cells: chosenCells(
        order,
        new Map(comparisons.map((comparison) => [comparison.key, comparison])),
        choices,
      ),
    }),
  };
}

function isConflict({ take }: Comparison<unknown>): boolean {
  return take === 'conflict';
}

/**
 * Assigns a key to each cell. SQL cells are identified by name. Text cells are identified by the
 * preceding cell, unless their text is unchanged.
 */
function keyed(cells: readonly Cell[], before: Keyed<Cell>): Keyed<Cell> {
  const known = new Map<string, string>();
  for (const [key, cell] of before) {
    if (cell.kind === 'markdown' && !known.has(cell.text)) {
      known.set(cell.text, key);
    }
  }
  const same = new Set(
    cells.flatMap((cell) => (cell.kind === 'markdown' ? (known.get(cell.text) ?? []) : [])),
  );
  const found = new Map<string, Cell>();
  let after = '';
  for (const cell of cells) {
    if (cell.kind === 'sql') {
      after = `sql ${cell.name.toLowerCase()}`;
      found.set(after, cell);
      continue;
    }
    const base = known.get(cell.text);
    if (base !== undefined && !found.has(base)) {
      found.set(base, cell);
      continue;
    }
    let number = 1;
    while (found.has(textKey(after, number)) || same.has(textKey(after, number))) {
      number += 1;
    }
    found.set(textKey(after, number), cell);
  }
  return found;
}

function textKey(after: string, number: number): string {
  return `text ${number} after ${after}`;
}

function compared<T>(
  base: Keyed<T>,
  mine: Keyed<T>,
  theirs: Keyed<T>,
  textOf: (value: T) => string,
): Comparison<T>[] {
  const text = (value: T | undefined): string | undefined =>
    value === undefined ? undefined : textOf(value);
  return [...new Set([...base.keys(), ...theirs.keys(), ...mine.keys()])].map((key) => {
    const [was, left, right] = [base.get(key), mine.get(key), theirs.get(key)];
    const [old, ours, other] = [text(was), text(left), text(right)];
    const isSame = ours === other;
    const take = isSame || ours === old ? 'theirs' : other === old ? 'mine' : 'conflict';
    return { key, mine: left, theirs: right, take, isSame };
  });
}

/**
 * Returns the merged order of cells: the other user's order, unless only this user has reordered
 * cells. Cells that exist in only one version keep their position after the preceding cell.
 */
function orderOf(
  base: readonly string[],
  mine: readonly string[],
  theirs: readonly string[],
): string[] {
  const common = base.filter((key) => mine.includes(key) && theirs.includes(key));
  const inOrder = (keys: readonly string[]): string =>
    JSON.stringify(keys.filter((key) => common.includes(key)));
  const isMoved = inOrder(theirs) === inOrder(base) && inOrder(mine) !== inOrder(base);
  const [first, second] = isMoved ? [mine, theirs] : [theirs, mine];
  const order = [...first];
  for (const [index, key] of second.entries()) {
    if (!order.includes(key)) {
      const before = second[index - 1];
      order.splice(before === undefined ? 0 : order.indexOf(before) + 1, 0, key);
    }
  }
  return order;
}

function cellText(cell: Cell): string {
  return JSON.stringify({ ...cell, id: '' });
}

function cellConflict({ key, mine, theirs }: Comparison<Cell>): Conflict {
  const cell = mine ?? theirs;
  return {
    key,
    label: cell?.kind === 'sql' ? fill(texts.common.cell, { name: cell.name }) : texts.common.text,
    mine: mine && shownCell(mine),
    theirs: theirs && shownCell(theirs),
    canKeepBoth: mine !== undefined && theirs !== undefined,
  };
}

/**
 * Returns a cell as readable text, including its properties: they may differ even if the statement
 * does not.
 */
function shownCell(cell: Cell): string {
  if (cell.kind === 'markdown') {
    return cell.text;
  }
  const options = Object.entries(cell.options ?? {}).map(([name, value]) => `${name} ${value}`);
  const properties = [
    cell.title,
    cell.view,
    cell.chart,
    cell.folded === true ? 'folded' : undefined,
    ...options,
  ]
    .filter((one) => one !== undefined && one !== 'grid')
    .join(', ');
  return properties === '' ? cell.text : `-- ${properties}\n${cell.text}`;
}

type Setting = NotebookSettings[keyof NotebookSettings] | Variable;

function settingsOf({ layout, refresh, range, variables }: Notebook): Keyed<Setting> {
  return new Map<string, Setting>([
    ['layout', layout],
    ['refresh', refresh],
    ...(range ? [['range', range] as const] : []),
    ...variables.map((variable) => [`@${variable.name.toLowerCase()}`, variable] as const),
  ]);
}

const SETTING_NAMES: Readonly<Record<string, string>> = {
  layout: texts.common.layout,
  refresh: texts.notebook.refresh,
  range: texts.common.timeRange,
};

function settingConflict({ key, mine, theirs }: Comparison<Setting>): Conflict {
  const shown = (value: Setting | undefined): string | undefined =>
    value === undefined || typeof value === 'string' || typeof value === 'number'
      ? value?.toString()
      : Object.values(value).join('  ');
  return {
    key,
    label: SETTING_NAMES[key] ?? fill(texts.common.variable, { name: key }),
    mine: shown(mine),
    theirs: shown(theirs),
    canKeepBoth: false,
  };
}

function chosenSettings(
  comparisons: readonly Comparison<Setting>[],
  choices: ReadonlyMap<string, Choice>,
): NotebookSettings {
  const chosen = new Map(
    comparisons.map(({ key, mine, theirs, take }) => {
      const side = take === 'conflict' ? (choices.get(key) ?? 'theirs') : take;
      return [key, side === 'mine' ? mine : theirs];
    }),
  );
  return {
    layout: chosen.get('layout') as NotebookSettings['layout'],
    refresh: chosen.get('refresh') as NotebookSettings['refresh'],
    range: chosen.get('range') as NotebookSettings['range'],
    variables: [...chosen].flatMap(([key, value]) =>
      key.startsWith('@') && value !== undefined ? [value as Variable] : [],
    ),
  };
}

function chosenCells(
  order: readonly string[],
  comparisons: ReadonlyMap<string, Comparison<Cell>>,
  choices: ReadonlyMap<string, Choice>,
): Cell[] {
  const cells: Cell[] = [];
  for (const key of order) {
    const { mine, theirs, take } = comparisons.get(key) ?? { take: 'theirs' };
    const side = take === 'conflict' ? (choices.get(key) ?? 'theirs') : take;
    const first = side === 'mine' ? mine : theirs;
    if (first) {
      cells.push(first);
    }
    if (side === 'both' && mine) {
      cells.push(beside(mine, cells, comparisons));
    }
  }
  return cells;
}

/** Renames a cell that is kept next to the other user's version of the same name. */
function beside(
  cell: Cell,
  cells: readonly Cell[],
  comparisons: ReadonlyMap<string, Comparison<Cell>>,
): Cell {
  if (cell.kind === 'markdown') {
    return cell;
  }
  const others = [...comparisons.values()].flatMap(({ mine, theirs }) => [mine, theirs]);
  const taken = [...cells, ...others].filter((one) => one !== undefined);
  return { ...cell, name: freeName({ cells: taken }, cell.name) };
}
