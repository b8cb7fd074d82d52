/** What the server tells of views that follow a base, and how fresh they are, in words. */
import { numberOf, textOf, type RowRecord } from '../api/cells.js';
import { grouped } from './format.js';

interface CommonFacts {
  /** Nothing where the base is not for the asker to know. */
  readonly base: string | undefined;
  /** Why it does not follow its base any more. */
  readonly reason: string | undefined;
  /** ISO, UTC, of the server's clock: when it answered. */
  readonly askedAt: string | undefined;
  /** The transaction of the base that it shows; nothing before it is filled. */
  readonly position: number | undefined;
  /** At most so many transactions of the base are missing. */
  readonly behind: number;
  /** Since the last refresh ended. */
  readonly ageMs: number | undefined;
}

export interface MaterializedFacts extends CommonFacts {
  readonly form: 'materialized';
  readonly refresh: 'immediate' | 'timer' | 'manual';
  readonly status: 'valid' | 'refreshing' | 'invalid';
  readonly finishedAt: string | undefined;
  /** When a timer began to tick. */
  readonly timerStart: string | undefined;
  /** The last transaction that changed its base. */
  readonly basePosition: number | undefined;
}

export interface LiveFacts extends CommonFacts {
  readonly form: 'live';
  readonly status: 'active' | 'seeding' | 'invalid';
  /** Whether it stays as it is until it is resumed. */
  readonly isSuspended: boolean;
}

/** What is known of a view that follows a base. */
export type ViewFacts = MaterializedFacts | LiveFacts;

/** How a view fares. */
interface Freshness {
  readonly kind:
    'invalid' | 'suspended' | 'seeding' | 'refreshing' | 'empty' | 'behind' | 'current';
  /** Whether it should have been refreshed by now. */
  readonly isLate: boolean;
}

/** Views that follow each change rest between two refreshes; so long is no delay. */
const USUAL_REST_MS = 10_000;

/** What the lists of views tell in a row that also has `asked_at`. */
export function viewFacts(cell: RowRecord): ViewFacts | undefined {
  if (cell('refresh_type') !== null) {
    return materializedFacts(cell);
  }
  return cell('live_status') === null ? undefined : liveFacts(cell);
}

function materializedFacts(cell: RowRecord): MaterializedFacts {
  const [finishedAt, askedAt] = [
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
    askedAt,
    timerStart: textOf(cell('timer_start')),
    position,
    basePosition,
    behind: Math.max(0, (basePosition ?? 0) - (position ?? 0)),
    ageMs:
      finishedAt === undefined || askedAt === undefined
        ? undefined
        : Math.max(0, Date.parse(askedAt) - Date.parse(finishedAt)),
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
    askedAt: textOf(cell('asked_at')),
    position: numberOf(cell('last_processed_seqtxn')),
    behind: Math.max(0, numberOf(cell('lag_seqtxn')) ?? 0),
    ageMs: ageMicros === undefined ? undefined : ageMicros / 1000,
  };
}

export function freshnessOf(view: ViewFacts): Freshness {
  const followsEach = view.form === 'live' || view.refresh === 'immediate';
  const isLate = followsEach && (view.ageMs ?? Infinity) > USUAL_REST_MS;
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

/** What is shown beside a view; nothing where it shows all there is. */
export const STATE_WORDS: Readonly<Record<Freshness['kind'], string>> = {
  invalid: 'invalid',
  suspended: 'suspended',
  seeding: 'seeding',
  refreshing: 'refreshing',
  empty: 'not filled',
  behind: 'behind',
  current: '',
};

/** Its state in words, without its lag. */
export function stateText(view: ViewFacts): string {
  switch (freshnessOf(view).kind) {
    case 'invalid':
      return `Invalid: ${view.reason ?? 'the server does not say why'}`;
    case 'suspended':
      return 'Suspended';
    case 'seeding':
      return 'Seeding';
    case 'refreshing':
      return 'Refreshing';
    case 'empty':
      return 'Valid, not filled yet';
    case 'behind':
    case 'current':
      return view.form === 'live' ? 'Active' : 'Valid';
  }
}

/** How far it is behind its base, in words; nothing before there is anything to compare. */
export function lagText(view: ViewFacts): string | undefined {
  const { kind } = freshnessOf(view);
  if (kind === 'empty' || kind === 'seeding' || view.position === undefined) {
    return undefined;
  }
  return view.behind === 0 ? 'none' : `up to ${transactions(view.behind)}`;
}

/** How a view fares in one sentence. */
export function freshnessText(view: ViewFacts): string {
  const { kind } = freshnessOf(view);
  const { behind, ageMs } = view;
  const when = ageMs === undefined ? 'never refreshed' : `refreshed ${ageText(ageMs)} ago`;
  const lag = behind === 0 ? 'shows all of its base' : `behind by up to ${transactions(behind)}`;
  const isCounted = ['behind', 'current', 'suspended'].includes(kind);
  return isCounted && view.position !== undefined
    ? `${stateText(view)}, ${lag}; ${when}`
    : `${stateText(view)}; ${when}`;
}

function transactions(count: number): string {
  return `${grouped(String(count))} ${count === 1 ? 'transaction' : 'transactions'}`;
}

const AGES: readonly (readonly [number, string])[] = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'min'],
  [1000, 's'],
];

/** A span of time in its largest unit, rounded down: `5 min`. */
export function ageText(ms: number): string {
  const [size, unit] = AGES.find(([size]) => ms >= size) ?? [1000, 's'];
  return `${grouped(String(Math.floor(ms / size)))} ${unit}`;
}
