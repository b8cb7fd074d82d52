/** Forms for materialized views: refresh a time range, and change the refresh policy. */
import type { FieldSpec } from '../dialogs/FormField.js';
import {
  changeStatement,
  draftOf,
  rangeStatement,
  type PolicyDraft,
  type RefreshPolicy,
} from './refresh.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

/** The values that the user has typed, by field name. */
type Draft = Readonly<Record<string, string>>;

export interface StatementField extends FieldSpec {
  /** If set, the field is shown only if the named field has this value. */
  readonly only?: readonly [field: string, value: string];
}

/** Definition of a dialog that builds a SQL statement. */
export interface StatementForm {
  readonly title: string;
  readonly text?: string;
  readonly fields: readonly StatementField[];
  /** Initial values of the fields. */
  readonly draft: Draft;
  readonly statement: (draft: Draft) => string;
  readonly isComplete: (draft: Draft) => boolean;
  readonly act: string;
  /** Message shown after the statement has run. */
  readonly done: string;
}

export function rangeForm(view: string): StatementForm {
  const is = (text: string | undefined): boolean => (text ?? '').trim() !== '';
  return {
    title: texts.refreshForms.rangeTitle,
    text: texts.refreshForms.rangeHint,
    fields: [
      { name: 'from', label: texts.common.from, hint: texts.refreshForms.rangeTimeHint },
      { name: 'to', label: texts.common.to },
    ],
    draft: { from: '', to: '' },
    statement: ({ from = '', to = '' }) => rangeStatement(view, from, to),
    isComplete: ({ from, to }) => is(from) && is(to),
    act: texts.refreshForms.refreshRange,
    done: fill(texts.refreshForms.rangeStarted, { view }),
  };
}

const TRIGGERS = [
  ['immediate', texts.refreshForms.immediate],
  ['timer', texts.refreshForms.byTimer],
  ['manual', texts.refreshForms.byStatement],
] as const;

const UNITS = [
  ['m', texts.refreshForms.minutes],
  ['h', texts.refreshForms.hours],
  ['d', texts.refreshForms.days],
  ['w', texts.common.weeks],
  ['M', texts.common.months],
  ['y', texts.common.years],
] as const;

const PERIODS = [
  ['none', texts.refreshForms.allRows],
  ['bucket', texts.refreshForms.bucketsOnly],
  ['length', texts.refreshForms.periodsOnly],
] as const;

const ZONE_HINT = texts.refreshForms.zoneHint;
const OF_TIMER = ['trigger', 'timer'] as const;
const OF_LENGTH = ['period', 'length'] as const;

const REFRESH_FIELDS: readonly (StatementField & { readonly name: keyof PolicyDraft })[] = [
  { name: 'trigger', label: texts.refreshForms.refreshed, choices: TRIGGERS },
  { name: 'count', label: texts.refreshForms.every, isHalf: true, only: OF_TIMER },
  { name: 'unit', label: texts.common.unit, choices: UNITS, isHalf: true, only: OF_TIMER },
  {
    name: 'start',
    label: texts.refreshForms.firstRefresh,
    hint: texts.refreshForms.firstRefreshHint,
    only: OF_TIMER,
  },
  {
    name: 'zone',
    label: texts.refreshForms.timerZone,
    hint: ZONE_HINT,
    only: OF_TIMER,
  },
  { name: 'period', label: texts.refreshForms.includes, choices: PERIODS },
  {
    name: 'length',
    label: texts.refreshForms.periodLength,
    hint: texts.refreshForms.periodLengthHint,
    isHalf: true,
    only: OF_LENGTH,
  },
  {
    name: 'delay',
    label: texts.refreshForms.delay,
    hint: texts.refreshForms.delayHint,
    isHalf: true,
    only: OF_LENGTH,
  },
  { name: 'periodZone', label: texts.refreshForms.periodZone, hint: ZONE_HINT, only: OF_LENGTH },
];

export function changeForm(view: string, policy: RefreshPolicy | undefined): StatementForm {
  const first = draftOf(policy);
  return {
    title: texts.refreshForms.policyTitle,
    fields: REFRESH_FIELDS,
    draft: { ...first },
    statement: (draft) => changeStatement(view, { ...first, ...draft }),
    isComplete: ({ trigger, count = '' }) => trigger !== 'timer' || count.trim() !== '',
    act: texts.refreshForms.changePolicy,
    done: fill(texts.refreshForms.policyChanged, { view }),
  };
}
