/**
 * Uses EXPLAIN to obtain the intervals of an interval expression, compares them, and formats them
 * compactly.
 */

/** Half-open intervals in the column's unit, or the error message of a refusal. */
export type TickAnswer =
  | { readonly intervals: readonly (readonly [lo: bigint, hi: bigint])[]; readonly now: bigint }
  | { readonly refused: string };

/** Runs SQL over HTTP and resolves to the response body. */
export type Query = (sql: string) => Promise<unknown>;

/** Maximum number of intervals that EXPLAIN shows. */
const SHOWN = 1_000;

interface Body {
  readonly error?: string;
  readonly dataset?: readonly (readonly [string])[];
}

/** Returns a quoted SQL string. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** Parses a timestamp from EXPLAIN. The number of digits implies the unit. */
function timestampOf(text: string): bigint {
  const [, year = '', rest = '', fraction = ''] = /^(-?\d+)(-.*)\.(\d+)Z$/.exec(text) ?? [];
  const sign = year.startsWith('-') ? '-' : '+';
  const years = `${sign}${year.replace('-', '').padStart(6, '0')}`;
  const millis = Date.parse(`${year.length === 4 ? year : years}${rest}Z`);
  if (Number.isNaN(millis)) {
    // `MIN`, which is also QuestDB's value for dates outside its calendar.
    return -(2n ** 63n);
  }
  return BigInt(millis / 1000) * 10n ** BigInt(fraction.length) + BigInt(fraction);
}

const ENTITIES: readonly (readonly [string, string])[] = [
  ['&nbsp;', ' '],
  ['&quot;', '"'],
  ['&gt;', '>'],
  ['&lt;', '<'],
  ['&amp;', '&'],
];

/** Returns the intervals of each scan in a plan, in order. The printed bounds are inclusive. */
function scansOf(body: Body): (readonly [bigint, bigint])[][] {
  const lines = (body.dataset ?? []).map(([line]) =>
    ENTITIES.reduce((text, [entity, plain]) => text.replaceAll(entity, plain), line),
  );
  const lists = lines.flatMap((line) => {
    const list = /intervals[:=] ?\[(.*)\]/.exec(line)?.[1];
    return list === undefined ? [] : [list];
  });
  return lists.map((list) =>
    [...list.matchAll(/\("?([^",()]+)"?,"?([^",()]+)"?\)/g)].map(
      ([, lo = '', hi = '']) => [timestampOf(lo), timestampOf(hi) + 1n] as const,
    ),
  );
}

/** Sorts intervals, merges adjacent ones and removes empty ones. */
function merged(intervals: readonly (readonly [bigint, bigint])[]): (readonly [bigint, bigint])[] {
  const sorted = intervals
    .filter(([lo, hi]) => lo < hi)
    .toSorted(([a], [b]) => (a < b ? -1 : Number(a > b)));
  const found: [bigint, bigint][] = [];
  for (const [lo, hi] of sorted) {
    const last = found.at(-1);
    if (last !== undefined && lo <= last[1]) {
      last[1] = hi > last[1] ? hi : last[1];
    } else {
      found.push([lo, hi]);
    }
  }
  return found;
}

/**
 * Returns the intervals that a server reads for an expression over the designated timestamp. The
 * same statement also requests the current time, which gives relative strings an exact meaning.
 */
export async function answerOf(query: Query, table: string, text: string): Promise<TickAnswer> {
  const scan = (tick: string): string => `SELECT * FROM ${table} WHERE ts IN ${quoted(tick)}`;
  const body = (await query(`EXPLAIN ${scan('$now')} UNION ALL ${scan(text)}`)) as Body;
  if (body.error !== undefined) {
    return { refused: body.error };
  }
  // A scan known to be empty is missing from the plan.
  const [clock, intervals = []] = scansOf(body);
  const now = clock?.[0]?.[0];
  if (now === undefined) {
    throw new Error(`no time in the plan of ${text}: ${JSON.stringify(body)}`);
  }
  return { intervals: merged(intervals).slice(0, SHOWN), now };
}

/** Whether two answers mean the same thing, each relative to its own time. */
export function agree(one: TickAnswer, other: TickAnswer): boolean {
  if ('refused' in one || 'refused' in other) {
    return 'refused' in one && 'refused' in other;
  }
  const same = (a: bigint, b: bigint): boolean => a === b || a - one.now === b - other.now;
  return (
    one.intervals.length === other.intervals.length &&
    one.intervals.every(([lo, hi], index) => {
      const [otherLo, otherHi] = other.intervals[index] ?? [lo + 1n, hi];
      return same(lo, otherLo) && same(hi, otherHi);
    })
  );
}

/** Formats an answer for messages. */
export function shown(answer: TickAnswer): string {
  if ('refused' in answer) {
    return `refused: ${answer.refused}`;
  }
  const time = (value: bigint): string => {
    const digits = value > 10n ** 17n ? 9 : 6;
    const scale = 10n ** BigInt(digits - 3);
    const rest = ((value % scale) + scale) % scale;
    const millis = Number((value - rest) / scale);
    const date = new Date(millis);
    const iso = Number.isNaN(date.getTime()) ? `${String(millis)} ms` : date.toISOString();
    return rest === 0n ? iso.replace(/(T00:00:00|:00)?\.000Z$/, '') : `${iso}+${String(rest)}`;
  };
  const list = answer.intervals.slice(0, 4).map(([lo, hi]) => `${time(lo)}/${time(hi)}`);
  return `${answer.intervals.length}: ${list.join(' ')}`;
}
