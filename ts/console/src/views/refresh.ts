/** Parses, describes and changes the refresh policy of a materialized view. */
import type { RefreshPolicy as MaterialRefresh } from '../../../sql/index.js';
import { literal, quoted } from '../sql/names.js';
import { createdView } from './definition.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

/** A multiple of a SQL time unit: `10m`, `1d`, `1M`. */
interface Every {
  readonly count: number;
  readonly unit: string;
}

export interface RefreshPolicy {
  readonly trigger: 'immediate' | 'timer' | 'manual';
  /** Interval of the timer, if the view has one. */
  readonly every: Every | undefined;
  /** True if the view was created without initial rows. */
  readonly isDeferred: boolean;
  /** Start of the timer, as written in the statement. */
  readonly start: string | undefined;
  readonly zone: string | undefined;
  readonly period: RefreshPeriod | undefined;
}

type RefreshPeriod =
  | { readonly kind: 'bucket' }
  | {
      readonly kind: 'length';
      readonly length: string;
      readonly zone: string | undefined;
      readonly delay: string | undefined;
    };

export interface Definition {
  readonly policy: RefreshPolicy;
  /** The view's query. */
  readonly query: string;
}

/** Parses the result of SHOW CREATE MATERIALIZED VIEW; `undefined` for any other statement. */
export function definitionOf(statement: string): Definition | undefined {
  const node = createdView(statement);
  return node?.material
    ? { policy: policyOf(node.material.refresh), query: node.query_text }
    : undefined;
}

function policyOf(written: MaterialRefresh | null): RefreshPolicy {
  const trigger = written?.trigger;
  return {
    trigger: trigger ? TRIGGERS[trigger.trigger] : 'immediate',
    every: trigger?.trigger === 'Every' ? everyOf(trigger.interval.text) : undefined,
    isDeferred: written?.deferred ?? false,
    start: written?.start?.text,
    zone: written?.time_zone?.text,
    period: written?.period ? periodOf(written.period) : undefined,
  };
}

const TRIGGERS = { Immediate: 'immediate', Manual: 'manual', Every: 'timer' } as const;

function everyOf(interval: string): Every {
  return { count: Number.parseInt(interval, 10), unit: interval.slice(-1) };
}

function periodOf(period: NonNullable<MaterialRefresh['period']>): RefreshPeriod {
  if (period.period === 'SampleByInterval') {
    return { kind: 'bucket' };
  }
  const { length, time_zone: zone, delay } = period;
  return { kind: 'length', length: length.text, zone: zone?.text, delay: delay?.text };
}

/** Describes the trigger of a policy in words: `every 10 min`. */
export function policyText({ trigger, every, zone, isDeferred }: RefreshPolicy): string {
  const first = isDeferred ? texts.materializedViews.notFilled : '';
  switch (trigger) {
    case 'immediate':
      return fill(texts.materializedViews.immediate, { first });
    case 'timer':
      return fill(texts.materializedViews.timer, {
        interval: everyText(every),
        zone: zone === undefined ? '' : fill(texts.materializedViews.inZone, { zone }),
        first,
      });
    case 'manual':
      return fill(texts.materializedViews.manual, { first });
  }
}

export function periodText(period: RefreshPeriod): string {
  if (period.kind === 'bucket') {
    return texts.materializedViews.completedBuckets;
  }
  const { length, zone, delay } = period;
  const where = zone === undefined ? '' : fill(texts.materializedViews.inZone, { zone });
  const when =
    delay === undefined
      ? texts.materializedViews.whenComplete
      : fill(texts.materializedViews.afterItsEnd, { delay });
  return fill(texts.materializedViews.includesEach, { length, zone: where, when });
}

const UNIT_NAMES: Readonly<Record<string, string>> = {
  s: 's',
  m: 'min',
  h: 'h',
  d: 'd',
  w: texts.common.weeks,
  M: texts.common.months,
  y: texts.common.years,
};

function everyText(every: Every | undefined): string {
  return every === undefined ? '–' : `${every.count} ${UNIT_NAMES[every.unit] ?? every.unit}`;
}

const UNIT_MS: Readonly<Record<string, number>> = {
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};

/**
 * Returns the next tick of a timer in milliseconds since 1970. With a time zone, ticks follow the
 * zone's wall clock.
 */
export function nextTick(every: Every, startMs: number, nowMs: number, zone?: string): number {
  if (nowMs < startMs) {
    return startMs;
  }
  const start = startMs + offsetOf(zone, startMs);
  const now = nowMs + offsetOf(zone, nowMs);
  const tick = localTick(every, start, now);
  // The offset of the tick is looked up at an approximate UTC time. The result can differ only near
  // a clock change, and clocks change at night.
  return tick - offsetOf(zone, tick - offsetOf(zone, nowMs));
}

function localTick({ count, unit }: Every, start: number, now: number): number {
  const step = (UNIT_MS[unit] ?? 0) * count;
  if (step > 0) {
    return start + (Math.floor((now - start) / step) + 1) * step;
  }
  const months = count * (unit === 'y' ? 12 : 1);
  const passed = monthOf(now) - monthOf(start);
  let steps = Math.floor(passed / months);
  while (monthsLater(start, steps * months) <= now) {
    steps += 1;
  }
  return monthsLater(start, steps * months);
}

function monthOf(ms: number): number {
  const date = new Date(ms);
  return date.getUTCFullYear() * 12 + date.getUTCMonth();
}

/** Returns the same day in a later month, or that month's last day. */
function monthsLater(ms: number, months: number): number {
  const date = new Date(ms);
  const day = date.getUTCDate();
  date.setUTCDate(1);
  date.setUTCMonth(date.getUTCMonth() + months);
  const last = new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 0)).getUTCDate();
  date.setUTCDate(Math.min(day, last));
  return date.getTime();
}

/** Returns the zone's offset from UTC in milliseconds; 0 if the browser does not know the zone. */
function offsetOf(zone: string | undefined, ms: number): number {
  if (zone === undefined) {
    return 0;
  }
  try {
    const format = new Intl.DateTimeFormat('en', { timeZone: zone, timeZoneName: 'longOffset' });
    const name = format.formatToParts(ms).find(({ type }) => type === 'timeZoneName')?.value ?? '';
    const [, sign, hours, minutes] = /([+-])(\d\d):(\d\d)/.exec(name) ?? [];
    const size = (Number(hours ?? 0) * 60 + Number(minutes ?? 0)) * 60_000;
    return sign === '-' ? -size : size;
  } catch {
    return 0;
  }
}

/** Changes to the base table that invalidate a view, by the server's reason. */
const REASONS: Readonly<Record<string, readonly [what: string, isGone: boolean]>> = {
  'truncate operation': [texts.materializedViews.tableTruncated, false],
  'drop partition operation': [texts.materializedViews.partitionDropped, false],
  'drop column operation': [texts.common.columnDropped, true],
  'rename column operation': [texts.common.columnRenamed, true],
  'drop table operation': [texts.materializedViews.tableDropped, true],
  'rename table operation': [texts.materializedViews.tableRenamed, true],
};

/** Describes the change to the base table, its consequence, and the remedy. */
export function invalidAdvice(reason: string | undefined): string {
  const [what = '', isGone = false] = REASONS[reason ?? ''] ?? [];
  const means = texts.common.viewNoLongerFollows;
  const remedy = isGone
    ? texts.materializedViews.repairedByRefresh
    : texts.materializedViews.recomputedByRefresh;
  return [what, means, remedy].filter((part) => part !== '').join(' ');
}

/** The user's input in the refresh policy dialog, as typed. */
export interface PolicyDraft {
  readonly trigger: RefreshPolicy['trigger'];
  readonly count: string;
  readonly unit: string;
  readonly start: string;
  readonly zone: string;
  readonly period: 'none' | RefreshPeriod['kind'];
  readonly length: string;
  readonly periodZone: string;
  readonly delay: string;
}

export function draftOf(policy: RefreshPolicy | undefined): PolicyDraft {
  const period = policy?.period;
  const length = period?.kind === 'length' ? period : undefined;
  return {
    trigger: policy?.trigger ?? 'immediate',
    count: String(policy?.every?.count ?? 10),
    unit: policy?.every?.unit ?? 'm',
    start: policy?.start ?? '',
    zone: policy?.zone ?? '',
    period: period?.kind ?? 'none',
    length: length?.length ?? '1d',
    periodZone: length?.zone ?? '',
    delay: length?.delay ?? '',
  };
}

/** Builds the statement that changes a view's refresh policy. */
export function changeStatement(view: string, draft: PolicyDraft): string {
  const clauses = [`ALTER MATERIALIZED VIEW ${quoted(view)} SET REFRESH`, triggerClause(draft)];
  if (draft.period === 'bucket') {
    clauses.push('PERIOD (SAMPLE BY INTERVAL)');
  } else if (draft.period === 'length') {
    const { length, periodZone, delay } = draft;
    const inner = [`LENGTH ${length.trim()}`, ...textClause('TIME ZONE', periodZone)];
    if (delay.trim() !== '') {
      inner.push(`DELAY ${delay.trim()}`);
    }
    clauses.push(`PERIOD (${inner.join(' ')})`);
  }
  return clauses.join(' ');
}

function triggerClause({ trigger, count, unit, start, zone }: PolicyDraft): string {
  if (trigger !== 'timer') {
    return trigger.toUpperCase();
  }
  const every = `EVERY ${count.trim()}${unit}`;
  return [every, ...textClause('START', start), ...textClause('TIME ZONE', zone)].join(' ');
}

function textClause(word: string, text: string): string[] {
  return text.trim() === '' ? [] : [`${word} ${literal(text.trim())}`];
}

export function refreshStatement(view: string, how: '' | 'FULL' = ''): string {
  return `REFRESH MATERIALIZED VIEW ${quoted(view)}${how === '' ? '' : ` ${how}`}`;
}

export function rangeStatement(view: string, from: string, to: string): string {
  return `${refreshStatement(view)} RANGE FROM ${literal(from.trim())} TO ${literal(to.trim())}`;
}
