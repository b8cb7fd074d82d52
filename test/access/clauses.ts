/**
 * Clauses that name a column, for gate S14. Each is a statement with a placeholder for the column.
 */

/**
 * Columns of `sec` other than `ts` and `pub`. Their types differ, so different clauses accept them.
 */
type Column = 'secret' | 'sym' | 'num' | 'at' | 'arr';

export const COLUMNS: readonly Column[] = ['secret', 'sym', 'num', 'at', 'arr'];

export const TABLES = [
  `CREATE TABLE sec (ts TIMESTAMP, pub INT, secret VARCHAR, sym SYMBOL, num DOUBLE, at TIMESTAMP,
    arr DOUBLE[]) TIMESTAMP(ts) PARTITION BY DAY`,
  `INSERT INTO sec VALUES
    ('2026-01-01', 1, 'SECRET1', 'A', 1.5, '2026-01-01', ARRAY[1.0, 2.0]),
    ('2026-01-02', 2, 'SECRET2', 'B', 2.5, '2026-01-02', ARRAY[3.0])`,
  `CREATE TABLE own (ts TIMESTAMP, pub INT, secret VARCHAR, sym SYMBOL, num DOUBLE, at TIMESTAMP)
    TIMESTAMP(ts) PARTITION BY DAY`,
  "INSERT INTO own VALUES ('2026-01-01', 1, 'SECRET1', 'A', 1.5, '2026-01-01')",
  'CREATE TABLE sink (x VARCHAR)',
];

/** Clauses that accept any column. `#` stands for the column. */
const ANY = [
  'SELECT # FROM sec',
  'SELECT sec.# FROM sec',
  'SELECT a.# FROM sec a',
  'SELECT pub, # other FROM sec',
  'SELECT * FROM sec',
  'SELECT sec.* FROM sec',
  'SELECT a.* FROM sec a JOIN own o ON a.pub = o.pub',
  'sec',
  'sec LIMIT 1',
  'sec ORDER BY pub',
  'sec UNION ALL sec',
  'SELECT pub FROM (sec)',
  'SELECT count() FROM (sec)',
  'WITH c AS (sec) SELECT pub FROM c',
  'DECLARE @q := (SELECT * FROM sec) SELECT pub FROM @q',
  'SELECT count(#) FROM sec',
  'SELECT first(#) FROM sec',
  'SELECT pub FROM sec WHERE # IS NOT NULL',
  'SELECT CASE WHEN # IS NULL THEN 1 ELSE 2 END FROM sec',
  'SELECT coalesce(#, #) FROM sec',
  'SELECT pub FROM sec a WHERE EXISTS (SELECT 1 FROM own WHERE a.# IS NULL OR own.pub = a.pub)',
  'SELECT pub, (SELECT count() FROM own WHERE own.pub = a.pub AND a.# IS NULL) FROM sec a',
  'SELECT max(pub) FROM (SELECT pub, # FROM sec)',
  'WITH c AS (SELECT # FROM sec) SELECT count() FROM c',
  'WITH c AS (SELECT * FROM sec) SELECT pub FROM c',
  'SELECT count() FROM sec a JOIN own o ON a.pub = o.pub AND a.# IS NOT NULL',
  'SELECT count() FROM sec a LEFT JOIN own o ON a.pub = o.pub WHERE a.# IS NULL',
  'SELECT o.pub FROM own o, sec a WHERE a.# IS NOT NULL',
];

/** Clauses that accept any column whose values can be compared and grouped. */
const PLAIN = [
  'SELECT count() FROM sec GROUP BY #',
  'SELECT max(pub), count() FROM sec GROUP BY #, pub % 2',
  'SELECT count() FROM sec GROUP BY sec.#',
  'SELECT pub, count() FROM sec GROUP BY pub, #',
  'SELECT count() FROM sec GROUP BY ROLLUP(#)',
  'SELECT count() FROM sec GROUP BY CUBE(#, pub)',
  'SELECT count() FROM sec GROUP BY GROUPING SETS ((#), ())',
  'SELECT count(), # FROM sec',
  'SELECT max(pub) FROM sec GROUP BY (# IS NULL)',
  'SELECT count() FROM sec GROUP BY pub HAVING max(#) IS NOT NULL',
  'SELECT pub FROM sec ORDER BY #',
  'SELECT pub FROM sec ORDER BY # DESC LIMIT 1',
  'SELECT pub FROM sec ORDER BY sec.#, pub',
  'SELECT pub FROM sec ORDER BY (# IS NULL)',
  'SELECT count() c FROM sec GROUP BY pub ORDER BY max(#)',
  'SELECT DISTINCT # FROM sec',
  'SELECT count_distinct(#) FROM sec',
  'SELECT pub FROM sec WHERE # = #',
  'SELECT pub FROM sec WHERE # IN (SELECT # FROM own)',
  'SELECT pub FROM own WHERE # IN (SELECT # FROM sec)',
  'SELECT pub FROM own WHERE # = (SELECT # FROM sec LIMIT 1)',
  'SELECT pub FROM own o WHERE EXISTS (SELECT 1 FROM sec WHERE sec.# = o.#)',
  'SELECT row_number() OVER (PARTITION BY # ORDER BY ts) FROM sec',
  'SELECT row_number() OVER (ORDER BY #) FROM sec',
  'SELECT max(pub) OVER (PARTITION BY #) FROM sec',
  'SELECT max(pub) OVER w FROM sec WINDOW w AS (PARTITION BY # ORDER BY ts)',
  'SELECT lag(#) OVER (ORDER BY ts) FROM sec',
  'SELECT o.pub FROM own o JOIN sec a ON o.# = a.#',
  'SELECT o.pub FROM own o JOIN sec a USING (#)',
  'SELECT o.pub FROM own o LEFT JOIN sec a USING (pub, #)',
  'SELECT count() FROM own NATURAL JOIN (SELECT pub, # FROM sec)',
  'SELECT pub FROM own EXCEPT SELECT pub FROM sec WHERE # IS NOT NULL',
  'SELECT pub FROM sec INTERSECT SELECT pub FROM sec WHERE # IS NOT NULL',
  'SELECT # FROM own UNION ALL SELECT # FROM sec',
  'SELECT count() FROM (SELECT # FROM sec UNION SELECT # FROM own)',
  'SELECT ts, count() FROM sec WHERE # IS NOT NULL SAMPLE BY 1d',
  'SELECT ts, max(#) FROM sec SAMPLE BY 1d',
  'SELECT ts, first(#) FROM sec SAMPLE BY 1d FILL(PREV)',
  'DECLARE @x := # SELECT pub FROM sec WHERE @x IS NOT NULL',
  'SELECT min(pub) FROM sec a WHERE a.pub > ALL (SELECT pub FROM own WHERE own.# = a.#)',
];

/** Clauses that accept only the given column. */
const SPECIAL: Readonly<Record<Column, readonly string[]>> = {
  secret: [
    "SELECT pub FROM sec WHERE secret LIKE 'S%'",
    "SELECT pub FROM sec WHERE secret ~ 'S'",
    "SELECT pub FROM sec WHERE secret BETWEEN 'A' AND 'Z'",
    "SELECT string_agg(secret, ',') FROM sec",
    'SELECT pub || secret FROM sec',
    'SELECT secret::symbol FROM sec',
    'SELECT CAST(secret AS STRING) FROM sec',
    'SELECT length(secret) FROM sec',
    "SELECT max(CASE secret WHEN 'SECRET1' THEN 1 END) FROM sec",
    "SELECT * FROM (SELECT pub, secret FROM sec) PIVOT (count() FOR secret IN ('SECRET1'))",
    'SELECT * FROM (SELECT pub, num FROM own) PIVOT (sum(num) FOR pub IN ' +
      '(SELECT pub FROM sec WHERE secret IS NOT NULL))',
    'SELECT pub FROM own o CROSS JOIN LATERAL (SELECT secret FROM sec WHERE sec.pub = o.pub) l',
  ],
  sym: [
    'SELECT pub FROM sec LATEST ON ts PARTITION BY sym',
    'SELECT pub FROM sec LATEST ON ts PARTITION BY pub, sym',
    'SELECT pub FROM sec LATEST BY sym',
    "SELECT pub FROM sec WHERE sym IN ('A', 'B')",
    'SELECT ts, sym, count() FROM sec SAMPLE BY 1d',
    'SELECT ts, sym, max(pub) FROM sec SAMPLE BY 1d FILL(NULL)',
    'SELECT o.pub FROM own o ASOF JOIN sec a ON (sym)',
    'SELECT o.pub FROM own o ASOF JOIN sec a ON o.sym = a.sym',
    'SELECT o.pub FROM own o LT JOIN sec a ON (sym)',
    'SELECT o.pub FROM own o SPLICE JOIN sec a ON (sym)',
    'SELECT a.pub FROM sec a ASOF JOIN own o ON (sym)',
    "SELECT * FROM (SELECT ts, pub, sym FROM sec) PIVOT (max(pub) FOR sym IN ('A', 'B'))",
    'SELECT pub FROM (SELECT pub, sym FROM sec) GROUP BY pub',
  ],
  num: [
    'SELECT sum(num) FROM sec',
    'SELECT pub + num FROM sec',
    'SELECT -num FROM sec',
    'SELECT pub FROM sec WHERE num > 1 AND pub > 0',
    'SELECT sum(num) OVER (ORDER BY ts ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM sec',
    'SELECT ts, sum(num) FROM sec SAMPLE BY 1d FILL(LINEAR)',
    'SELECT ts, avg(pub), avg(num) FROM sec SAMPLE BY 12h FILL(NULL, PREV)',
    'SELECT round(num, 1) FROM sec',
    'SELECT pub FROM sec GROUP BY pub HAVING sum(num) > 0',
    'SELECT approx_percentile(num, 0.5) FROM sec',
  ],
  at: [
    'SELECT pub FROM sec TIMESTAMP(at)',
    'SELECT at, count() FROM sec TIMESTAMP(at) SAMPLE BY 1d',
    'SELECT count() FROM (SELECT pub, at FROM sec) TIMESTAMP(at)',
    'SELECT pub FROM sec LATEST ON at PARTITION BY pub',
    "SELECT pub FROM sec WHERE at IN '2026-01'",
    "SELECT pub FROM sec WHERE at > '2025-01-01'",
    "SELECT pub FROM sec WHERE at BETWEEN '2025' AND '2027'",
    'SELECT o.pub FROM own o ASOF JOIN (sec TIMESTAMP(at)) a',
    "SELECT date_trunc('day', at) FROM sec",
    "SELECT dateadd('d', 1, at) FROM sec",
  ],
  arr: [
    'SELECT arr[1] FROM sec',
    'SELECT pub FROM sec WHERE arr[1] > 0',
    'SELECT array_sum(arr) FROM sec',
    'SELECT pub, x FROM sec, UNNEST(arr) u(x)',
    'SELECT pub FROM sec CROSS JOIN UNNEST(arr)',
    'SELECT array_count(arr) FROM sec',
  ],
};

/** Statements that change data and therefore require more than SELECT. */
const CHANGES = [
  'INSERT INTO sink SELECT #::varchar FROM sec',
  'INSERT INTO sink (x) SELECT pub::varchar FROM sec WHERE # IS NOT NULL',
  'INSERT INTO sink SELECT pub::varchar FROM sec ORDER BY #',
  'CREATE TABLE taken AS (SELECT pub FROM sec ORDER BY #)',
  'CREATE TABLE taken AS (SELECT count() n FROM sec GROUP BY #)',
  'CREATE VIEW taken AS (SELECT # FROM sec)',
  'CREATE VIEW taken AS (SELECT count() n FROM sec GROUP BY #)',
  'UPDATE sec SET pub = 3 WHERE # IS NOT NULL',
  'UPDATE sec SET pub = (CASE WHEN # IS NULL THEN 1 ELSE 2 END)',
  'UPDATE own SET pub = a.pub FROM sec a WHERE own.# = a.#',
  'UPDATE own SET pub = 1 WHERE # IN (SELECT # FROM sec)',
  'DELETE FROM sec WHERE # IS NULL',
  'DELETE FROM own USING sec a WHERE own.pub = a.pub AND a.# IS NULL',
  'DELETE FROM own WHERE # IN (SELECT # FROM sec) AND pub = 99',
  "INSERT INTO sec (ts, pub, at) VALUES ('2026-01-03', 3, '2026-01-03') RETURNING #",
  'SELECT pub FROM own WHERE pub IN (SELECT count() FROM sec GROUP BY #)',
  'EXPLAIN UPDATE sec SET pub = 3 WHERE # IS NOT NULL',
];

export interface Clause {
  readonly column: Column;
  readonly text: string;
  /** Whether the clause's statement returns rows and can be nested as a query. */
  readonly isQuery: boolean;
}

function clausesOf(column: Column, texts: readonly string[], isQuery = true): readonly Clause[] {
  return texts.map((text) => ({ column, text: text.replaceAll('#', column), isQuery }));
}

export const CLAUSES: readonly Clause[] = [
  ...COLUMNS.flatMap((column) => clausesOf(column, ANY)),
  ...COLUMNS.filter((column) => column !== 'arr').flatMap((column) => [
    ...clausesOf(column, PLAIN),
    ...clausesOf(column, CHANGES, false),
  ]),
  ...COLUMNS.flatMap((column) => clausesOf(column, SPECIAL[column])),
];
