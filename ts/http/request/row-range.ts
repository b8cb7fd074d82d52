/**
 * The `limit` parameter, which has two meanings. `/exec` counts from 1 and includes both ends;
 * `/exp` counts from 0 and excludes the end. An invalid value never causes an error.
 */

/** Members of `ExecuteOptions`; absent members mean no limit. */
export interface RowRange {
  readonly skip?: number;
  readonly take?: number;
  readonly last?: number;
}

const ALL: RowRange = {};

/** `2` means rows 1–2, `2,4` rows 2–4; values below 1 become 1, and a reversed pair is one row. */
export function execRange(limit: string | undefined): RowRange {
  if (limit === undefined) {
    return ALL;
  }
  const bounds = limit.split(',');
  const numbers = bounds.map(parseInteger);
  const [first, second] = numbers;
  if (first === undefined || first === null || second === null || bounds.length > 2) {
    return ALL;
  }
  if (second === undefined) {
    return { take: Math.max(first, 1) };
  }
  const low = Math.max(first, 1);
  const high = Math.max(second, low);
  return { skip: low - 1, take: high - low + 1 };
}

/**
 * `2` means the first two rows, `1,3` rows 1 and 2, `-2` the last two; `-3,-1` counts from the end.
 */
export function expRange(limit: string | undefined): RowRange {
  const bounds = (limit ?? '').split(',');
  const low = parseInteger(bounds[0] ?? '');
  if (low === null) {
    return ALL;
  }
  if (bounds.length === 1) {
    return low < 0 ? { last: -low } : { take: low };
  }
  const high = bounds.length === 2 ? parseInteger(bounds[1] ?? '') : null;
  if (low < 0 && high !== null && high < 0) {
    return { last: -low, take: Math.max(high - low, 0) };
  }
  const skip = Math.max(low, 0);
  return high === null ? { skip } : { skip, take: Math.max(high - skip, 0) };
}

function parseInteger(text: string): number | null {
  if (!/^-?\d+$/.test(text)) {
    return null;
  }
  const bound = Number.MAX_SAFE_INTEGER;
  return Math.min(Math.max(Number(text), -bound), bound);
}
