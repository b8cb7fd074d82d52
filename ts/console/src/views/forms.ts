/** Forms for materialized views: refresh of a time range, change of the refresh policy. */
import type { FieldSpec } from '../dialogs/FormField.js';
import {
  changeStatement,
  draftOf,
  rangeStatement,
  type PolicyDraft,
  type RefreshPolicy,
} from './refresh.js';

/** Typed values by field name. */
type Draft = Readonly<Record<string, string>>;

export interface StatementField extends FieldSpec {
  /** Shows the field only if the named field has this value. */
  readonly only?: readonly [field: string, value: string];
}

/** A dialog that builds a statement. */
export interface StatementForm {
  readonly title: string;
  readonly text?: string;
  readonly fields: readonly StatementField[];
  /** Initial values. */
  readonly draft: Draft;
  readonly statement: (draft: Draft) => string;
  readonly isComplete: (draft: Draft) => boolean;
  readonly act: string;
  /** Message after the statement has run. */
  readonly done: string;
}

export function rangeForm(view: string): StatementForm {
  const is = (text: string | undefined): boolean => (text ?? '').trim() !== '';
  return {
    title: 'Refresh range of',
    text:
      'The buckets between the two times are recomputed, even if their base ' +
      'table has not changed.',
    fields: [
      { name: 'from', label: 'From', hint: 'UTC, such as 2026-03-02 or 2026-03-02T09:00:00Z' },
      { name: 'to', label: 'To' },
    ],
    draft: { from: '', to: '' },
    statement: ({ from = '', to = '' }) => rangeStatement(view, from, to),
    isComplete: ({ from, to }) => is(from) && is(to),
    act: 'Refresh range',
    done: `A range of ${view} is being refreshed`,
  };
}

const TRIGGERS = [
  ['immediate', 'after each change of the base table'],
  ['timer', 'by timer'],
  ['manual', 'only by a REFRESH statement'],
] as const;

const UNITS = [
  ['m', 'minutes'],
  ['h', 'hours'],
  ['d', 'days'],
  ['w', 'weeks'],
  ['M', 'months'],
  ['y', 'years'],
] as const;

const PERIODS = [
  ['none', 'all rows of the base table'],
  ['bucket', 'completed buckets only'],
  ['length', 'completed periods only'],
] as const;

const ZONE_HINT = 'such as Europe/Berlin; UTC if empty';
const OF_TIMER = ['trigger', 'timer'] as const;
const OF_LENGTH = ['period', 'length'] as const;

const REFRESH_FIELDS: readonly (StatementField & { readonly name: keyof PolicyDraft })[] = [
  { name: 'trigger', label: 'Refreshed', choices: TRIGGERS },
  { name: 'count', label: 'Every', isHalf: true, only: OF_TIMER },
  { name: 'unit', label: 'Unit', choices: UNITS, isHalf: true, only: OF_TIMER },
  {
    name: 'start',
    label: 'First refresh, if not now',
    hint: 'UTC, such as 2026-03-02T09:00:00Z',
    only: OF_TIMER,
  },
  {
    name: 'zone',
    label: 'Time zone for days and longer intervals',
    hint: ZONE_HINT,
    only: OF_TIMER,
  },
  { name: 'period', label: 'Includes', choices: PERIODS },
  {
    name: 'length',
    label: 'Period length',
    hint: 'such as 1h or 1d',
    isHalf: true,
    only: OF_LENGTH,
  },
  {
    name: 'delay',
    label: 'Delay after its end',
    hint: 'such as 10m; no delay if empty',
    isHalf: true,
    only: OF_LENGTH,
  },
  { name: 'periodZone', label: 'Time zone for periods', hint: ZONE_HINT, only: OF_LENGTH },
];

export function changeForm(view: string, policy: RefreshPolicy | undefined): StatementForm {
  const first = draftOf(policy);
  return {
    title: 'Change refresh policy of',
    fields: REFRESH_FIELDS,
    draft: { ...first },
    statement: (draft) => changeStatement(view, { ...first, ...draft }),
    isComplete: ({ trigger, count = '' }) => trigger !== 'timer' || count.trim() !== '',
    act: 'Change refresh policy',
    done: `The refresh policy of ${view} was changed`,
  };
}
