/**
 * What relational SQL means here, by the rows it gives: sub-queries, LATERAL, grouping sets,
 * DISTINCT ON, UNNEST. Null is a value: it equals null, and a missing partner is found by it.
 */
import test from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';

type Rows = readonly (readonly unknown[])[];

const SETUP = [
  'CREATE TABLE t (ts TIMESTAMP, k SYMBOL, i INT, d DOUBLE, b BOOLEAN) TIMESTAMP(ts) ' +
    'PARTITION BY DAY',
  'CREATE TABLE r (ts TIMESTAMP, k SYMBOL, i INT, d DOUBLE) TIMESTAMP(ts) PARTITION BY DAY',
  'CREATE TABLE w (ts TIMESTAMP, k INT, a DOUBLE[], aa DOUBLE[][], doc VARCHAR) TIMESTAMP(ts)',
  "INSERT INTO t VALUES ('2026-05-01T00:00:00Z', 'a', 1, 1.0, true), " +
    "('2026-05-01T00:01:00Z', 'b', 2, 2.0, false), ('2026-05-01T00:02:00Z', null, 3, null, true)," +
    " ('2026-05-01T01:00:00Z', 'a', 4, 4.0, false), ('2026-05-01T02:00:00Z', 'c', 5, 5.0, true)",
  "INSERT INTO r VALUES ('2026-05-01T00:00:30Z', 'a', 1, 10.0), " +
    "('2026-05-01T00:01:30Z', 'b', 2, 20.0), ('2026-05-01T00:02:30Z', null, 3, 30.0), " +
    "('2026-05-01T00:30:00Z', 'a', 4, 40.0)",
  "INSERT INTO w VALUES ('2026-05-01T00:00:00Z', 1, ARRAY[1.0, null, 3.0], " +
    'ARRAY[[1.0, 2.0], [3.0, 4.0]], \'[{"n":1,"s":"x","b":true},{"n":"two","s":2},' +
    "{\"n\":null}]'), ('2026-05-01T00:00:01Z', 2, ARRAY[]::double[], null, 'no json'), " +
    "('2026-05-01T00:00:02Z', 3, null, ARRAY[[5.0]], '[7, 8]')",
];

/** By title: a query and its rows. */
const CASES: Readonly<Record<string, readonly (readonly [string, Rows])[]>> = {
  'EXISTS and IN read the rows around them': [
    ['SELECT i FROM t WHERE EXISTS (SELECT 1 FROM r WHERE r.k = t.k)', [[1], [2], [3], [4]]],
    ['SELECT i FROM t WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.k = t.k)', [[5]]],
    ['SELECT i FROM t WHERE EXISTS (SELECT 1 FROM r WHERE d > 100)', []],
    ['SELECT i FROM t WHERE k IN (SELECT k FROM r)', [[1], [2], [3], [4]]],
    ['SELECT i FROM t WHERE k NOT IN (SELECT k FROM r)', [[5]]],
    ['SELECT i FROM t WHERE i IN (SELECT r.i FROM r WHERE r.d >= t.d * 10)', [[1], [2], [4]]],
    ['SELECT i FROM t WHERE i = 5 OR EXISTS (SELECT 1 FROM r WHERE r.i = t.i + 3)', [[1], [5]]],
    [
      'SELECT i FROM t WHERE EXISTS (SELECT 1 FROM r WHERE r.k = t.k AND r.i IN ' +
        '(SELECT q.i FROM t q WHERE q.d > t.d - 2))',
      [[1], [2], [4]],
    ],
  ],
  'an outer join tests a sub-query in ON': [
    [
      'SELECT t.i, r.i FROM t LEFT JOIN r ON t.k = r.k AND r.d > (SELECT avg(d) FROM r) ' +
        'ORDER BY 1, 2',
      [
        [1, 4],
        [2, null],
        [3, 3],
        [4, 4],
        [5, null],
      ],
    ],
    [
      'SELECT t.i, r.i FROM t LEFT JOIN r ON t.k = r.k AND EXISTS (SELECT 1 FROM r q ' +
        'WHERE q.i = r.i + 3) ORDER BY 1, 2',
      [
        [1, 1],
        [2, null],
        [3, null],
        [4, 1],
        [5, null],
      ],
    ],
    [
      'SELECT t.i, r.i FROM t LEFT JOIN r ON t.k = r.k AND t.i IN (SELECT q.i FROM r q ' +
        'WHERE q.d > t.d * 9) ORDER BY 1, 2',
      [
        [1, 1],
        [1, 4],
        [2, 2],
        [3, null],
        [4, 1],
        [4, 4],
        [5, null],
      ],
    ],
    [
      'SELECT count(), sum(t.i), sum(r.i) FROM t FULL JOIN r ON t.k = r.k ' +
        'AND t.i = (SELECT max(i) FROM r)',
      [[8, 19, 10]],
    ],
    [
      'SELECT t.i, r.i FROM t RIGHT JOIN r ON t.k = r.k AND t.i = (SELECT max(i) FROM r) ' +
        'ORDER BY 2',
      [
        [4, 1],
        [null, 2],
        [null, 3],
        [4, 4],
      ],
    ],
  ],
  'a predicate over the columns of an outer join': [
    [
      'SELECT t.i, r.d FROM t LEFT JOIN r ON t.i = r.i WHERE abs(t.i) IN (2, 5) ORDER BY 1',
      [
        [2, 20],
        [5, null],
      ],
    ],
    [
      "SELECT DISTINCT t.k FROM t LEFT JOIN r ON t.k = r.k WHERE (t.k || t.k) IN ('bb', 'cc') " +
        'ORDER BY 1',
      [['b'], ['c']],
    ],
  ],
  'windows by the keys of their partition': [
    [
      'SELECT i, count(d) OVER (ORDER BY i ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) c, ' +
        'last_value(d) OVER (PARTITION BY i ORDER BY i) l, percent_rank() OVER (PARTITION BY i ' +
        'ORDER BY i) p, rank() OVER (PARTITION BY i ORDER BY i DESC) r, sum(d) OVER () s ' +
        'FROM t ORDER BY i',
      [
        [1, 1, 1, 0, 1, 12],
        [2, 2, 2, 0, 1, 12],
        [3, 2, null, 0, 1, 12],
        [4, 3, 4, 0, 1, 12],
        [5, 4, 5, 0, 1, 12],
      ],
    ],
  ],
  'grouping sets need no aggregate': [
    ['SELECT b FROM t GROUP BY ROLLUP(b) ORDER BY b', [[false], [false], [true]]],
    ['SELECT i FROM t WHERE i > 3 GROUP BY GROUPING SETS ((i), ()) ORDER BY i', [[null], [4], [5]]],
    ['SELECT i FROM t WHERE i > 9 GROUP BY ROLLUP(i)', [[null]]],
  ],
  'a sub-query is a value, null where it has no row': [
    ['SELECT i FROM t WHERE i = (SELECT max(i) FROM t)', [[5]]],
    ['SELECT i FROM t WHERE d > (SELECT avg(d) - 20 FROM r WHERE r.ts > t.ts)', []],
    [
      'SELECT i, (SELECT max(d) FROM r WHERE r.k = t.k) m, (SELECT count() FROM r ' +
        'WHERE r.k = t.k)' +
        ' n FROM t',
      [
        [1, 40, 2],
        [2, 20, 1],
        [3, 30, 1],
        [4, 40, 2],
        [5, null, 0],
      ],
    ],
    [
      'SELECT i, (SELECT d FROM r WHERE r.k = t.k LIMIT 1) m FROM t',
      [
        [1, 10],
        [2, 20],
        [3, 30],
        [4, 10],
        [5, null],
      ],
    ],
    [
      'SELECT k, (SELECT max(d) FROM r WHERE r.k = t.k) m, count() n FROM t ORDER BY k',
      [
        [null, 30, 1],
        ['a', 40, 2],
        ['b', 20, 1],
        ['c', null, 1],
      ],
    ],
  ],
  'sub-queries stand wherever values do': [
    ['DECLARE @q := (SELECT max(i) FROM t) SELECT i FROM t WHERE i = @q', [[5]]],
    [
      'SELECT t.i FROM t JOIN r ON t.i = r.i AND r.d > (SELECT avg(d) FROM r) ORDER BY 1',
      [[3], [4]],
    ],
    [
      'SELECT t.i FROM t JOIN r ON t.k = r.k AND EXISTS (SELECT 1 FROM r q WHERE q.i = t.i + 3 ' +
        'AND q.d > r.d) ORDER BY 1',
      [[1]],
    ],
    ["SELECT i FROM t WHERE k IN ('c', (SELECT k FROM r WHERE i = 2)) ORDER BY i", [[2], [5]]],
    ['SELECT i FROM t ORDER BY (SELECT max(d) FROM r WHERE r.k = t.k) DESC, i LIMIT 2', [[5], [1]]],
  ],
  'ANY and ALL compare with each row': [
    ['SELECT i FROM t WHERE i > ANY (SELECT i + 1 FROM r)', [[3], [4], [5]]],
    ['SELECT i FROM t WHERE i >= ALL (SELECT i FROM r WHERE r.k = t.k)', [[2], [3], [4], [5]]],
    ['SELECT i FROM t WHERE d = ANY (ARRAY[1.0, 4.0])', [[1], [4]]],
  ],
  'LATERAL reads the sources on its left': [
    [
      'SELECT t.i, x.m FROM t JOIN LATERAL (SELECT max(r.d) m FROM r WHERE r.k = t.k) x ON true ' +
        'ORDER BY i',
      [
        [1, 40],
        [2, 20],
        [3, 30],
        [4, 40],
        [5, null],
      ],
    ],
    [
      'SELECT t.i, x.d FROM t, LATERAL (SELECT r.d FROM r WHERE r.k = t.k) x ORDER BY i, d',
      [
        [1, 10],
        [1, 40],
        [2, 20],
        [3, 30],
        [4, 10],
        [4, 40],
      ],
    ],
    [
      'SELECT t.i, x.d FROM t LEFT JOIN LATERAL (SELECT r.d FROM r WHERE r.k = t.k ORDER BY r.d ' +
        'DESC LIMIT 1) x ON true ORDER BY i',
      [
        [1, 40],
        [2, 20],
        [3, 30],
        [4, 40],
        [5, null],
      ],
    ],
    [
      'SELECT t.i, x.n FROM t LEFT JOIN LATERAL (SELECT count(*) n FROM r WHERE r.k = t.k) x ' +
        'ON true ORDER BY i',
      [
        [1, 2],
        [2, 1],
        [3, 1],
        [4, 2],
        [5, 0],
      ],
    ],
    [
      'SELECT t.i, x.d FROM t CROSS JOIN LATERAL (SELECT r.ts, r.d FROM r WHERE r.ts <= t.ts ' +
        'LIMIT -1) x ORDER BY i',
      [
        [2, 10],
        [3, 20],
        [4, 40],
        [5, 40],
      ],
    ],
    [
      'SELECT t.i, x.d FROM t JOIN LATERAL (SELECT r.ts, r.d FROM r WHERE r.k = t.k LATEST ON ts ' +
        'PARTITION BY k) x ON true ORDER BY i',
      [
        [1, 40],
        [2, 20],
        [3, 30],
        [4, 40],
      ],
    ],
    [
      'SELECT t.i, x.n FROM t JOIN LATERAL (SELECT r.ts, count() n FROM r WHERE r.k = t.k SAMPLE ' +
        'BY 10m) x ON true WHERE t.i < 3 ORDER BY i, x.ts',
      [
        [1, 1],
        [1, 1],
        [2, 1],
      ],
    ],
    [
      'SELECT t.i, x.d FROM t JOIN LATERAL (SELECT d FROM r WHERE r.k = t.k UNION ALL SELECT ' +
        'd * 2 FROM r WHERE r.i = t.i) x ON true WHERE t.i > 2 ORDER BY i, d',
      [
        [3, 30],
        [3, 60],
        [4, 10],
        [4, 40],
        [4, 80],
      ],
    ],
    [
      'SELECT t.i, x.d, x.n FROM t JOIN LATERAL (SELECT r.d, row_number() OVER (ORDER BY r.ts ' +
        'DESC) n FROM r WHERE r.k = t.k) x ON true WHERE t.i = 1 ORDER BY n',
      [
        [1, 40, 1],
        [1, 10, 2],
      ],
    ],
  ],
  'grouping sets: a key left out is null': [
    [
      'SELECT k, b, sum(i) s, grouping(k, b) g FROM t GROUP BY ROLLUP(k, b) ORDER BY g, k, b',
      [
        [null, true, 3, 0],
        ['a', false, 4, 0],
        ['a', true, 1, 0],
        ['b', false, 2, 0],
        ['c', true, 5, 0],
        [null, false, 3, 1],
        ['a', false, 5, 1],
        ['b', false, 2, 1],
        ['c', false, 5, 1],
        [null, false, 15, 3],
      ],
    ],
    [
      'SELECT k, sum(i) s, first(d) f, grouping(k) g FROM t GROUP BY GROUPING SETS ((k), ()) ' +
        'HAVING sum(i) > 3 ORDER BY g, k',
      [
        ['a', 5, 1, 0],
        ['c', 5, 5, 0],
        [null, 15, 1, 1],
      ],
    ],
    ['SELECT count() FROM (SELECT k, b, i, sum(d) FROM t GROUP BY i, CUBE(k, b))', [[20]]],
    ['SELECT count() FROM (SELECT k, b, i, sum(d) FROM t GROUP BY ROLLUP((i, k), b))', [[11]]],
    [
      'SELECT ts, k, sum(i) s FROM t SAMPLE BY 1h GROUPING SETS ((k), ()) ORDER BY ts, s, k',
      [
        ['2026-05-01T00:00:00.000000Z', 'a', 1],
        ['2026-05-01T00:00:00.000000Z', 'b', 2],
        ['2026-05-01T00:00:00.000000Z', null, 3],
        ['2026-05-01T00:00:00.000000Z', null, 6],
        ['2026-05-01T01:00:00.000000Z', null, 4],
        ['2026-05-01T01:00:00.000000Z', 'a', 4],
        ['2026-05-01T02:00:00.000000Z', null, 5],
        ['2026-05-01T02:00:00.000000Z', 'c', 5],
      ],
    ],
  ],
  'PIVOT takes its values from a query': [
    [
      't PIVOT (sum(i) FOR k IN (SELECT k FROM r WHERE k != null) GROUP BY b) ORDER BY b',
      [
        [false, 4, 2],
        [true, 1, null],
      ],
    ],
    ['t PIVOT (sum(i) FOR k IN (SELECT DISTINCT k FROM r ORDER BY k DESC LIMIT 2))', [[2, 5]]],
  ],
  'DISTINCT ON keeps the first row of each key': [
    [
      'SELECT DISTINCT ON (k) k, i FROM t',
      [
        ['a', 1],
        ['b', 2],
        [null, 3],
        ['c', 5],
      ],
    ],
    [
      'SELECT DISTINCT ON (k) k, i FROM t ORDER BY k, i DESC',
      [
        [null, 3],
        ['a', 4],
        ['b', 2],
        ['c', 5],
      ],
    ],
  ],
  'UNNEST: a row for each element': [
    [
      'SELECT w.k, u.value FROM w, UNNEST(w.a) u',
      [
        [1, 1],
        [1, null],
        [1, 3],
      ],
    ],
    [
      'SELECT w.k, u.value FROM w LEFT JOIN UNNEST(w.a) u ON true',
      [
        [1, 1],
        [1, null],
        [1, 3],
        [2, null],
        [3, null],
      ],
    ],
    [
      'SELECT e, n FROM UNNEST(ARRAY[7.0, 8.0]) WITH ORDINALITY x (e, n)',
      [
        [7, 1],
        [8, 2],
      ],
    ],
    [
      'SELECT x.value1, x.value2 FROM UNNEST(ARRAY[1.0, 2.0], ARRAY[5.0]) x',
      [
        [1, 5],
        [2, null],
      ],
    ],
    [
      'SELECT w.k, v.value FROM w, UNNEST(w.aa) u, UNNEST(u.value) v',
      [
        [1, 1],
        [1, 2],
        [1, 3],
        [1, 4],
        [3, 5],
      ],
    ],
    [
      'SELECT w.k, u.n, u.s, u.b FROM w, UNNEST(w.doc COLUMNS(n INT, s VARCHAR, b BOOLEAN)) u ' +
        'WHERE w.k = 1',
      [
        [1, 1, 'x', true],
        [1, null, '2', false],
        [1, null, null, false],
      ],
    ],
    [
      'SELECT w.k, u.n FROM w, UNNEST(w.doc COLUMNS(n LONG)) u WHERE w.k > 1',
      [
        [3, 7],
        [3, 8],
      ],
    ],
  ],
  'windows over aggregates': [
    [
      'SELECT k, sum(i) s, sum(sum(i)) OVER (ORDER BY k) c, rank() OVER (ORDER BY sum(i) DESC) r ' +
        'FROM t ORDER BY k',
      [
        [null, 3, 3, 3],
        ['a', 5, 8, 1],
        ['b', 2, 10, 4],
        ['c', 5, 15, 1],
      ],
    ],
    [
      'SELECT ts, count() c, sum(count()) OVER (ORDER BY ts) n FROM t SAMPLE BY 1h',
      [
        ['2026-05-01T00:00:00.000000Z', 3, 3],
        ['2026-05-01T01:00:00.000000Z', 1, 4],
        ['2026-05-01T02:00:00.000000Z', 1, 5],
      ],
    ],
  ],
};

/** Queries that must fail, and a part of what they say. */
const ERRORS: readonly (readonly [string, string])[] = [
  ['SELECT i, (SELECT d FROM r WHERE r.k = t.k) m FROM t', 'more than one row'],
  ['SELECT i FROM t WHERE i = (SELECT i, d FROM r)', 'query must return one column'],
  ['SELECT i FROM t WHERE EXISTS (SELECT 1 FROM r WHERE r.k = t.no)', 'Invalid column: t.no'],
  [
    'SELECT t.i FROM t RIGHT JOIN LATERAL (SELECT d FROM r WHERE r.k = t.k) x ON true',
    'LATERAL is only supported with INNER, LEFT, or CROSS joins',
  ],
  ['SELECT k, b, sum(i) FROM t GROUP BY ROLLUP(k)', 'column must appear in GROUP BY clause'],
  ['SELECT * FROM t, UNNEST(t.d) u', 'UNNEST needs arrays'],
  [
    't PIVOT (sum(i) FOR k IN (SELECT k FROM r WHERE d > 99))',
    'the query of PIVOT gives no values',
  ],
  ['SELECT grouping(k) FROM t', 'arguments of grouping must be keys of GROUP BY'],
  [
    'SELECT t.i FROM t LEFT JOIN r ON (SELECT max(x.i) FROM r x WHERE x.i < t.i + r.i) = 1',
    'a sub-query in ON of an outer join that reads columns of both sides is not supported',
  ],
  [
    'SELECT t.i FROM t LEFT JOIN r ON t.i + r.i IN (SELECT i FROM r)',
    'a sub-query in ON of an outer join that reads columns of both sides is not supported',
  ],
  [
    'SELECT i, (SELECT sum(s) FROM (SELECT ts, sum(d) s FROM r WHERE r.i = t.i SAMPLE BY 1s ' +
      'FILL(NULL))) FROM t',
    'FILL in a sub-query that reads the rows around it is not supported',
  ],
  ['SELECT sum() OVER (ORDER BY ts) FROM t', 'function `sum` requires arguments'],
  [
    'SELECT stddev(i) OVER (ORDER BY ts RANGE BETWEEN 1 HOUR PRECEDING AND CURRENT ROW) FROM t',
    'a RANGE up to the current row of stddev is not supported',
  ],
  ['DECLARE @x := 1 @x', "'@x' is a value, and a query is expected here"],
  [
    'SELECT sum(DISTINCT i) OVER (ORDER BY ts) FROM t',
    'DISTINCT of sum over a window is not supported',
  ],
  [`SELECT 1 FROM t GROUP BY CUBE(${'k,'.repeat(30)}k)`, 'too many grouping sets'],
];

async function exec(
  server: TestServer,
  query: string,
): Promise<{ readonly dataset?: Rows; readonly error?: string }> {
  const response = await fetch(`${server.url}/exec?query=${encodeURIComponent(query)}`);
  return (await response.json()) as { dataset?: Rows; error?: string };
}

let server: TestServer;

test.before(async () => {
  server = await startTestServer({ set: ['cairo.commit.mode=nosync', 'log.level=error'] });
  for (const statement of SETUP) {
    const { error } = await exec(server, statement);
    if (error !== undefined) {
      throw new Error(`${statement}: ${error}`);
    }
  }
});

test.after.always(async () => {
  await server.stop();
});

for (const [title, cases] of Object.entries(CASES)) {
  test(title, async (t) => {
    for (const [query, expected] of cases) {
      const { dataset, error } = await exec(server, query);
      t.deepEqual(dataset, expected, `${query}: ${error ?? ''}`);
    }
  });
}

test('what cannot be meant is said', async (t) => {
  for (const [query, expected] of ERRORS) {
    const { error } = await exec(server, query);
    t.true(error?.includes(expected), `${query}: ${error ?? 'no error'}`);
  }
});
