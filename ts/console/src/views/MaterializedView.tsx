/** A materialized view: its refresh policy and its actions. */
import { createMemo, createSignal, Show, type JSX } from 'solid-js';
import { duration, grouped, instantText } from '../model/format.js';
import { confirmed } from '../page/questions.js';
import { changeForm, rangeForm, type StatementForm } from './forms.js';
import type { MaterializedFacts } from '../model/views.js';
import { Actions, dropAction, Facts, jobFacts, type Fact, type PaneProps } from './parts.js';
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

type Props = PaneProps<MaterializedFacts>;

export function MaterializedView(props: Props): JSX.Element {
  const definition = createMemo(() => definitionOf(props.statement ?? ''));
  const [form, setForm] = createSignal<StatementForm>();
  const refreshing = { permission: 'REFRESH MATERIALIZED VIEW', verb: 'refresh' } as const;
  const changing = { permission: 'ALTER MATERIALIZED VIEW', verb: 'change' } as const;
  const actions = [
    { ...refreshing, label: 'Refresh', icon: 'refresh', run: () => void refresh(props) },
    { ...refreshing, label: 'Refresh fully…', run: () => void refreshFully(props) },
    { ...refreshing, label: 'Refresh range…', run: () => setForm(rangeForm(props.name)) },
    {
      ...changing,
      label: 'Change refresh policy…',
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
  await run(refreshStatement(name), `${name} is being refreshed`);
}

async function refreshFully(props: Props): Promise<void> {
  const { session, name, view, run, job } = props;
  const rows = session.schema.entryOf(view.base)?.rows;
  const size = rows === undefined ? 'all rows of its base table' : `${grouped(String(rows))} rows`;
  const last =
    job === undefined || job.runs === 0 ? '' : ` The last refresh took ${duration(job.lastMs)}.`;
  const statement = refreshStatement(name, 'FULL');
  const isSure = await confirmed({
    title: `Refresh ${name} fully?`,
    text:
      `This reads ${size}${view.base === undefined ? '' : ` of ${view.base}`}.${last} The ` +
      'view keeps its rows until the refresh is done. Rows whose base table rows no longer exist ' +
      'are lost.',
    statement,
    keep: 'Cancel',
    destroy: 'Refresh fully',
  });
  if (isSure) {
    await run(statement, `${name} is being fully refreshed`);
  }
}

function factsOf({ view, job }: Props, definition: Definition | undefined): Fact[] {
  const policy = definition?.policy;
  const tick = policy && tickOf(policy, view);
  const number = (value: number | undefined): string =>
    value === undefined ? '–' : grouped(String(value));
  const facts: (Fact | false | undefined)[] = [
    { name: 'Refresh', text: policy ? policyText(policy) : view.refresh, width: 'broad' },
    tick !== undefined && {
      name: 'Next refresh, UTC',
      text: instantText(new Date(tick).toISOString()),
    },
    policy?.period && { name: 'Periods', text: periodText(policy.period) },
    {
      name: 'Includes transaction',
      text: `${number(view.position)} of ${number(view.basePosition)}`,
    },
    { name: 'Last refresh, UTC', text: instantText(view.finishedAt) },
    job && { name: 'Duration', text: job.runs === 0 ? '–' : duration(job.lastMs) },
    job && { name: 'Refreshes since start', text: number(job.runs) },
    ...jobFacts(job, view.reason),
  ];
  return facts.filter((fact) => typeof fact === 'object');
}

/** Next tick of a view's timer, by the server's clock. */
function tickOf(
  { every, start, zone }: RefreshPolicy,
  view: MaterializedFacts,
): number | undefined {
  const from = start ?? view.timerStart;
  const isKnown = every !== undefined && from !== undefined && view.askedAt !== undefined;
  return isKnown ? nextTick(every, Date.parse(from), Date.parse(view.askedAt), zone) : undefined;
}
