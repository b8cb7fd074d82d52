import test from 'ava';

import { scopeAt, type Scope } from '../../ts/sql/index.js';
import { goldenStatements } from './golden-statements.js';
import { ITEMS } from './grammar/index.js';

/** Returns the scope at the position that `|` marks in the text. */
function at(text: string): Scope {
  const offset = text.indexOf('|');
  return scopeAt(text.slice(0, offset) + text.slice(offset + 1), offset);
}

/** Returns sources as `table alias`. */
function sources(text: string): string[] {
  return at(text).sources.map(({ table, alias }) => `${table ?? '?'} ${alias ?? ''}`.trim());
}

test('the scope contains the sources of the query at the cursor', (t) => {
  const cases: [string, string[]][] = [
    ['SELECT | FROM trades', ['trades']],
    ['SELECT a, | FROM trades t JOIN quotes AS q ON t.k = q.k', ['trades t', 'quotes q']],
    ['SELECT * FROM a, b c WHERE |', ['a', 'b c']],
    ['SELECT * FROM a ASOF JOIN b ON (|', ['a', 'b']],
    ['SELECT * FROM "two words" x WHERE x.|', ['two words x']],
    ['SELECT * FROM long_sequence(5) x WHERE |', ['? x']],
    ['SELECT * FROM (SELECT | FROM inside) x', ['inside', '? x']],
    ['SELECT * FROM (SELECT a FROM inside) x WHERE |', ['? x']],
    ['SELECT (SELECT max(d) FROM r WHERE r.k = |) FROM t', ['r', 't']],
    ['SELECT a FROM t UNION SELECT | FROM r', ['r']],
    ['SELECT | FROM t UNION SELECT a FROM r', ['t']],
    ['SELECT ts, sum(d) FROM t SAMPLE BY 1h FROM |', ['t']],
    ['SELECT a IS DISTINCT FROM | FROM t', ['t']],
    ['t WHERE |', ['t']],
    ['UPDATE r x SET d = |', ['r x']],
    ['DELETE FROM r WHERE |', ['r']],
    ['INSERT INTO r (|', ['r']],
    ['ALTER TABLE r DROP COLUMN |', ['r']],
    ['SELECT * FROM t WINDOW JOIN r ON (|', ['t', 'r']],
    ['SELECT | FROM', []],
    ['SELECT |', []],
    ['', []],
  ];
  for (const [text, expected] of cases) {
    t.deepEqual(sources(text), expected, text);
  }
});

test('the scope contains CTEs and variables', (t) => {
  const scope = at(
    'DECLARE @low := 1, @high := 2 WITH a AS (SELECT 1), b (x) AS (t) SELECT | FROM b',
  );
  t.deepEqual(scope.commonTables, ['a', 'b']);
  t.deepEqual(scope.variables, ['low', 'high']);
  t.deepEqual(scope.sources, [{ table: 'b', alias: null }]);
});

test('every position of every statement has a scope', (t) => {
  const texts = [...ITEMS.flatMap(({ statements }) => statements), ...goldenStatements().accepted];
  let positions = 0;
  for (const text of texts.filter(({ length }) => length < 300)) {
    for (let offset = 0; offset <= text.length; offset += 7) {
      scopeAt(text, offset);
      scopeAt(text.slice(0, offset), offset);
      positions += 1;
    }
  }
  t.true(positions > 10_000);
});
