/** Literal rows: either recognized in the text, or parsed token by token. */
import test from 'ava';

import { parse, print, SyntaxError_ } from '../../ts/sql/index.js';
import type { InsertNode } from '../../ts/sql/ast.generated.js';
import { suiteSeed } from '../seed.js';

/** After a WITH query, rows are parsed token by token. */
const SLOW = 'WITH q AS (SELECT 1) ';

interface Row {
  /** Kind letter and text of each cell. An expression has no text. */
  readonly cells: readonly (readonly [string, string])[];
  readonly starts: readonly number[];
  readonly start: number;
  readonly end: number;
}

interface Outcome {
  readonly rows: readonly Row[] | null;
  readonly error: string;
  /** Number of literal rows. */
  readonly plain: number;
}

function outcome(text: string, offset = 0): Outcome {
  try {
    const tree = parse(text);
    const node = tree.nodes[tree.root];
    if (node?.kind !== 'Insert' || node.query !== null) {
      return { rows: null, error: 'no rows', plain: 0 };
    }
    const rows = [...plainRows(text, node, offset), ...otherRows(node, offset)];
    return { rows, error: '', plain: node.plain?.rows ?? 0 };
  } catch (error) {
    if (error instanceof SyntaxError_) {
      return { rows: null, error: `${error.message} at ${error.start - offset}`, plain: 0 };
    }
    throw error;
  }
}

/** Returns the literal rows, parsed token by token from the text that the span locates. */
function plainRows(text: string, { plain }: InsertNode, offset: number): readonly Row[] {
  if (plain === null) {
    return [];
  }
  const { start, end } = plain.span;
  if (text.slice(start, end) !== plain.text) {
    throw new Error(`the rows are not at ${start}..${end}`);
  }
  const head = `${SLOW}INSERT INTO t VALUES `;
  const { rows } = outcome(head + plain.text, head.length - start + offset);
  if (rows?.length !== plain.rows || rows[0]?.start !== start - offset) {
    throw new Error(`${rows?.length} of ${plain.rows} rows in ${plain.text}`);
  }
  if (rows.at(-1)?.end !== end - 1 - offset) {
    throw new Error(`the rows do not end at ${end}`);
  }
  if (rows.some(({ cells }) => cells.some(([kind, cell]) => kind === 'x' || /^[+.]/.test(cell)))) {
    throw new Error(`not plain: ${plain.text}`);
  }
  return rows;
}

function otherRows({ values }: InsertNode, offset: number): readonly Row[] {
  let cell = 0;
  return (values?.widths ?? []).map((width, row) => {
    const from = cell;
    cell += width;
    const kinds = Array.from(values?.kinds.slice(from, cell) ?? '');
    // Expressions are identified by node ids, which a WITH query shifts.
    const text = (index: number): string => values?.texts[from + index] ?? '';
    return {
      cells: kinds.map((kind, index) => [kind, kind === 'x' ? '' : text(index)] as const),
      starts: (values?.starts ?? []).slice(from, cell).map((start) => start - offset),
      start: (values?.row_starts[row] ?? 0) - offset,
      end: (values?.row_ends[row] ?? 0) - offset,
    };
  });
}

const PLAIN = ['1', '-1', 'null', "'a'", '1.5', 'true', "'it''s'"];
const CELLS = [
  ...PLAIN,
  ...['+7', '- 2', '17L', '1_000', '-.5', '.5', '1.', '2e3', '1.5e-3', '1e', '1..2', 'NULL'],
  ...['nulls', 'False', 'falsey', "''", "''''", "'é'", '0x1f', '1 + 2', "'a'::symbol", '$1'],
  ...['#u33', 'now()', '3d', '1.50m', "'open", '(1)', '/* c */ 5', '1-- c\n', '"q"', ''],
  "'(1),(2)'",
];
const SPACES = ['', '', '', ' ', '\n', '\t ', '\u00a0'];

test('the literal-row parser and the full parser agree on random rows', (t) => {
  const seed = suiteSeed();
  let state = seed;
  const below = (bound: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return (state >>> 8) % bound;
  };
  const pick = (from: readonly string[]): string => from[below(from.length)] ?? '';
  const found = { rows: 0, plain: 0, both: 0 };
  for (let round = 0; round < 6_000; round += 1) {
    const cells = below(3) === 0 ? CELLS : PLAIN;
    const row = (): string => {
      const list = Array.from(
        { length: 1 + below(3) },
        () => pick(SPACES) + pick(cells) + pick(SPACES),
      );
      return `(${list.join(',')})`;
    };
    const rows = Array.from({ length: 1 + below(4) }, row).join(`${pick(SPACES)},${pick(SPACES)}`);
    const tail = pick(['', '', '', ';', ' RETURNING *', ',', ' x']);
    const text = `INSERT INTO t VALUES ${rows}${tail}`;
    const { plain, ...fast } = outcome(text);
    const { plain: none, ...slow } = outcome(SLOW + text, SLOW.length);
    t.deepEqual(fast, slow, text);
    t.is(none, 0);
    found.rows += fast.rows === null ? 0 : 1;
    found.plain += plain > 0 ? 1 : 0;
    found.both += plain > 0 && plain < (fast.rows?.length ?? 0) ? 1 : 0;
  }
  t.true(found.rows > 1_500 && found.plain > 1_000 && found.both > 100, JSON.stringify(found));
});

test('a parenthesized literal keeps its parentheses when printed', (t) => {
  const text = "INSERT INTO t VALUES (now(), ('a'), (-1)), ((1), (NULL), (true))";
  t.is(print(parse(text)), text);
});

test('literal rows are printed unchanged', (t) => {
  const text = "INSERT INTO t VALUES ( 1,'it''s' ), (+2, NULL),(now(), 'x') RETURNING a";
  const printed = print(parse(text));
  t.is(printed, "INSERT INTO t VALUES ( 1,'it''s' ), (+2, NULL), (now(), 'x') RETURNING a");
  t.is(print(parse(printed)), printed);
});
