/** Sections 7 to 18: query clauses. */
import { refused, rule, section, works } from './item.js';

const TIME = 'golden cases, time series';

export const QUERIES = [
  section(
    7,
    'SAMPLE BY',
    refused(
      'requires a designated timestamp',
      'SELECT ts, sum(d) FROM t SAMPLE BY 1h',
      'SELECT x, count() FROM long_sequence(3) SAMPLE BY 1h',
    ),
    works(
      'units',
      'SELECT ts, sum(d) FROM t SAMPLE BY 1h',
      'SELECT ts, sum(d) FROM t SAMPLE BY 500U',
      'SELECT ts, sum(d) FROM t SAMPLE BY 2w',
      'SELECT ts, sum(d) FROM t SAMPLE BY 1y',
      'DECLARE @unit := 1d SELECT ts, sum(d) FROM t SAMPLE BY @unit',
    ),
    works('other columns are grouping keys', 'SELECT ts, k, b, sum(d) FROM t SAMPLE BY 1h'),
    works('aligned to the calendar by default', 'SELECT ts, count() FROM t SAMPLE BY 1d'),
    works('FIRST OBSERVATION', 'SELECT ts, count() FROM t SAMPLE BY 1d ALIGN TO FIRST OBSERVATION'),
    works(
      'CALENDAR, TIME ZONE, WITH OFFSET',
      'SELECT ts, count() FROM t SAMPLE BY 1d ALIGN TO CALENDAR',
      "SELECT ts, count() FROM t SAMPLE BY 1d ALIGN TO CALENDAR TIME ZONE 'Europe/Berlin'",
      "SELECT ts, count() FROM t SAMPLE BY 1d ALIGN TO CALENDAR WITH OFFSET '02:00'",
      "SELECT ts, count() FROM t SAMPLE BY 1d ALIGN TO CALENDAR TIME ZONE 'UTC' WITH OFFSET " +
        "'-01:30'",
    ),
    rule('bucket timestamps are in UTC', TIME),
    rule('days with 23 or 25 hours', TIME),
    works(
      'FILL: one value or one per aggregate',
      'SELECT ts, sum(d), avg(i) FROM t SAMPLE BY 1h FILL(NULL)',
      'SELECT ts, sum(d), avg(i) FROM t SAMPLE BY 1h FILL(PREV, 0)',
      'SELECT ts, sum(d) FROM t SAMPLE BY 1h FILL(LINEAR)',
      'SELECT ts, sum(d) FROM t SAMPLE BY 1h FILL(NONE)',
    ),
    works(
      'PREV of another aggregate',
      'SELECT ts, sum(d) x, min(d) y FROM t SAMPLE BY 1h FILL(NULL, PREV(x))',
    ),
    works(
      'FILL applies between the first and the last bucket',
      'SELECT ts, sum(d) FROM t SAMPLE BY 1h FILL(PREV)',
    ),
    works(
      'FROM and TO',
      "SELECT ts, sum(d) FROM t SAMPLE BY 1d FROM '2026-04-30' TO '2026-05-04' FILL(0)",
      "SELECT ts, sum(d) FROM t SAMPLE BY 1d FROM '2026-04-30' FILL(NULL)",
      "SELECT ts, sum(d) FROM t SAMPLE BY 1d TO '2026-05-04' FILL(NULL)",
      "SELECT ts, k, sum(d) FROM t SAMPLE BY 1d FROM '2026-04-30' TO '2026-05-04' FILL(NULL)",
    ),
    works(
      'FROM and TO in the time zone',
      "SELECT ts, sum(d) FROM t SAMPLE BY 1d FROM '2026-04-30' TO '2026-05-04' FILL(NULL) " +
        "ALIGN TO CALENDAR TIME ZONE 'Asia/Tokyo'",
    ),
    rule('FROM and TO narrow the scan', 'plan tests'),
    refused(
      'FROM and TO require ALIGN TO CALENDAR',
      "SELECT ts, sum(d) FROM t SAMPLE BY 1d FROM '2026-04-30' TO '2026-05-04'",
      "SELECT ts, sum(d) FROM t SAMPLE BY 1d FROM '2026-04-30' ALIGN TO FIRST OBSERVATION",
    ),
    refused(
      'FILL must precede ALIGN',
      'SELECT ts, sum(d) FROM t SAMPLE BY 1h FILL(NULL) ALIGN TO CALENDAR',
      'SELECT ts, sum(d) FROM t SAMPLE BY 1h ALIGN TO CALENDAR FILL(NULL)',
    ),
    works(
      'grouping sets after the SAMPLE BY interval',
      'SELECT ts, k, b, sum(d) FROM t SAMPLE BY 1h ROLLUP(k, b)',
    ),
    works('array_agg with FILL', 'SELECT ts, array_agg(d) FROM t SAMPLE BY 1h FILL(NULL)'),
  ),
  section(
    8,
    'GROUP BY, DISTINCT, grouping sets',
    works('GROUP BY is optional', 'SELECT k, sum(d) FROM t'),
    works('keys that are not in the SELECT list', 'SELECT k, sum(d) FROM t GROUP BY k, b'),
    works(
      'GROUP BY name, alias, position or expression',
      'SELECT k x, i % 2, sum(d) FROM t GROUP BY x, i % 2',
      'SELECT k, sum(d) FROM t GROUP BY 1',
    ),
    works('DISTINCT', 'SELECT DISTINCT k, b FROM t', 'SELECT DISTINCT k, count() FROM t'),
    works('count(DISTINCT)', 'SELECT count(DISTINCT k) FROM t'),
    works('HAVING', 'SELECT k, sum(d) FROM t GROUP BY k HAVING sum(d) > 1'),
    works(
      'ROLLUP',
      'SELECT k, b, sum(d) FROM t GROUP BY ROLLUP(k, b)',
      'SELECT i, k, b, sum(d) FROM t GROUP BY i, ROLLUP(k, b)',
      'SELECT i, k, b, sum(d) FROM t GROUP BY ROLLUP((i, k), b)',
    ),
    works('CUBE', 'SELECT k, b, sum(d) FROM t GROUP BY CUBE(k, b)'),
    works(
      'GROUPING SETS',
      'SELECT k, b, sum(d) FROM t GROUP BY GROUPING SETS ((k), (b), (k, b), ())',
    ),
    works(
      'grouping sets with SAMPLE BY',
      'SELECT ts, k, b, sum(d) FROM t SAMPLE BY 1h CUBE(k, b)',
      'SELECT ts, k, sum(d) FROM t SAMPLE BY 1h GROUPING SETS ((k), ())',
    ),
  ),
  section(
    9,
    'LATEST ON',
    works('latest row per key', 'SELECT * FROM t LATEST ON ts PARTITION BY k'),
    works('key types', 'SELECT * FROM t LATEST ON ts PARTITION BY k, s, b, i, l, ch'),
    works(
      'WHERE is applied first',
      'SELECT * FROM t WHERE d > 0 LATEST ON ts PARTITION BY k',
      '(SELECT * FROM t LATEST ON ts PARTITION BY k) WHERE d > 0',
    ),
    works('LATEST ON over a sub-query', '(SELECT * FROM r ORDER BY d) LATEST ON ts PARTITION BY k'),
    works('one key or several keys', 'SELECT d FROM t LATEST ON ts PARTITION BY k, b'),
    works(
      'legacy form LATEST BY',
      'SELECT * FROM t LATEST BY k',
      'SELECT * FROM t LATEST BY k WHERE d > 0',
    ),
  ),
  section(
    10,
    'Joins',
    works(
      'INNER, LEFT, RIGHT, FULL',
      'SELECT * FROM t JOIN r ON t.k = r.k',
      'SELECT * FROM t INNER JOIN r ON t.k = r.k AND t.i > r.i',
      'SELECT * FROM t LEFT JOIN r ON (k)',
      'SELECT * FROM t LEFT OUTER JOIN r ON (k, i)',
      'SELECT * FROM t RIGHT OUTER JOIN r ON t.k = r.k',
      'SELECT * FROM t FULL JOIN r ON t.k = r.k',
    ),
    works(
      'CROSS JOIN and comma',
      'SELECT * FROM t CROSS JOIN r',
      'SELECT * FROM t, r WHERE t.k = r.k',
    ),
    works('join conditions in WHERE', 'SELECT * FROM t, r, r q WHERE t.k = r.k AND r.k = q.k'),
    works(
      'several joins of different kinds',
      'SELECT * FROM t JOIN r ON t.k = r.k LEFT JOIN r q ON q.k = r.k',
    ),
    works('anti-join', 'SELECT t.* FROM t LEFT JOIN r ON t.k = r.k WHERE r.k = NULL'),
    works('duplicate column names are made unique', 'SELECT * FROM t JOIN r ON t.k = r.k'),
    works('ASOF', 'SELECT * FROM t ASOF JOIN r', 'SELECT * FROM t ASOF JOIN r ON k'),
    works(
      'keys of ASOF and LT',
      'SELECT * FROM t ASOF JOIN r ON (k, i)',
      'SELECT * FROM t ASOF JOIN r ON t.k = r.k',
    ),
    works(
      'TOLERANCE',
      'SELECT * FROM t ASOF JOIN r ON (k) TOLERANCE 2m',
      'SELECT * FROM t LT JOIN r TOLERANCE 500T',
    ),
    works(
      'inputs in timestamp order',
      'SELECT * FROM (SELECT * FROM t WHERE d > 0) x ASOF JOIN (SELECT * FROM r) y ON (k)',
    ),
    refused(
      'input without a designated timestamp',
      'SELECT * FROM t ASOF JOIN r',
      'SELECT * FROM long_sequence(2) ASOF JOIN r',
    ),
    works('LT', 'SELECT * FROM t LT JOIN r ON (k)', 'SELECT * FROM t LT JOIN r'),
    works('SPLICE', 'SELECT * FROM t SPLICE JOIN r', 'SELECT * FROM t SPLICE JOIN r ON (k)'),
    works('inputs with different timestamp resolutions', 'SELECT * FROM t ASOF JOIN nano ON (k)'),
    works(
      'LATERAL',
      'SELECT t.k, x.m FROM t JOIN LATERAL (SELECT max(r.d) m FROM r WHERE r.k = t.k) x ON true',
      'SELECT t.k, x.m FROM t LEFT JOIN LATERAL (SELECT r.d m FROM r WHERE r.k = t.k) x ON true',
      'SELECT t.k, x.m FROM t CROSS JOIN LATERAL (SELECT r.d m FROM r WHERE r.k = t.k) x',
      'SELECT t.k, x.m FROM t, LATERAL (SELECT r.d m FROM r WHERE r.k = t.k) x',
    ),
    works(
      'LATERAL: top n per row',
      'SELECT t.k, x.d FROM t CROSS JOIN LATERAL (SELECT r.d FROM r WHERE r.k = t.k ORDER ' +
        'BY r.d DESC LIMIT 2) x',
    ),
    works(
      'LATERAL: count() over no rows',
      'SELECT t.k, x.n FROM t LEFT JOIN LATERAL (SELECT count(*) n FROM r WHERE r.k = t.s) ' +
        'x ON true',
    ),
    works(
      'LATERAL before a table',
      'SELECT * FROM t JOIN LATERAL r ON true',
      'SELECT * FROM t, LATERAL r',
      'SELECT u.value FROM w, LATERAL UNNEST(w.a) u',
    ),
    works(
      'WINDOW JOIN',
      'SELECT t.ts, t.k, avg(r.d) m, count() n FROM t WINDOW JOIN r ON (t.k = r.k) RANGE ' +
        'BETWEEN 30 seconds PRECEDING AND 10 seconds FOLLOWING',
    ),
    works(
      'bounds of WINDOW JOIN',
      'SELECT t.ts, sum(r.d) FROM t WINDOW JOIN r ON (k) RANGE BETWEEN 1 minute PRECEDING ' +
        'AND CURRENT ROW',
      'SELECT t.ts, sum(r.d) FROM t WINDOW JOIN r RANGE BETWEEN t.i seconds PRECEDING AND 0 ' +
        'seconds FOLLOWING',
      'SELECT t.ts, sum(r.d) FROM t WINDOW JOIN r RANGE BETWEEN 1000 PRECEDING AND 1000 FOLLOWING',
    ),
    works(
      'INCLUDE and EXCLUDE PREVAILING',
      'SELECT t.ts, sum(r.d) FROM t WINDOW JOIN r RANGE BETWEEN 1 hour PRECEDING AND 1 hour ' +
        'FOLLOWING INCLUDE PREVAILING',
      'SELECT t.ts, sum(r.d) FROM t WINDOW JOIN r RANGE BETWEEN 1 hour PRECEDING AND 1 hour ' +
        'FOLLOWING EXCLUDE PREVAILING WHERE t.d > 0',
    ),
    refused(
      'WINDOW JOIN: bounds must be finite',
      'SELECT t.ts, sum(r.d) FROM t WINDOW JOIN r RANGE BETWEEN 1 hour PRECEDING AND 1 hour ' +
        'FOLLOWING',
      'SELECT t.ts, sum(r.d) FROM t WINDOW JOIN r RANGE BETWEEN UNBOUNDED PRECEDING AND ' +
        'CURRENT ROW',
    ),
    works(
      'aggregates of WINDOW JOIN',
      'SELECT t.ts, sum(r.d), avg(r.d), count(r.d), min(r.d), max(r.d), first(r.d), ' +
        'last(r.d) FROM t WINDOW JOIN r RANGE BETWEEN 1 hour PRECEDING AND 1 hour FOLLOWING',
    ),
    works(
      'HORIZON JOIN',
      'SELECT h.offset, avg(r.d) FROM t HORIZON JOIN r ON (t.k = r.k) RANGE FROM 0s TO 10s ' +
        'STEP 5s AS h',
    ),
    works(
      'HORIZON JOIN: offset and timestamp',
      'SELECT h.offset / 1000000 sec, count() FROM t HORIZON JOIN r ON (k) LIST (0, 1s, 5s) ' +
        'AS h ORDER BY sec',
    ),
    works(
      'HORIZON JOIN: RANGE and LIST',
      'SELECT h.offset, avg(r.d) FROM t HORIZON JOIN r ON (k) RANGE FROM -1m TO 1m STEP 30s AS h',
      'SELECT h.offset, avg(r.d) FROM t HORIZON JOIN r ON (k) LIST (-1m, 0, 1m) AS h',
    ),
    works(
      'several HORIZON JOINs',
      'SELECT h.offset, avg(r.d), avg(q.d) FROM t HORIZON JOIN r ON (k) HORIZON JOIN r AS q ' +
        'ON (k) LIST (0, 1s) AS h',
    ),
    works(
      'GROUP BY with HORIZON JOIN',
      'SELECT h.offset, t.k, avg(r.d) FROM t HORIZON JOIN r ON (k) LIST (0, 1s) AS h GROUP ' +
        'BY h.offset, t.k',
    ),
    refused(
      'HORIZON JOIN with another join',
      'SELECT h.offset, avg(r.d) FROM t HORIZON JOIN r ON (k) LIST (0, 1s) AS h',
      'SELECT h.offset, avg(r.d) FROM t JOIN r q ON q.k = t.k HORIZON JOIN r ON (t.k = r.k) ' +
        'LIST (0, 1s) AS h',
    ),
  ),
  section(
    11,
    'UNNEST',
    works(
      'several arrays in parallel',
      'SELECT w.k, u.value FROM w, UNNEST(w.a) u',
      'SELECT x.value1, x.value2 FROM w, UNNEST(w.a, w.a) x',
    ),
    works('one dimension at a time', 'SELECT v.value FROM w, UNNEST(w.aa) u, UNNEST(u.value) v'),
    works('column names', 'SELECT e FROM w, UNNEST(w.a) u (e)'),
    works(
      'WITH ORDINALITY',
      'SELECT e, n FROM w, UNNEST(w.a) WITH ORDINALITY u (e, n)',
      'SELECT u.value, u."ordinality" FROM w CROSS JOIN UNNEST(w.a) WITH ORDINALITY AS u',
    ),
    works('null and empty arrays', 'SELECT * FROM UNNEST(ARRAY[]::double[]) u'),
    works('JSON', 'SELECT u.name, u.n FROM j, UNNEST(j.body COLUMNS(name VARCHAR, n LONG)) u'),
    works(
      'JSON with a missing field',
      'SELECT u.missing FROM j, UNNEST(j.body COLUMNS(missing DOUBLE)) u',
    ),
    works('JSON timestamps', 'SELECT u.at FROM j, UNNEST(j.body COLUMNS(at TIMESTAMP)) u'),
    works(
      'nested JSON documents',
      "SELECT u.n FROM j, UNNEST(json_extract(j.nested, '$.items')::varchar COLUMNS(n INT)) u",
    ),
    rule('maximum length of a field', TIME),
    works('UNNEST in the select list', 'SELECT k, UNNEST(a) FROM w'),
  ),
  section(
    12,
    'Window functions, frames, named windows',
    works(
      'ROWS and RANGE values',
      'SELECT sum(d) OVER (PARTITION BY k ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ' +
        'ROW) FROM t',
      "SELECT sum(d) OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN '1' HOUR PRECEDING AND " +
        'CURRENT ROW) FROM t',
      'SELECT sum(d) OVER (ORDER BY ts RANGE BETWEEN 5 minutes PRECEDING AND CURRENT ROW) FROM t',
    ),
    refused(
      'RANGE requires ORDER BY the designated timestamp',
      "SELECT sum(d) OVER (ORDER BY ts RANGE '1' HOUR PRECEDING) FROM t",
      "SELECT sum(d) OVER (ORDER BY d RANGE BETWEEN '1' HOUR PRECEDING AND CURRENT ROW) FROM t",
    ),
    works('default frame', 'SELECT sum(d) OVER (PARTITION BY k), sum(d) OVER (ORDER BY ts) FROM t'),
    works(
      'rows with equal timestamps',
      'SELECT sum(d) OVER (ORDER BY ts RANGE UNBOUNDED PRECEDING) FROM t',
    ),
    works(
      'frame bounds',
      'SELECT sum(d) OVER (ORDER BY ts ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED ' +
        'FOLLOWING) FROM t',
      'SELECT sum(d) OVER (ORDER BY ts ROWS BETWEEN 5 PRECEDING AND 2 PRECEDING) FROM t',
      'SELECT sum(d) OVER (ORDER BY ts ROWS BETWEEN 5 PRECEDING AND 2 FOLLOWING) FROM t',
      "SELECT max(d) OVER (ORDER BY ts RANGE BETWEEN CURRENT ROW AND '1' HOUR FOLLOWING) FROM t",
    ),
    works('CUMULATIVE', 'SELECT sum(d) OVER (PARTITION BY k ORDER BY ts CUMULATIVE) FROM t'),
    works(
      'short form of a frame',
      'SELECT avg(d) OVER (ORDER BY ts ROWS 5 PRECEDING) FROM t',
      'SELECT avg(d) OVER (ORDER BY ts ROWS UNBOUNDED PRECEDING) FROM t',
    ),
    works(
      'EXCLUDE',
      'SELECT sum(d) OVER (ORDER BY ts ROWS BETWEEN 3 PRECEDING AND CURRENT ROW EXCLUDE ' +
        'CURRENT ROW) FROM t',
      'SELECT sum(d) OVER (ORDER BY ts ROWS BETWEEN 3 PRECEDING AND CURRENT ROW EXCLUDE NO ' +
        'OTHERS) FROM t',
      'SELECT avg(d) OVER (ORDER BY ts ROWS BETWEEN 3 PRECEDING AND 3 FOLLOWING EXCLUDE ' +
        'CURRENT ROW) FROM t',
    ),
    works(
      'IGNORE and RESPECT NULLS',
      'SELECT first_value(d) IGNORE NULLS OVER (PARTITION BY k ORDER BY ts) FROM t',
      'SELECT lag(d, 1) RESPECT NULLS OVER (PARTITION BY k ORDER BY ts) FROM t',
      'SELECT lead(d) IGNORE NULLS OVER (ORDER BY ts) FROM t',
    ),
    works(
      'ranking and offset functions',
      'SELECT row_number() OVER (), rank() OVER (ORDER BY d DESC), dense_rank() OVER ' +
        '(PARTITION BY k ORDER BY d) FROM t',
    ),
    works(
      'named windows',
      'SELECT sum(d) OVER w, avg(d) OVER w FROM t WHERE d > 0 WINDOW w AS (PARTITION BY k ' +
        'ORDER BY ts) ORDER BY ts',
      'SELECT sum(d) OVER w, avg(d) OVER v, max(d) OVER (PARTITION BY b) FROM t WINDOW w AS ' +
        '(PARTITION BY k), v AS (ORDER BY ts)',
    ),
    works(
      'window inheritance',
      'SELECT sum(d) OVER v FROM t WINDOW w AS (PARTITION BY k), v AS (w ORDER BY ts ROWS 2 ' +
        'PRECEDING)',
      'SELECT sum(d) OVER (w ORDER BY ts) FROM t WINDOW w AS (PARTITION BY k)',
    ),
    works('arithmetic on window results', 'SELECT d - avg(d) OVER (PARTITION BY k) FROM t'),
    works(
      'argument types of aggregates',
      'SELECT sum(i) OVER (), sum(l) OVER (), avg(f) OVER () FROM t',
    ),
    works(
      'ANCHOR',
      'SELECT sum(d) OVER w FROM t WINDOW w AS (PARTITION BY k)',
      "SELECT sum(d) OVER w FROM t WINDOW w AS (PARTITION BY k ORDER BY ts ANCHOR DAILY '09:30')",
    ),
  ),
  section(
    13,
    'Set operations',
    works(
      'all six set operations',
      'SELECT k FROM t UNION SELECT k FROM r',
      'SELECT k FROM t UNION ALL SELECT k FROM r',
      'SELECT k FROM t EXCEPT SELECT k FROM r',
      'SELECT k FROM t EXCEPT ALL SELECT k FROM r',
      'SELECT k FROM t INTERSECT SELECT k FROM r',
      'SELECT k FROM t INTERSECT ALL SELECT k FROM r',
    ),
    refused(
      'both sides must have the same number of columns',
      "SELECT ip FROM t UNION ALL SELECT '1.1.1.1'",
      'SELECT k, d FROM t UNION SELECT k FROM r',
    ),
    works(
      'evaluation from left to right, parentheses',
      'SELECT k FROM t UNION (SELECT k FROM r EXCEPT SELECT s FROM t)',
    ),
    works(
      'WHERE applies to the last branch, ORDER BY to the whole',
      'SELECT k FROM t UNION SELECT k FROM r WHERE d > 0 ORDER BY k LIMIT 2',
    ),
    works(
      'column names come from the first branch',
      'SELECT k x FROM t UNION SELECT k y FROM r ORDER BY x',
    ),
    works('tables as branches', 'r UNION ALL r', 'r EXCEPT r'),
  ),
  section(
    14,
    'ORDER BY, LIMIT',
    works(
      'ORDER BY, NULLS FIRST and LAST',
      'SELECT k x, d FROM t ORDER BY x, 2 DESC, i ASC',
      'SELECT d FROM t ORDER BY d NULLS LAST',
    ),
    works('LIMIT n', 'SELECT * FROM t LIMIT 2'),
    works('LIMIT -n', 'SELECT * FROM t LIMIT -2'),
    works('LIMIT m, n', 'SELECT * FROM t LIMIT 1, 3', 'SELECT * FROM t LIMIT 3, 1'),
    works('LIMIT -m, -n', 'SELECT * FROM t LIMIT -3, -1'),
    works('LIMIT m, -n', 'SELECT * FROM t LIMIT 1, -1'),
    works(
      'LIMIT with a missing bound',
      'SELECT * FROM t LIMIT 2,',
      'SELECT * FROM t LIMIT ,2',
      'SELECT * FROM t LIMIT 2, 0',
      'SELECT * FROM t LIMIT -2,',
    ),
    refused('LIMIT -m, n', 'SELECT * FROM t LIMIT 2', 'SELECT * FROM t LIMIT -3, 2'),
    refused(
      'bounds can be expressions, but not null',
      'SELECT * FROM t LIMIT 1 + 1',
      'SELECT * FROM t LIMIT NULL',
    ),
    works(
      'OFFSET',
      'SELECT * FROM t LIMIT 2 OFFSET 1',
      'SELECT * FROM t OFFSET 1',
      'SELECT * FROM t ORDER BY d OFFSET 1 ROWS',
    ),
  ),
  section(
    15,
    'PIVOT',
    works('several aggregates', "t PIVOT (sum(d) AS total, avg(d + 1) FOR k IN ('a', 'b'))"),
    works(
      'several FOR columns',
      "t PIVOT (sum(d) FOR k IN ('a', 'b') b IN (true, false) GROUP BY i)",
    ),
    works(
      'values from a sub-query',
      't PIVOT (sum(d) FOR k IN (SELECT DISTINCT k FROM r) GROUP BY b)',
    ),
    works('column names', "t PIVOT (sum(d), count() AS n FOR k IN ('a' AS first, 'b' second))"),
    works(
      'GROUP BY inside, ORDER BY outside',
      "SELECT * FROM t PIVOT (sum(d) FOR k IN ('a', 'b') GROUP BY b) ORDER BY b LIMIT 1",
    ),
    works(
      'groups without a listed value',
      "t PIVOT (sum(d) FOR k IN ('none') GROUP BY b)",
      "t WHERE d > 0 PIVOT (sum(d) FOR k IN ('a')) AS p",
    ),
    rule('maximum number of output columns', 'limits'),
  ),
  section(
    16,
    'CASE, CAST',
    works(
      'CASE WHEN',
      "SELECT CASE WHEN i > 1 THEN 'x' WHEN i > 0 THEN 'y' ELSE 'z' END FROM t",
      'SELECT CASE WHEN b THEN 1 END FROM t',
    ),
    works(
      'CASE with an operand',
      "SELECT CASE k WHEN 'a' THEN 1 WHEN 'b' THEN 2 ELSE 0 END FROM t",
    ),
    works('CAST', 'SELECT CAST(d AS INT) FROM t'),
    works('::', "SELECT i::decimal(10, 2), 'u33d8'::geohash(5c) FROM t"),
  ),
  section(
    17,
    'DECLARE, WITH',
    works(
      'values of variables',
      'DECLARE @a := 1, @b := now(), @c := d, @e := 1h SELECT @a, @c FROM t',
      'DECLARE @q := (SELECT max(d) FROM t) SELECT * FROM @q',
    ),
    works(
      'references to earlier variables, inner DECLARE',
      'DECLARE @a := 1, @b := @a + 1 SELECT @b, x FROM (DECLARE @a := 3 SELECT @a AS x)',
    ),
    refused(
      'variables cannot hold SQL fragments',
      'DECLARE @a := 1 SELECT @a',
      'DECLARE @a := WHERE d > 0 SELECT 1',
    ),
    works(
      'DECLARE before WITH and SELECT, and inside statements',
      'DECLARE @a := 1 WITH q AS (SELECT @a x) SELECT * FROM q',
      'INSERT INTO r (ts, d) DECLARE @a := 5.0 SELECT ts, @a FROM t',
      'CREATE TABLE copied AS (DECLARE @a := 5 SELECT @a x)',
    ),
    works(
      'OVERRIDABLE in views',
      'CREATE VIEW v AS (DECLARE OVERRIDABLE @low := 1.0 SELECT * FROM t WHERE d > @low)',
      'DECLARE @low := 2.0 SELECT * FROM v',
    ),
    refused('missing colon', 'DECLARE @a := 1 SELECT @a', 'DECLARE @a = 1 SELECT @a'),
    works(
      'WITH',
      'WITH x AS (SELECT d FROM t), y AS (SELECT d FROM x) SELECT * FROM y',
      'WITH x AS (SELECT * FROM t) INSERT INTO r (ts, d) SELECT ts, d FROM x',
      'WITH x AS (SELECT max(d) m FROM t) UPDATE r SET d = x.m FROM x',
    ),
  ),
  section(
    18,
    'Hints',
    works(
      'hints are parsed and can be ignored',
      'SELECT /*+ whatever(a b) */ * FROM t',
      'SELECT /*+ */ 1',
    ),
    works('asof_dense', 'SELECT /*+ asof_dense(t r) */ * FROM t ASOF JOIN r ON (k)'),
    works('asof_linear', 'SELECT /*+ asof_linear(t r) */ * FROM t ASOF JOIN r ON (k)'),
    works('asof_memoized', 'SELECT /*+ asof_memoized(t r) */ * FROM t ASOF JOIN r ON (k)'),
    works('asof_index', 'SELECT /*+ asof_index(t r) */ * FROM t ASOF JOIN r ON (k)'),
    works('no_covering', "SELECT /*+ no_covering */ * FROM t WHERE k = 'a'"),
    works('no_index', "SELECT /*+ no_index */ * FROM t WHERE k = 'a'"),
    works(
      'legacy names',
      'SELECT /*+ avoid_asof_binary_search(t r) */ * FROM t ASOF JOIN r ON (k)',
    ),
  ),
];
