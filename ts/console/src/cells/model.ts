/**
 * Data model of a notebook: its cells, variables and layout, and the commands that change it. Each
 * command has an inverse, which undo uses. Commands never modify a notebook in place.
 */

import type { ChartOptions } from '../chart/options.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

export interface SqlCell {
  readonly kind: 'sql';
  readonly id: string;
  /** Name by which later cells can query this cell's rows. */
  readonly name: string;
  readonly text: string;
  /** Title chosen by the user. By default, the title is derived from the name and the result. */
  readonly title?: string;
  readonly view: CellView;
  /** Chart kind chosen by the user. By default, the kind is derived from the result. */
  readonly chart?: string;
  /** Display options of the chart, such as its unit, axis, thresholds and annotations. */
  readonly options?: ChartOptions;
  /** True if the statement is hidden and only the result is shown. */
  readonly folded?: boolean;
  readonly size?: CellSize;
}

export interface MarkdownCell {
  readonly kind: 'markdown';
  readonly id: string;
  readonly text: string;
  readonly size?: CellSize;
}

export type Cell = SqlCell | MarkdownCell;
export type CellView = 'grid' | 'chart';

/**
 * Size of a cell in the grid layout. The width is in twelfths of the grid, and the height in rows
 * of `ROW_PX` pixels.
 */
export interface CellSize {
  readonly width: number;
  readonly height: number;
}

export const COLUMNS = 12;
export const MAX_ROWS = 40;
export const MAX_TITLE_LENGTH = 80;
export const MAX_CELLS = 200;
export const MAX_VARIABLES = 50;
export const MAX_TEXT_LENGTH = 256 * 1024;

export const VARIABLE_KINDS = ['text', 'number', 'list', 'time'] as const;
export type VariableKind = (typeof VARIABLE_KINDS)[number];

export interface Variable {
  /** Name of the variable, without the leading `@`. */
  readonly name: string;
  readonly kind: VariableKind;
  readonly value: string;
  /** For a list, the query whose first column contains the choices. */
  readonly query?: string;
}

/** The time range shared by all cells, as two time expressions such as `now-1h` or `2026-01-01`. */
export interface TimeRange {
  readonly from: string;
  readonly to: string;
}

export const LAYOUTS = ['list', 'grid'] as const;
type LayoutKind = (typeof LAYOUTS)[number];

/**
 * When cells are refreshed: never (`off`), on every data change (`changes`), or at an interval in
 * seconds.
 */
export type Refresh = 'off' | 'changes' | number;
export const REFRESH_SECONDS = [1, 5, 10, 30, 60] as const;

export interface NotebookSettings {
  readonly layout: LayoutKind;
  readonly refresh: Refresh;
  readonly range: TimeRange | undefined;
  readonly variables: readonly Variable[];
}

export interface Notebook extends NotebookSettings {
  readonly cells: readonly Cell[];
}

export const EMPTY: Notebook = {
  layout: 'list',
  refresh: 'off',
  range: undefined,
  variables: [],
  cells: [],
};

/**
 * Changes to the properties of a cell. An absent key leaves the property unchanged, and `undefined`
 * removes the property.
 */
interface CellPatch {
  readonly name?: string;
  readonly title?: string | undefined;
  readonly text?: string;
  readonly view?: CellView;
  readonly chart?: string | undefined;
  readonly options?: ChartOptions | undefined;
  readonly folded?: boolean | undefined;
  readonly size?: CellSize | undefined;
}

export type Command =
  | { readonly kind: 'add'; readonly at: number; readonly cells: readonly Cell[] }
  | { readonly kind: 'remove'; readonly ids: readonly string[] }
  | { readonly kind: 'move'; readonly id: string; readonly to: number }
  | { readonly kind: 'change'; readonly id: string; readonly patch: CellPatch }
  | { readonly kind: 'settings'; readonly patch: Partial<NotebookSettings> }
  | { readonly kind: 'all'; readonly commands: readonly Command[] };

export function apply(notebook: Notebook, command: Command): Notebook {
  const { cells } = notebook;
  switch (command.kind) {
    case 'add':
      return { ...notebook, cells: cells.toSpliced(command.at, 0, ...command.cells) };
    case 'remove':
      return { ...notebook, cells: cells.filter(({ id }) => !command.ids.includes(id)) };
    case 'move':
      return { ...notebook, cells: moved(cells, command.id, command.to) };
    case 'change':
      return { ...notebook, cells: cells.map((cell) => changed(cell, command)) };
    case 'settings':
      return { ...notebook, ...command.patch };
    case 'all':
      return command.commands.reduce(apply, notebook);
  }
}

/** Returns the command that undoes `command`. Call this before applying `command`. */
export function inverse(notebook: Notebook, command: Command): Command {
  const { cells } = notebook;
  switch (command.kind) {
    case 'add':
      return { kind: 'remove', ids: command.cells.map(({ id }) => id) };
    case 'remove': {
      const commands = cells.flatMap((cell, at): Command[] =>
        command.ids.includes(cell.id) ? [{ kind: 'add', at, cells: [cell] }] : [],
      );
      return { kind: 'all', commands };
    }
    case 'move':
      return { ...command, to: cells.findIndex(({ id }) => id === command.id) };
    case 'change': {
      const cell = cells.find(({ id }) => id === command.id);
      const keys = Object.keys(command.patch) as (keyof CellPatch)[];
      const before = (cell ?? {}) as CellPatch;
      return { ...command, patch: Object.fromEntries(keys.map((key) => [key, before[key]])) };
    }
    case 'settings': {
      const keys = Object.keys(command.patch) as (keyof NotebookSettings)[];
      return { ...command, patch: Object.fromEntries(keys.map((key) => [key, notebook[key]])) };
    }
    case 'all':
      return inverseOfAll(notebook, command.commands);
  }
}

function inverseOfAll(notebook: Notebook, commands: readonly Command[]): Command {
  const inverses: Command[] = [];
  let state = notebook;
  for (const command of commands) {
    inverses.unshift(inverse(state, command));
    state = apply(state, command);
  }
  return { kind: 'all', commands: inverses };
}

function moved(cells: readonly Cell[], id: string, to: number): readonly Cell[] {
  const cell = cells.find((candidate) => candidate.id === id);
  const others = cells.filter((candidate) => candidate !== cell);
  return cell ? others.toSpliced(to, 0, cell) : cells;
}

function changed(cell: Cell, { id, patch }: { id: string; patch: CellPatch }): Cell {
  if (cell.id !== id) {
    return cell;
  }
  const merged = Object.entries({ ...cell, ...patch }).filter(([, value]) => value !== undefined);
  return Object.fromEntries(merged) as unknown as Cell;
}

const NAME = /^[A-Za-z_][A-Za-z0-9_]{0,62}$/;

export function isName(text: string): boolean {
  return NAME.test(text);
}

export function sqlCells({ cells }: Pick<Notebook, 'cells'>): readonly SqlCell[] {
  return cells.filter((cell) => cell.kind === 'sql');
}

/**
 * Returns an unused cell name: `cell_1`, `cell_2`, …, or the preferred name. If the preferred name
 * is taken, a number is appended.
 */
export function freeName({ cells }: Pick<Notebook, 'cells'>, preferred = 'cell'): string {
  const taken = new Set(sqlCells({ cells }).map(({ name }) => name.toLowerCase()));
  if (preferred !== 'cell' && !taken.has(preferred.toLowerCase())) {
    return preferred;
  }
  let number = 1;
  while (taken.has(`${preferred}_${number}`.toLowerCase())) {
    number += 1;
  }
  return `${preferred}_${number}`;
}

/** Returns the reason that a cell cannot have this name, or `undefined` if the name is allowed. */
export function nameTrouble(notebook: Notebook, id: string, name: string): string | undefined {
  if (!isName(name)) {
    return texts.cellStatement.invalidName;
  }
  const other = sqlCells(notebook).find(
    (cell) => cell.id !== id && cell.name.toLowerCase() === name.toLowerCase(),
  );
  return other ? fill(texts.cellStatement.nameTaken, { name: other.name }) : undefined;
}

let lastId = 0;

/** Creates an id for a cell. Ids are unique within the page and are not saved in the file. */
export function newId(): string {
  lastId += 1;
  return `c${lastId}`;
}
