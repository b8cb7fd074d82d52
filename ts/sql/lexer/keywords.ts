/**
 * Words with a fixed meaning. Few words are reserved. Most are keywords only where the grammar
 * expects them, so `timestamp`, `type` or `offset` can be a column name.
 */

/** Words that can be names only in double quotes. */
export const RESERVED: ReadonlySet<string> = new Set([
  'ALTER',
  'AND',
  'AS',
  'ASC',
  'ASOF',
  'BETWEEN',
  'CASE',
  'CAST',
  'CREATE',
  'CROSS',
  'DECLARE',
  'DESC',
  'DISTINCT',
  'DROP',
  'ELSE',
  'END',
  'EXCEPT',
  'FROM',
  'FULL',
  'GROUP',
  'ILIKE',
  'IN',
  'INNER',
  'INSERT',
  'INTERSECT',
  'INTO',
  'IS',
  'JOIN',
  'LATEST',
  'LEFT',
  'LIKE',
  'LIMIT',
  'NATURAL',
  'NOT',
  'NULL',
  'ON',
  'OR',
  'ORDER',
  'OVER',
  'PARTITION',
  'RIGHT',
  'SAMPLE',
  'SELECT',
  'SET',
  'SPLICE',
  'THEN',
  'UNION',
  'USING',
  'WHEN',
  'WHERE',
  'WITH',
  'WITHIN',
]);

/**
 * Reserved words that can still be column names and aliases in positions where no keyword is valid.
 */
export const COLUMN_WORDS: ReadonlySet<string> = new Set([
  'ASOF',
  'CROSS',
  'ELSE',
  'GROUP',
  'ILIKE',
  'INNER',
  'LATEST',
  'LEFT',
  'NATURAL',
  'RIGHT',
  'SPLICE',
  'THEN',
  'WHEN',
]);

/** The `COLUMN_WORDS` that are keywords within a CASE, in positions where an operand may start. */
export const CASE_WORDS: ReadonlySet<string> = new Set(['ELSE', 'THEN', 'WHEN']);

/** Words that, directly after one of the `COLUMN_WORDS`, make it a keyword. */
export const AFTER_COLUMN_WORDS: ReadonlySet<string> = new Set(['BY', 'JOIN', 'ON', 'OUTER']);

/** Reserved words that begin an operand. */
export const OPERAND_STARTS: ReadonlySet<string> = new Set(['CASE', 'CAST', 'NOT', 'NULL']);

/** Reserved words that are also function names. They start an operand if a parenthesis follows. */
export const CALLABLE: ReadonlySet<string> = new Set(['LEFT', 'RIGHT', 'INSERT', 'WITHIN']);

/** Words that continue a query after a source. They therefore cannot be its alias without AS. */
export const AFTER_SOURCE: ReadonlySet<string> = new Set([
  ...RESERVED,
  'ALIGN',
  'FILL',
  'HAVING',
  'QUALIFY',
  'RETURNING',
  'TOLERANCE',
]);

/** Words that form a join only before JOIN; elsewhere, `lt` or `window` may be a name. */
export const SOFT_JOINS: ReadonlySet<string> = new Set(['HORIZON', 'LT', 'SPLICE', 'WINDOW']);

/** Units in SAMPLE BY, TOLERANCE and offsets; case-sensitive. */
export const INTERVAL_UNITS: ReadonlySet<string> = new Set([
  'n',
  'U',
  'T',
  's',
  'm',
  'h',
  'd',
  'w',
  'M',
  'y',
]);

/** Unit words in frames and WINDOW JOIN bounds, in the singular. */
export const FRAME_UNITS: ReadonlySet<string> = new Set([
  'NANOSECOND',
  'MICROSECOND',
  'MILLISECOND',
  'SECOND',
  'MINUTE',
  'HOUR',
  'DAY',
  'WEEK',
]);

/** Words that may follow the string in an INTERVAL, in the singular. */
export const INTERVAL_WORDS: ReadonlySet<string> = new Set([
  ...FRAME_UNITS,
  'MONTH',
  'QUARTER',
  'YEAR',
]);

/** Types that may precede a string literal. */
export const LITERAL_TYPES: ReadonlySet<string> = new Set([
  'DATE',
  'TIMESTAMP',
  'TIMESTAMP_NS',
  'TIMESTAMPTZ',
  'IPV4',
  'INTERVAL',
  'UUID',
]);
