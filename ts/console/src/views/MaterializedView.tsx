/** Shows a materialized view: its refresh policy and its actions. */
import { createMemo, createSignal, Show, type JSX } from 'solid-js';
import { duration, grouped, timestampText, rowsText } from '../model/format.js';
import { confirmed } from '../page/questions.js';
import { changeForm, rangeForm, type StatementForm } from './forms.js';
import type { MaterializedFacts } from '../model/views.js';
import { Actions, dropAction, Facts, jobFacts, type Fact, type PaneProps } from './pane.js';
import {
  definitionOf,
  nextTick,
  periodText,
  policyText,
  refreshStatement,
  type Definition,
  type RefreshPolicy,
} from './refresh.js';
import { StatementDialog } from './StatementDialog.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

type Props = PaneProps<MaterializedFacts>;

export function MaterializedView(props: Props): JSX.Element {
  const definition = createMemo(() => definitionOf(props.statement ?? ''));
  const [form, setForm] = createSignal<StatementForm>();
  const refreshing = {
    permission: 'REFRESH MATERIALIZED VIEW',
    verb: texts.materializedViews.toRefresh,
  } as const;
  const changing = {
    permission: 'ALTER MATERIALIZED VIEW',
    verb: texts.materializedViews.toChange,
  } as const;
  const actions = [
    { ...refreshing, label: texts.common.refresh, icon: 'refresh', run: () => void refresh(props) },
    {
      ...refreshing,
      label: texts.materializedViews.refreshFullyAction,
      run: () => void refreshFully(props),
    },
    {
      ...refreshing,
      label: texts.materializedViews.refreshRangeAction,
      run: () => setForm(rangeForm(props.name)),
    },
    {
      ...changing,
      label: texts.materializedViews.changePolicyAction,
      run: () => setForm(changeForm(props.name, definition()?.policy)),
    },
    dropAction(props, 'DROP MATERIALIZED VIEW'),
  ] as const;
  return (
    <>
      <Actions
        session={props.session}
        name={props.name}
        actions={actions}
        failure={props.failure}
      />
      <Show when={form()} keyed>
        {(shown) => (
          <StatementDialog
            form={shown}
            name={props.name}
            attempt={props.attempt}
            onClose={() => setForm(undefined)}
          />
        )}
      </Show>
      <Facts base={props.view.base} facts={factsOf(props, definition())} />
    </>
  );
}

async function refresh({ name, run }: Props): Promise<void> {
  await run(refreshStatement(name), fill(texts.materializedViews.beingRefreshed, { name }));
}

async function refreshFully(props: Props): Promise<void> {
  const { session, name, view, run, job } = props;
  const rows = session.schema.entryOf(view.base)?.rows;
  const size = rows === undefined ? texts.materializedViews.allRows : rowsText(rows);
  const last =
    job === undefined || job.runs === 0
      ? ''
      : fill(texts.materializedViews.lastRefreshTook, { duration: duration(job.lastMs) });
  const statement = refreshStatement(name, 'FULL');
  const isSure = await confirmed({
    title: fill(texts.materializedViews.refreshFullyQuestion, { name }),
    text: fill(texts.materializedViews.refreshFullyConsequences, {
      rows: size,
      table:
        view.base === undefined ? '' : fill(texts.materializedViews.ofTable, { table: view.base }),
      last,
    }),
    statement,
    cancel: texts.common.cancel,
    destroy: texts.materializedViews.refreshFully,
  });
  if (isSure) {
    await run(statement, fill(texts.materializedViews.beingFullyRefreshed, { name }));
  }
}

function factsOf({ view, job }: Props, definition: Definition | undefined): Fact[] {
  const policy = definition?.policy;
  const tick = policy && tickOf(policy, view);
  const number = (value: number | undefined): string =>
    value === undefined ? '–' : grouped(String(value));
  const facts: (Fact | false | undefined)[] = [
    {
      name: texts.common.refresh,
      text: policy ? policyText(policy) : view.refresh,
      width: 'broad',
    },
    tick !== undefined && {
      name: texts.materializedViews.nextRefreshUtc,
      text: timestampText(new Date(tick).toISOString()),
    },
    policy?.period && { name: texts.materializedViews.periods, text: periodText(policy.period) },
    {
      name: texts.materializedViews.includesTransaction,
      text: fill(texts.common.countOfAll, {
        count: number(view.position),
        all: number(view.basePosition),
      }),
    },
    { name: texts.materializedViews.lastRefreshUtc, text: timestampText(view.finishedAt) },
    job && { name: texts.common.duration, text: job.runs === 0 ? '–' : duration(job.lastMs) },
    job && { name: texts.common.refreshesSinceStart, text: number(job.runs) },
    ...jobFacts(job, view.reason),
  ];
  return facts.filter((fact) => typeof fact === 'object');
}

/** Returns the next tick of a view's timer, based on the server's clock. */
function tickOf(
  { every, start, zone }: RefreshPolicy,
  view: MaterializedFacts,
): number | undefined {
  const from = start ?? view.timerStart;
  const isKnown = every !== undefined && from !== undefined && view.reportedAt !== undefined;
  return isKnown ? nextTick(every, Date.parse(from), Date.parse(view.reportedAt), zone) : undefined;
}
