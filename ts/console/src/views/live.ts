/** Describes a live view in words: its clauses, its last repair and its problems. */
import { numberOf, recordsOf, textOf, type Answer } from '../api/cells.js';
import { timestampText, rowsText } from '../model/format.js';
import { literal, quoted } from '../sql/names.js';
import { createdView } from './definition.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

export interface LiveDefinition {
  /** The view's query. */
  readonly query: string;
  /** Value of the FLUSH EVERY clause, as written. */
  readonly flushEvery: string;
  /** Value of the IN MEMORY clause, as written. */
  readonly inMemory: string;
  /** Partition unit; `undefined` if the view uses the partitions of the base table. */
  readonly partitionBy: string | undefined;
  /** Start of the view's rows: NOW, BEGINNING or a timestamp. */
  readonly startFrom: string;
}

/** Parses the result of SHOW CREATE LIVE VIEW; `undefined` for any other statement. */
export function liveDefinitionOf(statement: string): LiveDefinition | undefined {
  const node = createdView(statement);
  if (!node?.live) {
    return undefined;
  }
  const { flush_every, in_memory, partition_by, start } = node.live;
  return {
    query: node.query_text,
    flushEvery: flush_every.text,
    inMemory: in_memory?.text ?? flush_every.text,
    partitionBy: partition_by?.text,
    startFrom: start.start === 'At' ? start.instant.text : start.start.toUpperCase(),
  };
}

/** Describes the time from which the view contains rows. */
export function startText({ startFrom }: LiveDefinition, bound: string | undefined): string {
  switch (startFrom) {
    case 'BEGINNING':
      return texts.liveViews.atBeginning;
    case 'NOW':
      return fill(texts.liveViews.whenCreated, {
        time:
          bound === undefined
            ? ''
            : fill(texts.liveViews.createdAt, { time: timestampText(bound) }),
      });
    default:
      return fill(texts.liveViews.timeUtc, { time: timestampText(bound ?? startFrom) });
  }
}

/** Columns of `live_views()` that do not concern freshness. */
export interface LiveProgress {
  /**
   * Lower bound of the view's timestamps, ISO in UTC; `undefined` if no row of the base table is
   * excluded.
   */
  readonly bound: string | undefined;
  /**
   * The last recomputation after late or changed rows; `undefined` if the view was never
   * recomputed.
   */
  readonly repair: Repair | undefined;
  /** Number of consecutive failures. */
  readonly failures: number;
  /** Memory used by the view's functions, in bytes. */
  readonly bytes: number | undefined;
}

interface Repair {
  readonly isUnderWay: boolean;
  /** First timestamp that is recomputed. */
  readonly from: string | undefined;
  /** Last timestamp that is recomputed; `undefined` if the range extends to the end of the data. */
  readonly to: string | undefined;
  /** Why the recomputed range could not be limited. */
  readonly denial: string | undefined;
  /** Number of rows that the recomputation wrote. */
  readonly rows: number;
}

export function liveQuestion(view: string): string {
  return (
    'SELECT view_lower_bound_timestamp, in_mem_bytes, o3_boundary_replay_rows, ' +
    'checkpoint_repair_in_progress, checkpoint_repair_correction_timestamp, ' +
    'checkpoint_repair_high_timestamp, checkpoint_repair_failures, ' +
    'checkpoint_repair_last_disposition, checkpoint_repair_last_denial ' +
    `FROM live_views() WHERE view_name = ${literal(view)}`
  );
}

/** Parses the row that `liveQuestion` selects. */
export function liveProgressOf(answer: Answer): LiveProgress | undefined {
  const [cell] = recordsOf(answer);
  if (!cell) {
    return undefined;
  }
  const text = (name: string): string | undefined => textOf(cell(name));
  const number = (name: string): number | undefined => numberOf(cell(name));
  const wasRepaired = text('checkpoint_repair_last_disposition') !== undefined;
  return {
    bound: text('view_lower_bound_timestamp'),
    failures: number('checkpoint_repair_failures') ?? 0,
    bytes: number('in_mem_bytes'),
    repair: wasRepaired
      ? {
          isUnderWay: cell('checkpoint_repair_in_progress') === true,
          from: text('checkpoint_repair_correction_timestamp'),
          to: text('checkpoint_repair_high_timestamp'),
          denial: text('checkpoint_repair_last_denial'),
          rows: number('o3_boundary_replay_rows') ?? 0,
        }
      : undefined,
  };
}

export function repairText(repair: Repair | undefined): string {
  if (!repair) {
    return texts.liveViews.noRepair;
  }
  const { from, to, rows, isUnderWay, denial } = repair;
  const begin =
    from === undefined
      ? texts.liveViews.fromBeginning
      : fill(texts.liveViews.fromTime, { time: timestampText(from) });
  const end =
    to === undefined
      ? texts.liveViews.toEnd
      : fill(texts.liveViews.toTime, { time: timestampText(to) });
  const why = denial === undefined ? '' : `: ${denial}`;
  const count = isUnderWay ? texts.liveViews.inProgress : rowsText(rows);
  return `${begin} ${end}, ${count}${why}`;
}

/**
 * Reasons for invalidation by their prefix. Each reason has a description of the change to the base
 * table and a remedy.
 */
const REASONS: Readonly<Record<string, readonly [what: string, remedy: string]>> = {
  'drop column operation': [texts.common.columnDropped, texts.liveViews.addColumn],
  'rename column operation': [texts.common.columnRenamed, texts.liveViews.renameBack],
  'column has a different type': [texts.liveViews.columnTypeChanged, texts.liveViews.restoreType],
  'rename table operation': [texts.liveViews.tableRenamed, texts.liveViews.renameBack],
  'the base table was renamed, and a different table': [
    texts.liveViews.tableRenamedAndReplaced,
    texts.liveViews.restoreNames,
  ],
  'drop table operation': [texts.liveViews.tableDropped, ''],
  'a different table has the base table': [texts.liveViews.tableDroppedAndReplaced, ''],
  'full refresh of the base': [texts.liveViews.baseRefreshed, ''],
};

const FOR_GOOD = texts.liveViews.createAgain;
const UNKNOWN = texts.liveViews.resumesOrCreateAgain;

/** Describes the change to the base table, its consequence, and the remedy. */
export function liveAdvice(reason: string | undefined): string {
  const means = texts.common.viewNoLongerFollows;
  const begin = Object.keys(REASONS).find((one) => reason?.startsWith(one)) ?? '';
  const [what = '', remedy] = REASONS[begin] ?? [];
  const next = remedy === undefined ? UNKNOWN : remedy === '' ? FOR_GOOD : remedy;
  return [what, means, next].filter((part) => part !== '').join(' ');
}

export function suspendStatement(view: string, isSuspended: boolean): string {
  return `ALTER LIVE VIEW ${quoted(view)} ${isSuspended ? 'SUSPEND' : 'RESUME'} WAL`;
}
