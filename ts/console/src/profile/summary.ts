/** Requests the profile of a column from the server in several queries. */
import { aborted, query, SqlError } from '../api/client.js';
import type { Answer } from '../api/cells.js';
import type { Profile } from '../model/profile.js';
import {
  distinctQuery,
  factsOf,
  factsQuery,
  shaped,
  shapeQuery,
  type ProfiledColumn,
  type Rows,
} from './questions.js';
import { texts } from '../texts.js';

export interface ColumnSummary {
  readonly profile: Profile;
  /** Describes the profiled rows; absent if the profile covers all rows. */
  readonly sampleName?: string;
  /** Names of the figures that could not be computed within the limits. */
  readonly missing: readonly string[];
  readonly isWhole: boolean;
}

/** Time limit per query, enforced by the server. */
const TIMEOUT_MS = 10_000;
/** Time limit for exact distinct counts; shorter because they also use much memory. */
const DISTINCT_TIMEOUT_MS = 4000;

type RunQuery = (statement: string, timeoutMs: number, signal: AbortSignal) => Promise<Answer>;

const runOnServer: RunQuery = async (statement, timeoutMs, signal) =>
  await query(statement, { timeoutMs, signal });

/**
 * Yields the profile after each query. Throws the server's error if the first figures cannot be
 * read.
 */
export async function* summarize(
  column: ProfiledColumn,
  rows: Rows,
  signal: AbortSignal,
  run: RunQuery = runOnServer,
): AsyncGenerator<ColumnSummary> {
  let { from } = rows;
  let sample: { sampleName?: string } = {};
  let answer;
  try {
    answer = await run(factsQuery(column, from), TIMEOUT_MS, signal);
  } catch (cause) {
    if (!isLimit(cause)) {
      throw cause;
    }
    ({ sample: from } = rows);
    sample = { sampleName: rows.sampleName };
    answer = await run(factsQuery(column, from), TIMEOUT_MS, signal);
  }
  const facts = factsOf(answer);
  let { profile } = facts;
  const missing: string[] = [];
  const known = (isWhole: boolean): ColumnSummary => ({ profile, ...sample, missing, isWhole });
  yield known(false);
  const shape = shapeQuery(column, facts, from);
  if (shape !== undefined && profile.rows > 0) {
    const name =
      facts.low === undefined ? texts.profile.frequentValues : texts.profile.distributionName;
    const found = await inTime(() => run(shape, TIMEOUT_MS, signal), name, missing);
    profile = found ? shaped(facts, column.type, found) : profile;
    yield known(false);
  }
  const distinct = distinctQuery(column, from);
  if (distinct !== undefined) {
    const counted = () => run(distinct, DISTINCT_TIMEOUT_MS, signal);
    const found = await inTime(counted, texts.profile.distinctValues, missing);
    profile = found ? { ...profile, distinct: Number(found.rows[0]?.[0]) } : profile;
  }
  yield known(true);
}

/** Runs a query. If the query exceeds a limit, adds `name` to `missing` and returns `undefined`. */
async function inTime(
  run: () => Promise<Answer>,
  name: string,
  missing: string[],
): Promise<Answer | undefined> {
  try {
    return await run();
  } catch (cause) {
    if (aborted(cause) || !isLimit(cause)) {
      throw cause;
    }
    missing.push(name);
    return undefined;
  }
}

/** True if the query exceeded a time or memory limit; a query over fewer rows may succeed. */
function isLimit(cause: unknown): boolean {
  return cause instanceof SqlError && /timeout|limit|memory/i.test(cause.message);
}
