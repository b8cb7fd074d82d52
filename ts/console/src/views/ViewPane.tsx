/** A materialized view: how it fares, when it is refreshed, what it shows, what to do with it. */
import '../styles/views.css';
import {
  createEffect,
  createMemo,
  createSignal,
  For,
  on,
  onCleanup,
  onMount,
  Show,
  type JSX,
} from 'solid-js';
import { query } from '../api/client.js';
import { duration, grouped } from '../model/format.js';
import { askToDrop } from '../schema/actions.js';
import { announce, copy, showToast } from '../shell/announce.js';
import { confirmed } from '../shell/ConfirmDialog.js';
import { Icon, type IconName } from '../shell/icons.js';
import { addressOf } from '../shell/pages.js';
import { SqlText } from '../shell/SqlText.js';
import type { Job } from '../state/jobs.js';
import { mayDo, readOwnRights, type OwnGrant } from '../state/own-rights.js';
import { settle } from '../state/schema.js';
import type { Session } from '../state/session.js';
import { instantText } from '../tables/model.js';
import { createStatement } from '../tables/statement.js';
import { ChangeRefreshDialog, RangeDialog, type Attempt } from './dialogs.js';
import { freshnessOf, freshnessText, type MaterializedFacts } from './model.js';
import {
  definitionOf,
  invalidAdvice,
  nextTick,
  periodText,
  policyText,
  refreshStatement,
  type Definition,
  type RefreshPolicy,
} from './refresh.js';

const LOOK_MS = 2000;

interface ViewProps {
  readonly session: Session;
  readonly name: string;
  readonly view: MaterializedFacts;
}

export default function ViewPane(props: ViewProps): JSX.Element {
  const { session } = props;
  const [failure, setFailure] = createSignal('');
  const { statement, read } = statementOf(props, () => setFailure(''));
  const definition = createMemo(() => definitionOf(statement() ?? ''));
  const look = lookAgain(session);
  const attempt: Attempt = async (statement, done) => {
    try {
      await query(statement);
    } catch (cause) {
      return cause instanceof Error ? cause.message : String(cause);
    }
    showToast({ text: done });
    await Promise.all([read(), look()]);
    return '';
  };
  const run = async (statement: string, done: string): Promise<void> => {
    setFailure('');
    setFailure(await attempt(statement, done));
    announce(failure());
  };
  return (
    <div class="view-pane">
      <State view={props.view} job={session.jobs.refreshOf(props.name)} />
      <Actions {...props} definition={definition()} run={run} attempt={attempt} />
      <Show when={failure()}>
        <p class="error view-failure" role="alert">
          <Icon name="alert" />
          <bdi>{failure()}</bdi>
        </p>
      </Show>
      <Facts view={props.view} definition={definition()} job={session.jobs.refreshOf(props.name)} />
      <section class="view-definition">
        <header>
          <h3>Definition</h3>
          <button
            class="button small"
            disabled={statement() === undefined}
            onClick={() => void copy(definition()?.query ?? statement() ?? '', 'Query')}
          >
            <Icon name="copy" />
            Copy query
          </button>
        </header>
        <SqlText text={definition()?.query ?? statement() ?? ''} label="Query of the view" />
      </section>
    </div>
  );
}

/** The statement that makes the view, read anew for another one and on demand. */
function statementOf(
  props: ViewProps,
  onOther: () => void,
): { readonly statement: () => string | undefined; readonly read: () => Promise<void> } {
  const [statement, setStatement] = createSignal<string>();
  const read = async (): Promise<void> => {
    const { name } = props;
    const next = await settle(() => createStatement(name, 'materialized'));
    if (next.state === 'ready' && name === props.name) {
      setStatement(next.value);
    }
  };
  createEffect(
    on(
      () => props.name,
      () => {
        setStatement(undefined);
        onOther();
        void read();
      },
    ),
  );
  return { statement, read };
}

/** Asks how views and jobs fare, often while the page is looked at; and whenever it is called. */
function lookAgain({ schema, jobs }: Session): () => Promise<void> {
  const look = async (): Promise<void> => {
    try {
      await Promise.all([schema.look(), jobs.refresh()]);
    } catch {
      // That the server does not answer is in the status bar.
    }
  };
  onMount(() => {
    void look();
    const timer = setInterval(() => !document.hidden && void look(), LOOK_MS);
    onCleanup(() => clearInterval(timer));
  });
  return look;
}

const STATE_ICONS = {
  invalid: ['alert', 'error'],
  refreshing: ['running', 'spin accent'],
  empty: ['clock', 'muted'],
  behind: ['clock', 'muted'],
  current: ['check', 'ok'],
} as const satisfies Record<string, readonly [IconName, string]>;

function State(props: { view: MaterializedFacts; job: Job | undefined }): JSX.Element {
  const freshness = createMemo(() => freshnessOf(props.view));
  const isFailing = (): boolean => props.job?.state === 'failing';
  const look = (): readonly [IconName, string] =>
    isFailing() ? ['alert', 'error'] : STATE_ICONS[freshness().kind];
  return (
    <div class="view-state" data-state={freshness().kind}>
      <Icon name={look()[0]} class={freshness().isLate && !isFailing() ? 'warn' : look()[1]} />
      <div>
        <strong>
          <bdi>{freshnessText(props.view)}</bdi>
        </strong>
        <Show when={freshness().kind === 'invalid'}>
          <p>{invalidAdvice(props.view.reason)}</p>
        </Show>
        <Show when={freshness().kind === 'empty' && !isFailing()}>
          <p>“Refresh” fills it from all rows of its base.</p>
        </Show>
        <Show when={isFailing()}>
          <p>
            Its refresh fails. It is tried again
            {props.job?.nextRun === undefined
              ? ''
              : ` at ${instantText(props.job.nextRun).slice(11)} UTC`}
            , until its base or its query is mended.
          </p>
        </Show>
      </div>
    </div>
  );
}

interface ActionsProps extends ViewProps {
  readonly definition: Definition | undefined;
  /** What the server says against it is shown below the buttons. */
  readonly run: (statement: string, done: string) => Promise<void>;
  readonly attempt: Attempt;
}

const ACTS = ['refresh', 'alter', 'drop'] as const;
type Act = (typeof ACTS)[number];

const PERMISSIONS: Readonly<Record<Act, string>> = {
  refresh: 'REFRESH MATERIALIZED VIEW',
  alter: 'ALTER MATERIALIZED VIEW',
  drop: 'DROP MATERIALIZED VIEW',
};

function Actions(props: ActionsProps): JSX.Element {
  const [dialog, setDialog] = createSignal<'range' | 'change'>();
  const close = (): void => {
    setDialog(undefined);
  };
  const refusals = refusalsOf(props);
  const button = (act: Act, label: JSX.Element, onClick: () => void): JSX.Element => (
    <button
      class="button small"
      disabled={refusals(act) !== undefined}
      title={refusals(act)}
      onClick={onClick}
    >
      {label}
    </button>
  );
  const reasons = createMemo(() => [...new Set(ACTS.flatMap((act) => refusals(act) ?? []))]);
  return (
    <div class="view-actions" role="group" aria-label="What to do with the view">
      {button(
        'refresh',
        <>
          <Icon name="refresh" />
          Refresh
        </>,
        () => void refresh(props),
      )}
      {button('refresh', 'Refresh fully…', () => void refreshFully(props))}
      {button('refresh', 'Refresh a range…', () => setDialog('range'))}
      {button('alter', 'Change refresh…', () => setDialog('change'))}
      {button('drop', 'Drop…', () => void dropView(props))}
      <For each={reasons()}>{(reason) => <p class="hint">{reason}</p>}</For>
      <Show when={dialog() === 'range'}>
        <RangeDialog name={props.name} attempt={props.attempt} onClose={close} />
      </Show>
      <Show when={dialog() === 'change'}>
        <ChangeRefreshDialog
          name={props.name}
          policy={props.definition?.policy}
          attempt={props.attempt}
          onClose={close}
        />
      </Show>
    </div>
  );
}

/** Why the user may not do something; nothing where it may be tried. */
function refusalsOf(props: ViewProps): (act: Act) => string | undefined {
  const [grants, setGrants] = createSignal<readonly OwnGrant[]>();
  createEffect(
    on(
      () => [props.name, props.session.hasUsers] as const,
      ([, hasUsers]) => {
        if (hasUsers) {
          // Where they cannot be read, the server's own refusal tells.
          void readOwnRights().then(setGrants, () => undefined);
        }
      },
    ),
  );
  return (act) => {
    if (props.session.isReadOnly) {
      return 'This server is read-only: it refuses to refresh, change and drop views.';
    }
    const known = grants();
    const permission = PERMISSIONS[act];
    return known === undefined || mayDo(known, permission, props.name)
      ? undefined
      : `You may not ${VERBS[act]} ${props.name}. An administrator can grant ${permission} on it.`;
  };
}

const VERBS = { refresh: 'refresh', alter: 'change', drop: 'drop' } as const;

async function refresh({ name, run }: ActionsProps): Promise<void> {
  await run(refreshStatement(name), `${name} is being refreshed`);
}

async function refreshFully(props: ActionsProps): Promise<void> {
  const { session, name, view, run } = props;
  const rows = session.schema.entryOf(view.base)?.rows;
  const job = session.jobs.refreshOf(name);
  const size = rows === undefined ? 'all rows of its base' : `${grouped(String(rows))} rows`;
  const last =
    job === undefined || job.runs === 0 ? '' : ` The last refresh took ${duration(job.lastMs)}.`;
  const statement = refreshStatement(name, 'FULL');
  const isSure = await confirmed({
    title: `Compute ${name} anew?`,
    text:
      `That reads ${size}${view.base === undefined ? '' : ` of ${view.base}`}.${last} What the ` +
      'view shows stays until it is done. Rows of the view whose base rows are gone are lost.',
    statement,
    keep: 'Keep it as it is',
    destroy: 'Refresh fully',
  });
  if (isSure) {
    await run(statement, `${name} is being computed anew`);
  }
}

async function dropView({ session, name, run }: ActionsProps): Promise<void> {
  const entry = session.schema.entryOf(name);
  const statement = entry && (await askToDrop(entry));
  if (statement !== undefined) {
    await run(statement, `${name} is dropped`);
  }
}

interface FactsProps {
  readonly view: MaterializedFacts;
  readonly definition: Definition | undefined;
  readonly job: Job | undefined;
}

function Facts(props: FactsProps): JSX.Element {
  const facts = createMemo(() => factsOf(props));
  return (
    <dl class="facts view-facts">
      <div>
        <dt>Base</dt>
        <dd class="data">
          <Show when={props.view.base} fallback="not for you to see">
            {(base) => (
              <a href={addressOf('tables', base())}>
                <bdi>{base()}</bdi>
              </a>
            )}
          </Show>
        </dd>
      </div>
      <For each={facts()}>
        {([name, text, isBad]) => (
          <div classList={{ broad: name === 'Refresh', wide: isBad === true }}>
            <dt>{name}</dt>
            <dd classList={{ error: isBad === true }} title={text}>
              <bdi>{text}</bdi>
            </dd>
          </div>
        )}
      </For>
    </dl>
  );
}

type FactText = readonly [name: string, text: string, isBad?: boolean];

function factsOf({ view, definition, job }: FactsProps): FactText[] {
  const policy = definition?.policy;
  const tick = policy && tickOf(policy, view);
  const number = (value: number | undefined): string =>
    value === undefined ? '–' : grouped(String(value));
  const facts: (FactText | false | undefined)[] = [
    ['Refresh', policy ? policyText(policy) : view.refresh],
    tick !== undefined && ['Next tick, UTC', instantText(new Date(tick).toISOString())],
    policy?.period && ['Periods', periodText(policy.period)],
    ['Shows transaction', `${number(view.position)} of ${number(view.basePosition)}`],
    ['Last refresh, UTC', instantText(view.finishedAt)],
    job && ['Took', job.runs === 0 ? '–' : duration(job.lastMs)],
    job && ['Refreshes since the start', number(job.runs)],
    job && ['Job', job.failures > 0 ? `${job.state}, ${job.failures} times` : job.state],
    job?.nextRun !== undefined && [
      job.state === 'failing' ? 'Next try, UTC' : 'Rests until, UTC',
      instantText(job.nextRun),
    ],
    job?.lastError !== undefined &&
      job.lastError !== view.reason && ['Last error', job.lastError, true],
  ];
  return facts.filter((fact) => typeof fact === 'object');
}

/** When the timer of a view ticks next, by the server's clock. */
function tickOf(
  { every, start, zone }: RefreshPolicy,
  view: MaterializedFacts,
): number | undefined {
  const from = start ?? view.timerStart;
  const isKnown = every !== undefined && from !== undefined && view.askedAt !== undefined;
  return isKnown ? nextTick(every, Date.parse(from), Date.parse(view.askedAt), zone) : undefined;
}
