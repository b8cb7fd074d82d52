/** Describes the state and freshness of materialized and live views in words. */
import { numberOf, textOf, type RowRecord } from '../api/cells.js';
import { countText, grouped } from './format.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

interface CommonFacts {
  /** Name of the base table, or `undefined` if the user may not see this table. */
  readonly base: string | undefined;
  /** Reason that the view no longer follows its base table. */
  readonly reason: string | undefined;
  /** Server time of the response, as an ISO timestamp in UTC. */
  readonly reportedAt: string | undefined;
  /**
   * Last transaction of the base table that the view includes. `undefined` until the view is first
   * filled.
   */
  readonly position: number | undefined;
  /** Upper bound on the number of base table transactions that the view does not include yet. */
  readonly behind: number;
  /** Time since the end of the last refresh, in milliseconds. */
  readonly ageMs: number | undefined;
}

export interface MaterializedFacts extends CommonFacts {
  readonly form: 'materialized';
  readonly refresh: 'immediate' | 'timer' | 'manual';
  readonly status: 'valid' | 'refreshing' | 'invalid';
  readonly finishedAt: string | undefined;
  /** Start time of the refresh timer. */
  readonly timerStart: string | undefined;
  /** Last transaction of the base table. */
  readonly basePosition: number | undefined;
}

export interface LiveFacts extends CommonFacts {
  readonly form: 'live';
  readonly status: 'active' | 'seeding' | 'invalid';
  /** True if refreshes are suspended until the view is resumed. */
  readonly isSuspended: boolean;
}

/** State of a materialized or live view. */
export type ViewFacts = MaterializedFacts | LiveFacts;

interface Freshness {
  readonly kind:
    'invalid' | 'suspended' | 'seeding' | 'refreshing' | 'empty' | 'behind' | 'current';
  /** True if a refresh is overdue. */
  readonly isLate: boolean;
}

/**
 * A lag of up to this duration is normal. Even views that refresh after every change pause between
 * refreshes.
 */
const USUAL_LAG_MS = 10_000;

/**
 * Parses a row of the server's lists of views. Such a row also contains `asked_at`, the server
 * time.
 */
export function viewFacts(cell: RowRecord): ViewFacts | undefined {
  if (cell('refresh_type') !== null) {
    return materializedFacts(cell);
  }
  return cell('live_status') === null ? undefined : liveFacts(cell);
}

function materializedFacts(cell: RowRecord): MaterializedFacts {
  const [finishedAt, reportedAt] = [
    textOf(cell('last_refresh_finish_timestamp')),
    textOf(cell('asked_at')),
  ];
  const [position, basePosition] = [
    numberOf(cell('refresh_base_table_txn')),
    numberOf(cell('base_table_txn')),
  ];
  return {
    form: 'materialized',
    refresh: String(cell('refresh_type')) as MaterializedFacts['refresh'],
    base: textOf(cell('base_table_name')),
    status: String(cell('view_status')) as MaterializedFacts['status'],
    reason: textOf(cell('invalidation_reason')),
    finishedAt,
    reportedAt,
    timerStart: textOf(cell('timer_start')),
    position,
    basePosition,
    behind: Math.max(0, (basePosition ?? 0) - (position ?? 0)),
    ageMs:
      finishedAt === undefined || reportedAt === undefined
        ? undefined
        : Math.max(0, Date.parse(reportedAt) - Date.parse(finishedAt)),
  };
}

function liveFacts(cell: RowRecord): LiveFacts {
  const ageMicros = numberOf(cell('lag_micros'));
  return {
    form: 'live',
    base: textOf(cell('live_base')),
    status: String(cell('live_status')) as LiveFacts['status'],
    reason: textOf(cell('live_reason')),
    isSuspended: cell('job_state') === 'paused',
    reportedAt: textOf(cell('asked_at')),
    position: numberOf(cell('last_processed_seqtxn')),
    behind: Math.max(0, numberOf(cell('lag_seqtxn')) ?? 0),
    ageMs: ageMicros === undefined ? undefined : ageMicros / 1000,
  };
}

export function freshnessOf(view: ViewFacts): Freshness {
  const followsEach = view.form === 'live' || view.refresh === 'immediate';
  const isLate = followsEach && (view.ageMs ?? Infinity) > USUAL_LAG_MS;
  const kind = kindOf(view, view.behind > 0 && (!followsEach || isLate));
  return { kind, isLate: isLate && (kind === 'behind' || kind === 'empty') };
}

function kindOf(view: ViewFacts, isBehind: boolean): Freshness['kind'] {
  const isFilled = view.position !== undefined;
  switch (view.status) {
    case 'invalid':
    case 'refreshing':
      return view.status;
    case 'seeding':
      return view.isSuspended ? 'suspended' : 'seeding';
    case 'active':
      return view.isSuspended ? 'suspended' : isBehind ? 'behind' : 'current';
    case 'valid':
      return !isFilled ? 'empty' : isBehind ? 'behind' : 'current';
  }
}

/** Label to show beside a view. The label is empty if the view is up to date. */
export const STATE_LABELS: Readonly<Record<Freshness['kind'], string>> = {
  invalid: texts.viewState.invalidBadge,
  suspended: texts.common.suspended,
  seeding: texts.viewState.seedingBadge,
  refreshing: texts.viewState.refreshingBadge,
  empty: texts.viewState.notFilled,
  behind: texts.viewState.behindBadge,
  current: '',
};

/** Describes the state of a view in words, without its lag. */
export function stateText(view: ViewFacts): string {
  switch (freshnessOf(view).kind) {
    case 'invalid':
      return fill(texts.viewState.invalid, { reason: view.reason ?? texts.common.noReasonGiven });
    case 'suspended':
      return texts.viewState.suspended;
    case 'seeding':
      return texts.viewState.seeding;
    case 'refreshing':
      return texts.viewState.refreshing;
    case 'empty':
      return texts.viewState.validNotFilled;
    case 'behind':
    case 'current':
      return view.form === 'live' ? texts.viewState.active : texts.viewState.valid;
  }
}

/**
 * Describes the lag behind the base table in words. Returns `undefined` if the view is not filled
 * yet.
 */
export function lagText(view: ViewFacts): string | undefined {
  const { kind } = freshnessOf(view);
  if (kind === 'empty' || kind === 'seeding' || view.position === undefined) {
    return undefined;
  }
  return view.behind === 0
    ? texts.common.none
    : fill(texts.viewState.upTo, { transactions: transactions(view.behind) });
}

/** Describes the state, lag and last refresh of a view in one sentence. */
export function freshnessText(view: ViewFacts): string {
  const { kind } = freshnessOf(view);
  const { behind, ageMs } = view;
  const when =
    ageMs === undefined
      ? texts.viewState.neverRefreshed
      : fill(texts.viewState.refreshedAgo, { age: ageText(ageMs) });
  const lag =
    behind === 0
      ? texts.viewState.upToDate
      : fill(texts.viewState.behindBy, { transactions: transactions(behind) });
  const isCounted = ['behind', 'current', 'suspended'].includes(kind);
  return isCounted && view.position !== undefined
    ? `${stateText(view)}, ${lag}; ${when}`
    : `${stateText(view)}; ${when}`;
}

function transactions(count: number): string {
  return countText(count, texts.counts.transactions);
}

const AGES: readonly (readonly [number, string])[] = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'min'],
  [1000, 's'],
];

/** Formats a duration in its largest unit, rounded down: `5 min`. */
export function ageText(ms: number): string {
  const [size, unit] = AGES.find(([size]) => ms >= size) ?? [1000, 's'];
  return `${grouped(String(Math.floor(ms / size)))} ${unit}`;
}
