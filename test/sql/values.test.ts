/** Rows of literals, read from the text or token by token: the tree is the same. */
import test from 'ava';

import { parse, SyntaxError_ } from '../../ts/sql/index.js';
import type { ValuesBlock } from '../../ts/sql/ast.generated.js';

/** After a query rows are read token by token. */
const SLOW = 'WITH q AS (SELECT 1) ';

interface Outcome {
  readonly rows: ValuesBlock | null;
  readonly error: string;
}

function outcome(text: string, offset: number): Outcome {
  const moved = (at: number): number => at - offset;
  try {
    const tree = parse(text);
    const node = tree.nodes[tree.root];
    const values = node?.kind === 'Insert' ? node.values : null;
    if (values === null) {
      return { rows: null, error: 'no rows' };
    }
    // Expressions are named by the numbers of their nodes, of which WITH brings some.
    const texts = values.texts.map((one, index) => (values.kinds[index] === 'x' ? 'x' : one));
    const { starts, row_starts, row_ends } = values;
    const places = { starts: starts.map(moved), row_starts: row_starts.map(moved) };
    return { rows: { ...values, texts, ...places, row_ends: row_ends.map(moved) }, error: '' };
  } catch (error) {
    if (error instanceof SyntaxError_) {
      return { rows: null, error: `${error.message} at ${moved(error.start)}` };
    }
    throw error;
  }
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

test('both readings agree on random rows', (t) => {
  const seed = Number(process.env['SEED'] ?? 1);
  t.log(`SEED=${seed}`);
  let state = seed;
  const below = (bound: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return (state >>> 8) % bound;
  };
  const pick = (from: readonly string[]): string => from[below(from.length)] ?? '';
  let read = 0;
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
    const fast = outcome(text, 0);
    t.deepEqual(fast, outcome(SLOW + text, SLOW.length), text);
    read += fast.rows === null ? 0 : 1;
  }
  t.true(read > 1_500, `${read} texts have rows`);
});
