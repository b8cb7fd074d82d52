/** Profile of one column, requested from the server step by step while it is shown. */
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
  /** Describes which rows the profile covers, unless it covers all rows. */
  readonly sampleName?: string;
  /** Facts that could not be computed within the time limit. */
  readonly missing: readonly string[];
  readonly isWhole: boolean;
}

/** Time limit per query on the server. */
const TIMEOUT_MS = 10_000;
/** Shorter time limit for exact distinct counts, because they also use memory. */
const DISTINCT_TIMEOUT_MS = 4000;

type RunQuery = (statement: string, timeoutMs: number, signal: AbortSignal) => Promise<Answer>;

const runOnServer: RunQuery = async (statement, timeoutMs, signal) =>
  await query(statement, { timeoutMs, signal });

/** Yields the profile as it grows. Throws the server's error if the first query fails. */
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

/** The result; `undefined` if it exceeds a limit of the server or of the query. */
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

/** Whether the query exceeded a time or memory limit; a query over fewer rows may succeed. */
function isLimit(cause: unknown): boolean {
  return cause instanceof SqlError && /timeout|limit|memory/i.test(cause.message);
}
