/**
 * Notebook file format: Markdown with fenced SQL, designed for readable diffs.
 *
 *     ---
 *     tidemark-notebook: 1
 *     range: now-1h .. now
 *     @symbol: text "BTC-USD"
 *     ---
 *
 *     <!-- cell -->
 *     # Trading today
 *
 *     ```sql cell=prices view=chart
 *     SELECT * FROM trades WHERE symbol = @symbol
 *     ```
 *
 * Parsing is strict: a malformed line is rejected with its line number, and the file stays
 * unchanged. This module does not access files itself.
 */
import { OPTION_NAMES, optionTrouble, withoutEmpty, type ChartOptions } from '../chart/options.js';
import {
  COLUMNS,
  EMPTY,
  isName,
  LAYOUTS,
  MAX_TEXT_LENGTH,
  MAX_TITLE_LENGTH,
  MAX_CELLS,
  MAX_ROWS,
  MAX_VARIABLES,
  newId,
  REFRESH_SECONDS,
  sqlCells,
  VARIABLE_KINDS,
  type Cell,
  type CellSize,
  type CellView,
  type Notebook,
  type NotebookSettings,
  type Variable,
  type VariableKind,
} from './model.js';
import { timeOf } from './times.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

const VERSION = 1;
const KEY = 'tidemark-notebook';
export const MAX_FILE_BYTES = 4 * 1024 * 1024;

/** Thrown if a file cannot be opened as a notebook. */
export class NotebookError extends Error {
  /** Number of the malformed line, starting at 1. */
  readonly line: number;

  constructor(message: string, line: number) {
    super(fill(texts.notebookFile.atLine, { line, message }));
    this.name = 'NotebookError';
    this.line = line;
  }
}

/**
 * Matches a line that begins a cell, regardless of the lines before it. A content line that looks
 * like such a marker is escaped with `\`.
 */
const MARKER = /^(?:<!-- cell\b|`{3,}sql cell=)/;
const ESCAPED = /^\\+(?:<!-- cell\b|`{3,}sql cell=)/;
const SQL_MARKER = /^(`{3,})sql (cell=.*)$/;
const MARKDOWN_MARKER = /^<!-- cell((?: [a-z]+=[^\s>]+)*) -->$/;

export function write(notebook: Notebook): string {
  const head = ['---', `${KEY}: ${VERSION}`, ...settingLines(notebook), '---'];
  return `${[head.join('\n'), ...notebook.cells.map(cellText)].join('\n\n')}\n`;
}

function settingLines({ layout, refresh, range, variables }: NotebookSettings): string[] {
  return [
    ...(layout === 'list' ? [] : [`layout: ${layout}`]),
    ...(refresh === 'off' ? [] : [`refresh: ${refresh === 'changes' ? refresh : `${refresh}s`}`]),
    ...(range ? [`range: ${range.from} .. ${range.to}`] : []),
    ...variables.map(
      ({ name, kind, value, query }) =>
        `@${name}: ${kind} ${JSON.stringify(value)}` +
        (query === undefined ? '' : ` from ${JSON.stringify(query)}`),
    ),
  ];
}

function cellText(cell: Cell): string {
  const size = cell.size ? ` width=${cell.size.width} height=${cell.size.height}` : '';
  if (cell.kind === 'markdown') {
    const text = trimmed(cell.text)
      .split('\n')
      .map((line) => (MARKER.test(line) || ESCAPED.test(line) ? `\\${line}` : line));
    return [`<!-- cell${size} -->`, ...text].join('\n').trimEnd();
  }
  const text = trimmed(cell.text);
  const fence = '`'.repeat(longestFence(text) + 1);
  const attributes = [
    `cell=${cell.name}`,
    ...(cell.title === undefined ? [] : [`title=${quotedWhereNeeded(cell.title)}`]),
    ...(cell.view === 'grid' ? [] : [`view=${cell.view}`]),
    ...(cell.chart === undefined ? [] : [`chart=${cell.chart}`]),
    ...OPTION_NAMES.flatMap((name) => {
      const value = cell.options?.[name];
      return value === undefined ? [] : [`${name}=${quotedWhereNeeded(value)}`];
    }),
    ...(cell.folded === true ? ['folded=true'] : []),
  ];
  return `${fence}sql ${attributes.join(' ')}${size}\n${text === '' ? '' : `${text}\n`}${fence}`;
}

function quotedWhereNeeded(value: string): string {
  return /^[\w.%+-]+$/.test(value) ? value : JSON.stringify(value);
}

/** Removes blank lines at both ends, because blank lines between cells belong to no cell. */
function trimmed(text: string): string {
  return text
    .replaceAll('\r\n', '\n')
    .replace(/^(?:[ \t]*\n)+/, '')
    .trimEnd();
}

function longestFence(text: string): number {
  const runs = text.match(/^`+/gm) ?? [];
  return Math.max(2, ...runs.map(({ length }) => length));
}

/** Parses a notebook file. Throws `NotebookError` if the file is malformed. */
export function read(text: string): Notebook {
  if (text.length > MAX_FILE_BYTES) {
    throw new NotebookError(texts.notebookFile.fileTooLarge, 1);
  }
  const lines = text
    .replace(/^\uFEFF/, '')
    .replaceAll('\r\n', '\n')
    .split('\n');
  const end = lines.indexOf('---', 1);
  if (lines[0] !== '---' || end < 0) {
    throw new NotebookError(texts.notebookFile.noSettings, 1);
  }
  checkVersion(lines[1] ?? '');
  const settings = readSettings(lines, end);
  const notebook = { ...EMPTY, ...settings, cells: readCells(lines, end + 1) };
  checkNames(notebook.cells);
  return notebook;
}

function checkVersion(line: string): void {
  const [, version] = /^tidemark-notebook: (\d{1,9})$/.exec(line) ?? [];
  if (version === undefined) {
    throw new NotebookError(`expected "${KEY}: ${VERSION}"`, 2);
  }
  if (Number(version) !== VERSION) {
    const why = fill(texts.notebookFile.newerVersion, { version, supported: VERSION });
    throw new NotebookError(why, 2);
  }
}

type Settings = { -readonly [Key in keyof NotebookSettings]?: NotebookSettings[Key] };

function readSettings(lines: readonly string[], end: number): Settings {
  const settings: Settings = {};
  const variables: Variable[] = [];
  for (let index = 2; index < end; index += 1) {
    const line = lines[index] ?? '';
    const fail = (message: string): never => {
      throw new NotebookError(message, index + 1);
    };
    if (line.startsWith('@')) {
      const variable = readVariable(line, fail);
      if (variables.some(({ name }) => same(name, variable.name))) {
        fail(fill(texts.notebookFile.duplicateVariable, { name: variable.name }));
      }
      variables.push(variable);
    } else {
      readSetting(line, settings, fail);
    }
    if (variables.length > MAX_VARIABLES) {
      fail(fill(texts.notebookFile.tooManyVariables, { max: MAX_VARIABLES }));
    }
  }
  return { ...settings, variables };
}

type Fail = (message: string) => never;

function readSetting(line: string, settings: Settings, fail: Fail): void {
  const [, key = '', value = ''] = /^([a-z]+): (.+)$/.exec(line) ?? [];
  if (key !== '' && key in settings) {
    fail(fill(texts.notebookFile.duplicateSetting, { key }));
  }
  switch (key) {
    case 'layout':
      settings.layout =
        LAYOUTS.find((one) => one === value) ??
        fail(fill(texts.notebookFile.unknownLayout, { value }));
      return;
    case 'refresh': {
      const seconds = REFRESH_SECONDS.find((one) => `${one}s` === value);
      const known = value === 'changes' ? value : seconds;
      settings.refresh = known ?? fail(fill(texts.notebookFile.unknownRefresh, { value }));
      return;
    }
    case 'range': {
      const [from, to, ...rest] = value.split(' .. ');
      if (from === undefined || to === undefined || rest.length > 0) {
        return fail(texts.notebookFile.invalidRange);
      }
      for (const time of [from, to]) {
        if (timeOf(time, 0) === undefined) {
          fail(fill(texts.notebookFile.invalidTime, { time }));
        }
      }
      settings.range = { from, to };
      return;
    }
    default:
      fail(
        key === ''
          ? texts.notebookFile.expectedSetting
          : fill(texts.notebookFile.unknownSetting, { key }),
      );
  }
}

const VARIABLE = /^@(\w+): ([a-z]+) ("(?:[^"\\]|\\.)*")(?: from ("(?:[^"\\]|\\.)*"))?$/;

function readVariable(line: string, fail: Fail): Variable {
  const [, name = '', kind = '', value = '', query] = VARIABLE.exec(line) ?? [];
  if (!isName(name)) {
    return fail(texts.notebookFile.expectedVariable);
  }
  const known: VariableKind =
    VARIABLE_KINDS.find((one) => one === kind) ??
    fail(fill(texts.notebookFile.unknownVariableKind, { kind }));
  if ((known === 'list') !== (query !== undefined)) {
    fail(texts.notebookFile.queryOfListOnly);
  }
  return {
    name,
    kind: known,
    value: unquoted(value, fail),
    ...(query === undefined ? {} : { query: unquoted(query, fail) }),
  };
}

function unquoted(text: string, fail: Fail): string {
  try {
    return JSON.parse(text) as string;
  } catch {
    return fail(fill(texts.notebookFile.notQuoted, { text }));
  }
}

function readCells(lines: readonly string[], from: number): Cell[] {
  const cells: Cell[] = [];
  let index = from;
  while (index < lines.length) {
    if ((lines[index] ?? '').trim() === '') {
      index += 1;
      continue;
    }
    const { cell, next } = readCell(lines, index);
    cells.push(cell);
    index = next;
    if (cells.length > MAX_CELLS) {
      throw new NotebookError(fill(texts.notebookFile.tooManyCells, { max: MAX_CELLS }), index);
    }
    if (cell.text.length > MAX_TEXT_LENGTH) {
      throw new NotebookError(texts.notebookFile.cellTooLong, index);
    }
  }
  return cells;
}

function readCell(lines: readonly string[], start: number): { cell: Cell; next: number } {
  const line = lines[start] ?? '';
  const fail: Fail = (message) => {
    throw new NotebookError(message, start + 1);
  };
  const [, fence, sql] = SQL_MARKER.exec(line) ?? [];
  if (fence !== undefined && sql !== undefined) {
    const end = lines.findIndex((one, at) => at > start && one === fence);
    if (end < 0) {
      fail(fill(texts.notebookFile.notClosed, { fence }));
    }
    return {
      cell: sqlCell(sql, trimmed(lines.slice(start + 1, end).join('\n')), fail),
      next: end + 1,
    };
  }
  const [marked, attributes = ''] = MARKDOWN_MARKER.exec(line) ?? [];
  if (marked === undefined) {
    fail(texts.notebookFile.expectedCell);
  }
  const after = lines.findIndex((one, at) => at > start && MARKER.test(one));
  const end = after < 0 ? lines.length : after;
  const text = lines.slice(start + 1, end).map((one) => (ESCAPED.test(one) ? one.slice(1) : one));
  const size = sizeOf(pairsOf(attributes, ['width', 'height'], fail), fail);
  const cell: Cell = { kind: 'markdown', id: newId(), text: trimmed(text.join('\n')), ...size };
  return { cell, next: end };
}

function sqlCell(attributes: string, text: string, fail: Fail): Cell {
  const known = ['cell', 'title', 'view', 'chart', ...OPTION_NAMES, 'folded', 'width', 'height'];
  const pairs = pairsOf(attributes, known, fail);
  const name = pairs.get('cell') ?? '';
  const view: CellView =
    (['grid', 'chart'] as const).find((one) => one === (pairs.get('view') ?? 'grid')) ??
    fail(texts.notebookFile.invalidView);
  const chart = pairs.get('chart');
  const folded = pairs.get('folded') ?? 'false';
  if (!isName(name)) {
    fail(fill(texts.notebookFile.invalidCellName, { name }));
  }
  if (chart !== undefined && !/^[a-z]{1,20}$/.test(chart)) {
    fail(texts.notebookFile.invalidChart);
  }
  if (folded !== 'true' && folded !== 'false') {
    fail(texts.notebookFile.invalidFolded);
  }
  const options = optionsOf(pairs, fail);
  const title = titleOf(pairs, fail);
  return {
    kind: 'sql',
    id: newId(),
    name,
    text,
    ...(title === undefined ? {} : { title }),
    view,
    ...(chart === undefined ? {} : { chart }),
    ...(options ? { options } : {}),
    ...(folded === 'true' ? { folded: true } : {}),
    ...sizeOf(pairs, fail),
  };
}

function titleOf(pairs: ReadonlyMap<string, string>, fail: Fail): string | undefined {
  const title = pairs.get('title');
  if (title !== undefined && (title.trim() === '' || title.length > MAX_TITLE_LENGTH)) {
    fail(fill(texts.notebookFile.invalidTitle, { max: MAX_TITLE_LENGTH }));
  }
  return title;
}

/** Parses the display options of the chart. Returns `undefined` if no options are set. */
function optionsOf(pairs: ReadonlyMap<string, string>, fail: Fail): ChartOptions | undefined {
  const options = withoutEmpty(
    Object.fromEntries(OPTION_NAMES.map((name) => [name, pairs.get(name) ?? ''])),
  );
  const trouble = optionTrouble(options);
  if (trouble !== undefined) {
    fail(trouble);
  }
  return Object.keys(options).length === 0 ? undefined : options;
}

/** Matches one attribute. A value that contains spaces is quoted as in JSON. */
const PAIR = /^([a-z]+)=("(?:[^"\\]|\\.)*"|[^\s"=]*)(?: +|$)/;

function pairsOf(text: string, known: readonly string[], fail: Fail): Map<string, string> {
  const pairs = new Map<string, string>();
  let rest = text.trim();
  while (rest !== '') {
    const [whole = '', key = '', value = ''] = PAIR.exec(rest) ?? [];
    if (whole === '' || !known.includes(key)) {
      fail(fill(texts.notebookFile.unknownAttribute, { name: rest.split(' ')[0] ?? '' }));
    } else if (pairs.has(key)) {
      fail(fill(texts.notebookFile.duplicateAttribute, { key }));
    }
    pairs.set(key, value.startsWith('"') ? unquoted(value, fail) : value);
    rest = rest.slice(whole.length);
  }
  return pairs;
}

function sizeOf(pairs: ReadonlyMap<string, string>, fail: Fail): { size?: CellSize } {
  const [width, height] = [pairs.get('width'), pairs.get('height')];
  if (width === undefined && height === undefined) {
    return {};
  }
  const whole = (text: string | undefined, max: number): number | undefined =>
    text !== undefined && /^\d{1,3}$/.test(text) && Number(text) >= 1 && Number(text) <= max
      ? Number(text)
      : undefined;
  const size = { width: whole(width, COLUMNS), height: whole(height, MAX_ROWS) };
  if (size.width === undefined || size.height === undefined) {
    return fail(fill(texts.notebookFile.invalidSize, { columns: COLUMNS, rows: MAX_ROWS }));
  }
  return { size: { width: size.width, height: size.height } };
}

function checkNames(cells: readonly Cell[]): void {
  const seen: string[] = [];
  for (const { name } of sqlCells({ cells })) {
    if (seen.some((one) => same(one, name))) {
      throw new NotebookError(fill(texts.notebookFile.duplicateCellName, { name }), 1);
    }
    seen.push(name);
  }
}

function same(left: string, right: string): boolean {
  return left.toLowerCase() === right.toLowerCase();
}
