/**
 * Requests an aggregation of all rows from the server, for results that are only partly loaded. The
 * time step matches the width of the chart.
 */
import type { Row, Value } from '../api/answer.js';
import { query } from '../api/client.js';
import { Result } from '../model/result.js';
import { extentQuery, sampledQuery, type Sampling } from '../sql/ranges.js';
import type { CandleColumns } from './candle-columns.js';
import { CHOSEN_CANDLE_PX } from './candles.js';
import type { Range } from './decimate.js';
import { milliseconds, type ChartPlan } from './model.js';

export interface SampleRequest {
  readonly plan: ChartPlan;
  /** Indexes of the drawn columns. */
  readonly values: readonly number[];
  readonly candles: CandleColumns | undefined;
  /** Width of the chart in pixels. */
  readonly width: number;
}

const MAX_ROWS = 100_000;
const MIN_STEPS = 60;

/**
 * Returns the aggregated rows, with the columns of `result`. Returns `undefined` if the rows do not
 * span a time range.
 */
export async function sampled(
  result: Result,
  request: SampleRequest,
  range: Range | undefined,
  signal: AbortSignal,
): Promise<Result | undefined> {
  const name = (column: number): string => result.columns[column]?.name ?? '';
  const { plan, candles, width } = request;
  const time = name(plan.x);
  const extent = range ?? (await extentOf(result.statement, time, signal));
  if (!extent || !(extent.to > extent.from)) {
    return undefined;
  }
  const sampledColumns = columnsOf(request);
  const steps = Math.max(MIN_STEPS, candles ? width / CHOSEN_CANDLE_PX : width / 2);
  const sample = {
    time,
    key: plan.key === undefined ? undefined : name(plan.key),
    columns: sampledColumns.map(({ column, by }) => ({ name: name(column), by })),
    step: (extent.to - extent.from) / steps,
  };
  const statement = sampledQuery(result.statement, sample, range);
  const { rows } = await query(statement, { maxRows: MAX_ROWS, signal });
  const { columns, timestamp } = result;
  const picture = new Result({ query: result.statement, columns, timestamp }, result.statement);
  picture.append(
    rows.flatMap((row) => arranged(row, plan, sampledColumns, columns.length, sample.step / 2)),
  );
  picture.total = picture.rows.length;
  return picture;
}

async function extentOf(
  statement: string,
  time: string,
  signal: AbortSignal,
): Promise<Range | undefined> {
  const [row] = (await query(extentQuery(statement, time), { signal })).rows;
  const [from, to] = [milliseconds(row?.[0] ?? null), milliseconds(row?.[1] ?? null)];
  return from === undefined || to === undefined ? undefined : { from, to };
}

interface SampledColumn {
  readonly column: number;
  readonly by: Sampling;
}

function columnsOf({ values, candles }: SampleRequest): SampledColumn[] {
  if (!candles) {
    return values.map((column) => ({ column, by: 'ends' }));
  }
  const { open, high, low, close, volume } = candles;
  return [
    { column: open, by: 'first' },
    { column: high, by: 'max' },
    { column: low, by: 'min' },
    { column: close, by: 'last' },
    ...(volume === undefined ? [] : [{ column: volume, by: 'sum' } as const]),
  ];
}

/**
 * Converts a row of the response to the result's columns. A row that contains both ends of a time
 * step becomes two rows.
 */
function arranged(
  row: Row,
  { x, key }: ChartPlan,
  sampledColumns: readonly SampledColumn[],
  count: number,
  half: number,
): Row[] {
  const empty = (time: Value): Value[] => {
    const values = Array<Value>(count).fill(null);
    values[x] = time;
    if (key !== undefined) {
      values[key] = row[1] ?? null;
    }
    return values;
  };
  const time = row[0] ?? null;
  const [first, second] = [empty(time), empty(later(time, half))];
  let at = key === undefined ? 1 : 2;
  for (const { column, by } of sampledColumns) {
    first[column] = row[at] ?? null;
    second[column] = row[at + 1] ?? null;
    at += by === 'ends' ? 2 : 1;
  }
  return sampledColumns.some(({ by }) => by === 'ends') ? [first, second] : [first];
}

function later(time: Value, by: number): Value {
  const at = milliseconds(time);
  return at === undefined ? null : new Date(at + by).toISOString();
}
