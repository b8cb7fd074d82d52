/** Shows a live view: its clauses, its progress, its last repair and its actions. */
import { createEffect, createMemo, createSignal, on, type JSX } from 'solid-js';
import { query } from '../api/client.js';
import { duration, grouped, bytesText } from '../model/format.js';
import { settle } from '../state/loading.js';
import {
  liveDefinitionOf,
  liveProgressOf,
  liveQuestion,
  repairText,
  startText,
  suspendStatement,
  type LiveDefinition,
  type LiveProgress,
} from './live.js';
import { ageText, freshnessOf, lagText, type LiveFacts } from '../model/views.js';
import {
  Actions,
  dropAction,
  Facts,
  jobFacts,
  type Fact,
  type PaneProps,
  type ViewAction,
} from './pane.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

type Props = PaneProps<LiveFacts>;

export function LiveView(props: Props): JSX.Element {
  const definition = createMemo(() => liveDefinitionOf(props.statement ?? ''));
  const progress = progressOf(props);
  // The server does not report whether an invalid view is also suspended.
  const isOn = createMemo(() => props.view.status !== 'invalid' && !props.view.isSuspended);
  const actions = createMemo(() => [switching(props, isOn()), dropAction(props, 'DROP LIVE VIEW')]);
  return (
    <>
      <Actions
        session={props.session}
        name={props.name}
        actions={actions()}
        failure={props.failure}
      />
      <Facts base={props.view.base} facts={factsOf(props, definition(), progress())} />
    </>
  );
}

/** Loads the progress of the view, again whenever the list of views is refreshed. */
function progressOf(props: Props): () => LiveProgress | undefined {
  const [progress, setProgress] = createSignal<LiveProgress>();
  createEffect(
    on(
      () => [props.name, props.view.reportedAt] as const,
      ([name], before) => {
        if (before?.[0] !== name) {
          setProgress(undefined);
        }
        void settle(() => query(liveQuestion(name))).then((loaded) => {
          if (loaded.state === 'ready' && name === props.name) {
            setProgress(liveProgressOf(loaded.value));
          }
        });
      },
    ),
  );
  return progress;
}

/** Returns the action that suspends or resumes a view. */
function switching(props: Props, isOn: boolean): ViewAction {
  const run = (): Promise<void> => {
    const { name } = props;
    const done = isOn
      ? fill(texts.liveViews.wasSuspended, { name })
      : fill(texts.liveViews.wasResumed, { name });
    return props.run(suspendStatement(name, isOn), done);
  };
  return {
    label: isOn ? texts.liveViews.suspend : texts.common.resume,
    icon: isOn ? 'pause' : 'play',
    permission: 'RESUME WAL',
    verb: texts.liveViews.toSuspendOrResume,
    run: () => void run(),
  };
}

function factsOf(
  { view, job }: Props,
  definition: LiveDefinition | undefined,
  progress: LiveProgress | undefined,
): Fact[] {
  const number = (value: number | undefined): string =>
    value === undefined ? '–' : grouped(String(value));
  const clauses: Fact[] = definition
    ? [
        { name: texts.liveViews.flushEvery, text: definition.flushEvery },
        { name: texts.liveViews.inMemory, text: definition.inMemory },
        {
          name: texts.liveViews.startFrom,
          text: startText(definition, progress?.bound),
          width: 'broad',
        },
      ]
    : [];
  return [
    ...clauses,
    { name: texts.liveViews.lag, text: lagText(view) ?? '–' },
    {
      name: texts.liveViews.lastRefresh,
      text: view.ageMs === undefined ? '–' : fill(texts.common.ago, { age: ageText(view.ageMs) }),
    },
    {
      name: texts.common.duration,
      text: job === undefined || job.runs === 0 ? '–' : duration(job.lastMs),
    },
    { name: texts.common.refreshesSinceStart, text: number(job?.runs) },
    { name: texts.liveViews.functionMemory, text: bytesText(progress?.bytes ?? 0) },
    {
      name: texts.liveViews.consecutiveFailures,
      text: number(progress?.failures),
      isBad: isFailing(progress),
    },
    { name: texts.liveViews.lastRepairUtc, text: repairText(progress?.repair), width: 'wide' },
    ...jobFacts(job, freshnessOf(view).kind === 'invalid' ? view.reason : undefined),
  ];
}

function isFailing(progress: LiveProgress | undefined): boolean {
  return (progress?.failures ?? 0) > 0;
}
