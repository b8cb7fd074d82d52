/** What the server tells of a materialized view, and how fresh it is, in words. */
import type { Row } from '../api/answer.js';
import { numberOf, reader, textOf, type Answer } from '../api/cells.js';
import { grouped } from '../model/format.js';

export interface MaterializedFacts {
  readonly refresh: 'immediate' | 'timer' | 'manual';
  /** Nothing where the base is not for the asker to know. */
  readonly base: string | undefined;
  readonly status: 'valid' | 'refreshing' | 'invalid';
  /** Why it does not follow its base any more. */
  readonly reason: string | undefined;
  /** ISO, UTC, of the server's clock like the others. */
  readonly finishedAt: string | undefined;
  /** When the server answered. */
  readonly askedAt: string | undefined;
  /** When a timer began to tick. */
  readonly timerStart: string | undefined;
  /** The transaction of the base that it shows; nothing before it is filled. */
  readonly position: number | undefined;
  /** The last transaction that changed its base. */
  readonly basePosition: number | undefined;
}

/** How far a view is behind its base. */
export interface Freshness {
  readonly kind: 'invalid' | 'refreshing' | 'empty' | 'behind' | 'current';
  /** At most so many transactions are missing. */
  readonly behind: number;
  /** Since the last refresh ended. */
  readonly ageMs: number | undefined;
  /** Whether it should have been refreshed by now. */
  readonly isLate: boolean;
}

/** Views that follow each change rest between two refreshes; so long is no delay. */
const USUAL_REST_MS = 10_000;

/** Reads what `materialized_views()` tells from a row that also has `asked_at`. */
export function materializedReader(answer: Answer): (row: Row) => MaterializedFacts | undefined {
  const refresh = reader(answer, 'refresh_type');
  const base = reader(answer, 'base_table_name');
  const status = reader(answer, 'view_status');
  const reason = reader(answer, 'invalidation_reason');
  const finishedAt = reader(answer, 'last_refresh_finish_timestamp');
  const askedAt = reader(answer, 'asked_at');
  const timerStart = reader(answer, 'timer_start');
  const position = reader(answer, 'refresh_base_table_txn');
  const basePosition = reader(answer, 'base_table_txn');
  return (row) =>
    refresh(row) === null
      ? undefined
      : {
          refresh: String(refresh(row)) as MaterializedFacts['refresh'],
          base: textOf(base(row)),
          status: String(status(row)) as MaterializedFacts['status'],
          reason: textOf(reason(row)),
          finishedAt: textOf(finishedAt(row)),
          askedAt: textOf(askedAt(row)),
          timerStart: textOf(timerStart(row)),
          position: numberOf(position(row)),
          basePosition: numberOf(basePosition(row)),
        };
}

export function freshnessOf(view: MaterializedFacts): Freshness {
  const { position, basePosition, finishedAt, askedAt } = view;
  const behind = Math.max(0, (basePosition ?? 0) - (position ?? 0));
  const ageMs =
    finishedAt === undefined || askedAt === undefined
      ? undefined
      : Math.max(0, Date.parse(askedAt) - Date.parse(finishedAt));
  const isLate = view.refresh === 'immediate' && (ageMs ?? Infinity) > USUAL_REST_MS;
  const kind = kindOf(view, behind, isLate);
  return { kind, behind, ageMs, isLate: isLate && (kind === 'behind' || kind === 'empty') };
}

function kindOf(view: MaterializedFacts, behind: number, isLate: boolean): Freshness['kind'] {
  if (view.status !== 'valid') {
    return view.status;
  }
  if (view.position === undefined) {
    return 'empty';
  }
  return behind > 0 && (view.refresh !== 'immediate' || isLate) ? 'behind' : 'current';
}

/** What is shown beside a view; nothing where it shows all there is. */
export const STATE_WORDS: Readonly<Record<Freshness['kind'], string>> = {
  invalid: 'invalid',
  refreshing: 'refreshing',
  empty: 'not filled',
  behind: 'behind',
  current: '',
};

/** Its state in words, without its lag. */
export function stateText(view: MaterializedFacts): string {
  switch (freshnessOf(view).kind) {
    case 'invalid':
      return `Invalid: ${view.reason ?? 'the server does not say why'}`;
    case 'refreshing':
      return 'Refreshing';
    case 'empty':
      return 'Valid, not filled yet';
    case 'behind':
    case 'current':
      return 'Valid';
  }
}

/** How a view fares in one sentence. */
export function freshnessText(view: MaterializedFacts): string {
  const { kind, behind, ageMs } = freshnessOf(view);
  const when = ageMs === undefined ? 'never refreshed' : `refreshed ${ageText(ageMs)} ago`;
  const lag = behind === 0 ? 'shows all of its base' : `behind by up to ${transactions(behind)}`;
  const isFollowing = kind === 'behind' || kind === 'current';
  return isFollowing ? `Valid, ${lag}; ${when}` : `${stateText(view)}; ${when}`;
}

export function transactions(count: number): string {
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
