/** What the server tells of views that follow a base, and how fresh they are, in words. */
import type { Row } from '../api/answer.js';
import { numberOf, reader, textOf, type Answer } from '../api/cells.js';
import { grouped } from '../model/format.js';

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

/** Reads what the lists of views tell from a row that also has `asked_at`. */
export function viewReader(answer: Answer): (row: Row) => ViewFacts | undefined {
  const refresh = reader(answer, 'refresh_type');
  const materialized = materializedReader(answer);
  const status = reader(answer, 'live_status');
  const live = liveReader(answer);
  return (row) => {
    if (refresh(row) !== null) {
      return materialized(row);
    }
    return status(row) === null ? undefined : live(row);
  };
}

function materializedReader(answer: Answer): (row: Row) => MaterializedFacts {
  const refresh = reader(answer, 'refresh_type');
  const base = reader(answer, 'base_table_name');
  const status = reader(answer, 'view_status');
  const reason = reader(answer, 'invalidation_reason');
  const finished = reader(answer, 'last_refresh_finish_timestamp');
  const asked = reader(answer, 'asked_at');
  const timerStart = reader(answer, 'timer_start');
  const shown = reader(answer, 'refresh_base_table_txn');
  const last = reader(answer, 'base_table_txn');
  return (row) => {
    const [finishedAt, askedAt] = [textOf(finished(row)), textOf(asked(row))];
    const [position, basePosition] = [numberOf(shown(row)), numberOf(last(row))];
    return {
      form: 'materialized',
      refresh: String(refresh(row)) as MaterializedFacts['refresh'],
      base: textOf(base(row)),
      status: String(status(row)) as MaterializedFacts['status'],
      reason: textOf(reason(row)),
      finishedAt,
      askedAt,
      timerStart: textOf(timerStart(row)),
      position,
      basePosition,
      behind: Math.max(0, (basePosition ?? 0) - (position ?? 0)),
      ageMs:
        finishedAt === undefined || askedAt === undefined
          ? undefined
          : Math.max(0, Date.parse(askedAt) - Date.parse(finishedAt)),
    };
  };
}

function liveReader(answer: Answer): (row: Row) => LiveFacts {
  const base = reader(answer, 'live_base');
  const status = reader(answer, 'live_status');
  const reason = reader(answer, 'live_reason');
  const behind = reader(answer, 'lag_seqtxn');
  const age = reader(answer, 'lag_micros');
  const position = reader(answer, 'last_processed_seqtxn');
  const job = reader(answer, 'job_state');
  const asked = reader(answer, 'asked_at');
  return (row) => {
    const ageMicros = numberOf(age(row));
    return {
      form: 'live',
      base: textOf(base(row)),
      status: String(status(row)) as LiveFacts['status'],
      reason: textOf(reason(row)),
      isSuspended: job(row) === 'paused',
      askedAt: textOf(asked(row)),
      position: numberOf(position(row)),
      behind: Math.max(0, numberOf(behind(row)) ?? 0),
      ageMs: ageMicros === undefined ? undefined : ageMicros / 1000,
    };
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
