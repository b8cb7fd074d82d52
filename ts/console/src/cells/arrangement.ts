/**
 * Determines which cells of a notebook are presented, with which titles and in which layout. This
 * module has no side effects.
 */
import type { Column } from '../api/answer.js';
import { familyOf, isNumeric } from '../model/types.js';
import type { Cell, Notebook, SqlCell } from './model.js';
import { shownSize } from './sizes.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

/** Ratio of width to height of a readable chart. */
const CHART_RATIO = 1.7;
const MAX_PER_ROW = 6;
/** Number of grid tracks. It is divisible by every number of cells per row up to `MAX_PER_ROW`. */
const TRACKS = 60;
/**
 * Minimum height of a cell. If any cell would be shorter, the layout ignores all cell sizes and
 * depends only on the number of cells.
 */
const MIN_HEIGHT_PX = 120;
const COLUMNS = 12;
const MAX_NAMED_COLUMNS = 3;

export interface Arrangement {
  /** Number of grid columns. All rows have the same height. */
  readonly tracks: number;
  readonly cells: readonly {
    readonly id: string;
    readonly width: number;
    readonly height: number;
  }[];
}

/**
 * Returns the cells to present: charts and titled tables, or all cells with SQL if there are
 * neither.
 */
export function presentedCells({ cells }: Pick<Notebook, 'cells'>): readonly SqlCell[] {
  const written = cells.filter(
    (cell): cell is SqlCell => cell.kind === 'sql' && cell.text.trim() !== '',
  );
  const chosen = written.filter(({ view, title }) => view === 'chart' || title !== undefined);
  return chosen.length > 0 ? chosen : written;
}

/**
 * Lays out all cells on one screen. Uses their sizes if any are set and all cells fit. Otherwise,
 * divides the screen evenly.
 */
export function arrange(
  cells: readonly Cell[],
  screen: { readonly width: number; readonly height: number },
): Arrangement {
  const sizes = cells.map((cell) => ({ id: cell.id, ...shownSize(cell) }));
  const rows = sizes.reduce((sum, { width, height }) => sum + width * height, 0) / COLUMNS;
  const minHeight = Math.min(...sizes.map(({ height }) => height));
  const fits = (minHeight / Math.max(rows, 1)) * screen.height >= MIN_HEIGHT_PX;
  if (fits && cells.some(({ size }) => size !== undefined)) {
    return { tracks: COLUMNS, cells: sizes };
  }
  const count = Math.max(1, cells.length);
  const ratio = screen.width / screen.height / CHART_RATIO;
  const perRow = Math.min(MAX_PER_ROW, Math.ceil(Math.sqrt(count * ratio) - 0.25), count);
  const lines = Math.ceil(count / Math.max(1, perRow));
  const sized = cells.map(({ id }, at) => {
    // If the cells do not fill all rows evenly, the first rows get one more cell.
    const [short, more] = [Math.floor(count / lines), count % lines];
    const width = TRACKS / (at < more * (short + 1) ? short + 1 : short);
    return { id, width, height: 1 };
  });
  return { tracks: TRACKS, cells: sized };
}

/**
 * Returns the title that the user chose, or else a title derived from the cell's name, columns and
 * table.
 */
export function titleOf(
  cell: Pick<SqlCell, 'name' | 'text' | 'title'>,
  columns: readonly Column[] = [],
): string {
  if (cell.title !== undefined) {
    return cell.title;
  }
  if (!/^cell_\d+$/i.test(cell.name)) {
    return asTitle(cell.name);
  }
  const values = columns.filter(({ type }) => isNumeric(type)).map(({ name }) => name);
  const key = columns.find(({ type }) => ['symbol', 'text'].includes(familyOf(type)));
  const table = /\bFROM\s+"?([\p{L}_][\p{L}\p{N}_.]*)/iu.exec(cell.text)?.[1];
  if (values.length === 0) {
    return asTitle(table ?? texts.common.chart);
  }
  const isCandle = ['open', 'high', 'low', 'close'].every((name) => values.includes(name));
  const what = isCandle ? texts.cells.prices : values.slice(0, MAX_NAMED_COLUMNS).join(', ');
  const by = key ? fill(texts.cells.byColumn, { name: key.name }) : '';
  return asTitle(`${what}${by}${table === undefined ? '' : ` · ${table}`}`);
}

function asTitle(name: string): string {
  const title = name.replaceAll('_', ' ').trim();
  return title.charAt(0).toUpperCase() + title.slice(1);
}
