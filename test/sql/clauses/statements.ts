/**
 * Statements, and rows chosen so that every clause changes the answer. `c` is for sampling by time;
 * `v` has ties, nulls and arrays.
 */
export const TABLES: readonly string[] = [
  'CREATE TABLE c (ts TIMESTAMP, k SYMBOL, x INT, y DOUBLE) TIMESTAMP(ts) PARTITION BY DAY',
  `INSERT INTO c VALUES ('2026-03-01T00:10:00', 'b', 3, 1.5), ('2026-03-01T00:20:00', 'a', 1, null),
    ('2026-03-01T01:30:00', 'a', 2, 4.5), ('2026-03-01T02:40:00', 'b', 2, 2.5),
    ('2026-03-01T05:50:00', 'c', 5, 0.5), ('2026-03-02T00:00:00', 'a', 4, null)`,
  'CREATE TABLE q (ts TIMESTAMP, k SYMBOL, p INT) TIMESTAMP(ts) PARTITION BY DAY',
  `INSERT INTO q VALUES ('2026-03-01T00:05:00', 'a', 10), ('2026-03-01T01:00:00', 'b', 20),
    ('2026-03-01T02:30:00', 'a', 30), ('2026-03-01T04:00:00', 'c', 40)`,
  'CREATE TABLE v (i INT, j INT, s VARCHAR, a DOUBLE[])',
  `INSERT INTO v VALUES (2, 10, 'x', ARRAY[1.0, 20.0]), (1, 30, null, ARRAY[20.0, 3.0]),
    (2, 20, 'y', ARRAY[4.0]), (3, null, 'x', null), (null, 5, 'z', ARRAY[6.0]),
    (4, null, 'w', null), (0, 40, 'p', null), (5, 7, 'r', null)`,
];

const windows = [
  'sum(x)',
  'avg(x)',
  'min(x)',
  'max(x)',
  'count(x)',
  'count(*)',
  'ksum(x)',
  'count(DISTINCT x)',
  'stddev(y)',
  'stddev_pop(y)',
  'var_samp(y)',
  'variance(y)',
  'corr(x, y)',
  'covar_pop(x, y)',
  'first_value(x)',
];
const frames = [
  '(ORDER BY ts)',
  '(PARTITION BY k ORDER BY ts)',
  '(ORDER BY ts ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)',
  '(ORDER BY ts ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)',
  "(ORDER BY ts RANGE BETWEEN '1' HOUR PRECEDING AND CURRENT ROW)",
  '()',
  '(ORDER BY x DESC)',
];

const SOME = "x BETWEEN 2 AND 4 AND ts > '2026-03-01T00:15:00'";

/** Aggregates over every kind of frame, with a FILTER that only some rows pass. */
export const FILTERED: readonly string[] = windows.flatMap((call) =>
  frames.map((frame) => `SELECT ts, ${call} FILTER (WHERE ${SOME}) OVER ${frame} f FROM c`),
);

export const STATEMENTS: readonly string[] = [
  // Query clauses.
  'SELECT DISTINCT i FROM v WHERE i < 5 ORDER BY i DESC LIMIT 2 OFFSET 2',
  'SELECT DISTINCT ON (i) i, j FROM v ORDER BY i DESC NULLS FIRST, j DESC',
  'SELECT i n, sum(j) FILTER (WHERE j > 10) m FROM v WHERE j < 30 GROUP BY i, s HAVING sum(j) > 5',
  'SELECT count() FROM v HAVING count() < 5',
  'SELECT 1 r FROM v HAVING count() > 1',
  'SELECT i, j FROM v ORDER BY j LIMIT 2 OFFSET 1',
  'SELECT i, j FROM v ORDER BY j LIMIT 1, 3',
  'SELECT i, j FROM v ORDER BY j LIMIT (SELECT 2) OFFSET (SELECT 1)',
  'SELECT i, j FROM v ORDER BY j LIMIT (SELECT -2), (SELECT -1)',
  'SELECT i, j FROM v QUALIFY row_number() OVER (PARTITION BY i ORDER BY j) = 1',
  'SELECT * EXCLUDE (a, s) REPLACE (j + 1 AS j) FROM v',
  'WITH w (b) AS (SELECT i FROM v WHERE i > 1) SELECT b FROM w',
  'DECLARE @n := 1, @t := v SELECT i FROM @t WHERE i > @n',
  'SELECT i FROM v UNION ALL SELECT j FROM v',
  'SELECT CASE i WHEN 2 THEN 3 ELSE 4 END n FROM v',
  'SELECT j FROM v WHERE i NOT IN (2) AND j NOT BETWEEN 5 AND 9 AND s IS NOT NULL',
  // Sub-queries, each with every clause.
  'SELECT ARRAY(SELECT DISTINCT i FROM v WHERE i < 5 ORDER BY i DESC LIMIT 2 OFFSET 2) r',
  'SELECT ARRAY(SELECT j FROM v ORDER BY j DESC NULLS FIRST LIMIT 2 OFFSET 1) r',
  'SELECT (SELECT j FROM v WHERE i = 2 ORDER BY j DESC LIMIT 1) r',
  'SELECT i, j FROM v WHERE j IN (SELECT j FROM v WHERE i = 2 ORDER BY j DESC LIMIT 1)',
  'SELECT i FROM v o WHERE EXISTS (SELECT 1 FROM v n WHERE n.j > o.j OFFSET 2)',
  'SELECT i, ARRAY(SELECT n.j FROM v n WHERE n.i = o.i ORDER BY n.j DESC LIMIT 1) r FROM v o',
  // Source clauses.
  'SELECT v.i, w.u FROM v LEFT JOIN unnest(v.a) w(u) ON w.u = 20',
  'SELECT v.i, w.u FROM v JOIN unnest(v.a) w(u) ON w.u > v.i',
  'SELECT w.u, w.ordinality FROM v, unnest(v.a) WITH ORDINALITY w(u)',
  'SELECT v.i, g FROM v, generate_series(20 + v.i, 23, 2) f(g)',
  'SELECT v.i, s.g FROM v, LATERAL (SELECT g FROM generate_series(20 + v.i, 23) f(g) LIMIT 1) s',
  'SELECT g, ordinality FROM generate_series(5, 1, -2) WITH ORDINALITY f(g)',
  'SELECT l.i, r.j FROM v l LEFT JOIN v r ON l.i = r.i AND r.j > 10',
  'SELECT l.j, r.j FROM v l FULL JOIN v r ON l.j = r.i * 10',
  // Aggregate clauses.
  "SELECT string_agg(s, '+' ORDER BY j DESC) FILTER (WHERE i > 1) r FROM v",
  'SELECT count(DISTINCT i) FILTER (WHERE j < 30) r FROM v',
  'SELECT array_agg(j) IGNORE NULLS r FROM v',
  // Time-series clauses.
  'SELECT ts, sum(x) s FROM c SAMPLE BY 1h FILL(7)',
  "SELECT ts, sum(x) s FROM c SAMPLE BY 1d ALIGN TO CALENDAR TIME ZONE 'Asia/Tokyo' " +
    "WITH OFFSET '01:00'",
  'SELECT ts, k, x FROM c WHERE x < 4 LATEST BY k',
  'SELECT c.ts, q.p FROM c ASOF JOIN q ON (k) TOLERANCE 20m',
  // Window clauses.
  'SELECT ts, sum(x) OVER (ORDER BY x DESC ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING ' +
    'EXCLUDE CURRENT ROW) r FROM c',
  'SELECT ts, lag(y, 1, 9.0) IGNORE NULLS OVER (ORDER BY x) r FROM c',
  'SELECT ts, sum(x) OVER w r FROM c WINDOW w AS (PARTITION BY k ORDER BY ts)',
];
