/** Shows a materialized or live view: its state, its properties and its actions. */
import '../styles/views.css';
import {
  createEffect,
  createMemo,
  createSignal,
  on,
  onCleanup,
  onMount,
  Show,
  type JSX,
} from 'solid-js';
import { query } from '../api/client.js';
import { announce, showToast } from '../page/notices.js';
import { copy } from '../ui/clipboard.js';
import { Icon, SPINNING, type IconName } from '../ui/icons.js';
import { SqlText } from '../ui/SqlText.js';
import type { Job } from '../state/jobs.js';
import { createStatement } from '../state/schema.js';
import { settle } from '../state/loading.js';
import type { Session } from '../state/session.js';
import { timestampText } from '../model/format.js';
import { createdView } from './definition.js';
import { liveAdvice } from './live.js';
import { LiveView } from './LiveView.js';
import { MaterializedView } from './MaterializedView.js';
import {
  freshnessOf,
  freshnessText,
  type LiveFacts,
  type MaterializedFacts,
  type ViewFacts,
} from '../model/views.js';
import { invalidAdvice } from './refresh.js';
import type { Attempt } from './StatementDialog.js';
import { messageOf } from '../model/message.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

const POLL_MS = 2000;

interface ViewProps {
  readonly session: Session;
  readonly name: string;
  readonly view: ViewFacts;
}

export default function ViewPane(props: ViewProps): JSX.Element {
  const { session } = props;
  const [failure, setFailure] = createSignal('');
  const { statement, read } = statementOf(props, () => setFailure(''));
  const shown = createMemo(() => createdView(statement() ?? '')?.query_text ?? statement() ?? '');
  const poll = pollerOf(session);
  const attempt: Attempt = async (text, done) => {
    await query(text);
    showToast({ text: done });
    await Promise.all([read(), poll()]);
    return '';
  };
  const run = async (text: string, done: string): Promise<void> => {
    setFailure('');
    setFailure(await attempt(text, done).catch(messageOf));
    announce(failure());
  };
  const job = (): Job | undefined => session.jobs.refreshOf(props.name);
  const live = (): LiveFacts | undefined => (props.view.form === 'live' ? props.view : undefined);
  const material = (): MaterializedFacts | undefined =>
    props.view.form === 'materialized' ? props.view : undefined;
  const shared = { session, run, attempt };
  return (
    <div class="view-pane">
      <State view={props.view} job={job()} />
      <Show when={material()}>
        {(view) => (
          <MaterializedView
            {...shared}
            name={props.name}
            view={view()}
            statement={statement()}
            job={job()}
            failure={failure()}
          />
        )}
      </Show>
      <Show when={live()}>
        {(view) => (
          <LiveView
            {...shared}
            name={props.name}
            view={view()}
            statement={statement()}
            job={job()}
            failure={failure()}
          />
        )}
      </Show>
      <section class="view-definition">
        <header>
          <h3>{texts.views.definition}</h3>
          <button
            class="button small"
            disabled={statement() === undefined}
            onClick={() => void copy(shown(), texts.common.query)}
          >
            <Icon name="copy" />
            {texts.views.copyQuery}
          </button>
        </header>
        <SqlText text={shown()} label={texts.views.viewQuery} />
      </section>
    </div>
  );
}

/**
 * Loads the statement that creates the view. It is loaded again for a different view, and on
 * request.
 */
function statementOf(
  props: ViewProps,
  onOther: () => void,
): { readonly statement: () => string | undefined; readonly read: () => Promise<void> } {
  const [statement, setStatement] = createSignal<string>();
  const read = async (): Promise<void> => {
    const { name, view } = props;
    const next = await settle(() => createStatement(name, view.form));
    if (next.state === 'ready' && name === props.name) {
      setStatement(next.value);
    }
  };
  // Each poll changes the view's properties, but not its name and kind.
  const which = createMemo(() => `${props.view.form} ${props.name}`);
  createEffect(
    on(which, () => {
      setStatement(undefined);
      onOther();
      void read();
    }),
  );
  return { statement, read };
}

/** Polls views and jobs while the page is visible. Returns a function that polls immediately. */
function pollerOf({ schema, jobs }: Session): () => Promise<void> {
  const poll = async (): Promise<void> => {
    try {
      await Promise.all([schema.poll(), jobs.refresh()]);
    } catch {
      // The status bar reports a lost connection.
    }
  };
  onMount(() => {
    void poll();
    const timer = setInterval(() => !document.hidden && void poll(), POLL_MS);
    onCleanup(() => clearInterval(timer));
  });
  return poll;
}

const STATE_ICONS = {
  invalid: ['alert', 'error'],
  suspended: ['pause', 'muted'],
  seeding: ['running', SPINNING],
  refreshing: ['running', SPINNING],
  empty: ['clock', 'muted'],
  behind: ['clock', 'muted'],
  current: ['check', 'ok'],
} as const satisfies Record<string, readonly [IconName, string]>;

function State(props: { view: ViewFacts; job: Job | undefined }): JSX.Element {
  const freshness = createMemo(() => freshnessOf(props.view));
  const isFailing = (): boolean => props.job?.state === 'failing';
  const appearance = (): readonly [IconName, string] =>
    isFailing() ? ['alert', 'error'] : STATE_ICONS[freshness().kind];
  return (
    <div class="view-state" data-state={freshness().kind}>
      <Icon
        name={appearance()[0]}
        class={freshness().isLate && !isFailing() ? 'warn' : appearance()[1]}
      />
      <div>
        <strong>
          <bdi>{freshnessText(props.view)}</bdi>
        </strong>
        <Show when={adviceOf(props.view, props.job)}>{(advice) => <p>{advice()}</p>}</Show>
      </div>
    </div>
  );
}

/** Explains the view's state and tells the user what to do about it. */
function adviceOf(view: ViewFacts, job: Job | undefined): string | undefined {
  if (job?.state === 'failing') {
    const next =
      job.nextRun === undefined
        ? ''
        : fill(texts.views.atTime, { time: timestampText(job.nextRun).slice(11) });
    return fill(texts.views.refreshFailing, { time: next });
  }
  switch (freshnessOf(view).kind) {
    case 'invalid':
      return view.form === 'live' ? liveAdvice(view.reason) : invalidAdvice(view.reason);
    case 'suspended':
      return texts.views.suspendedHint;
    case 'seeding':
      return texts.views.seedingHint;
    case 'empty':
      return texts.views.notFilledHint;
    default:
      return undefined;
  }
}
