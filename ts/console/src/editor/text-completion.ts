/** Completes the content of strings: table names, symbol values and times. */
import type { Completion } from '@codemirror/autocomplete';
import { columnsOf, type NameSource, type ScopedPosition } from './names.js';

/** Matches a call whose argument is a table name. */
const TABLE_CALL = /\btable_\w+\s*\(\s*$/i;
const NAME = String.raw`(?:"([^"]+)"|([\p{L}_][\p{L}\p{N}_$]*))`;
const TEXTS = String.raw`(?:\s*'[^']*'\s*,)*`;
/** Matches a column and its comparison operator, up to the opening quote of the string. */
const COMPARED = new RegExp(
  String.raw`${NAME}\s*(?:(!?=|<>|[<>]=?)|\b(?:NOT\s+)?(IN)\b\s*(?:\(${TEXTS})?|\bBETWEEN\b)\s*$`,
  'iu',
);
const DAY_LETTERS = 'yyyy-mm-dd'.length;
const MONTH_LETTERS = 'yyyy-mm'.length;

/** Returns the completions inside a string. `before` is the statement up to the opening quote. */
export async function textOptions(
  source: NameSource,
  position: ScopedPosition,
  before: string,
): Promise<Completion[]> {
  if (TABLE_CALL.test(before)) {
    return source.names().tables.map(({ name }) => inText(name, 'table'));
  }
  const [, quotedName, plainName, , isIn] = COMPARED.exec(before) ?? [];
  const name = quotedName ?? plainName;
  if (name === undefined) {
    return [];
  }
  for (const one of position.scope.sources) {
    const columns = await columnsOf(source, position, one);
    const column = columns.find((known) => known.name.toLowerCase() === name.toLowerCase());
    if (column?.type === 'SYMBOL' && one.table !== null) {
      const values = await source.values(one.table, column.name);
      return values.map((value) => inText(value, 'value'));
    }
    if (column !== undefined) {
      return /^(?:TIMESTAMP|DATE)/.test(column.type) ? times(isIn !== undefined) : [];
    }
  }
  return [];
}

/** Returns timestamps based on the current time. After IN, also returns intervals. */
function times(isInterval: boolean): Completion[] {
  const now = new Date().toISOString();
  const [today, month] = [now.slice(0, DAY_LETTERS), now.slice(0, MONTH_LETTERS)];
  const intervals = ['$now - 1h..$now', '$now - 1d..$now', '$today', '$yesterday', month];
  const texts = isInterval ? [today, ...intervals] : [today, now];
  return texts.map((text, index) => ({ ...inText(text, 'time'), boost: -index }));
}

function inText(text: string, detail: string): Completion {
  return { label: text, apply: text.replaceAll("'", "''"), detail };
}
