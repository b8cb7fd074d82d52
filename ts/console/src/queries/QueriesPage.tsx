/** What runs on the server now, for whom and since when; any of it can be cancelled. */
import {
  createComputed,
  createSignal,
  For,
  Match,
  onCleanup,
  onMount,
  Show,
  Switch,
  type JSX,
} from 'solid-js';
import { createStore, reconcile } from 'solid-js/store';
import { duration } from '../model/format.js';
import { announce, showToast } from '../shell/announce.js';
import { Icon } from '../shell/icons.js';
import type { RunningQuery } from '../state/activity.js';
import type { Session } from '../state/session.js';

const REFRESH_MS = 1000;

export default function QueriesPage(props: { session: Session }): JSX.Element {
  const { activity } = props.session;
  const [now, setNow] = createSignal(Date.now());
  onMount(() => {
    const look = (): void => {
      setNow(Date.now());
      if (!document.hidden) {
        void activity.refresh();
      }
    };
    look();
    const timer = setInterval(look, REFRESH_MS);
    onCleanup(() => clearInterval(timer));
  });
  const queries = (): readonly RunningQuery[] => {
    const loaded = activity.queries();
    return loaded.state === 'ready' ? loaded.value : [];
  };
  const failure = (): string => {
    const loaded = activity.queries();
    return loaded.state === 'failed' ? loaded.message : '';
  };

  return (
    <section class="page" aria-labelledby="queries-title" data-region="queries">
      <header class="page-head">
        <h1 id="queries-title">Running queries</h1>
        <p class="hint">Of all clients of this server. The list is asked for every second.</p>
      </header>
      <Switch
        fallback={
          <div class="empty">
            <strong>Nothing is running</strong>
            <p>A query appears here while the server works on it, whoever sent it.</p>
          </div>
        }
      >
        <Match when={failure()}>
          <div class="empty">
            <strong>The running queries could not be read</strong>
            <p>{failure()}</p>
          </div>
        </Match>
        <Match when={queries().length > 0}>
          <QueryTable session={props.session} queries={queries()} now={now()} />
        </Match>
      </Switch>
    </section>
  );
}

function QueryTable(props: {
  session: Session;
  queries: readonly RunningQuery[];
  now: number;
}): JSX.Element {
  // Rows keep their identity by id, and so their elements, and so the focus.
  const [kept, setKept] = createStore<{ queries: RunningQuery[] }>({ queries: [] });
  createComputed(() => setKept('queries', reconcile([...props.queries], { key: 'id' })));
  return (
    <div class="page-table" role="region" aria-label="Running queries" tabindex="0">
      <table class="listing">
        <thead>
          <tr>
            <th scope="col">Statement</th>
            <th scope="col">User</th>
            <th scope="col">Started, UTC</th>
            <th scope="col" class="num">
              Running for
            </th>
            <th scope="col">
              <span class="visually-hidden">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          <For each={kept.queries}>
            {(running) => <QueryRow session={props.session} query={running} now={props.now} />}
          </For>
        </tbody>
      </table>
    </div>
  );
}

function QueryRow(props: { session: Session; query: RunningQuery; now: number }): JSX.Element {
  const [stopping, setStopping] = createSignal(false);
  const age = (): number => Math.max(0, props.now - Date.parse(props.query.startedAt));
  const cancel = async (): Promise<void> => {
    setStopping(true);
    try {
      await props.session.activity.cancel(props.query.id);
      announce('The query is being cancelled.');
    } catch (cause) {
      setStopping(false);
      showToast({ text: cause instanceof Error ? cause.message : String(cause) });
    }
  };
  return (
    <tr>
      <td class="statement-cell">
        <code title={props.query.text}>
          <bdi>{props.query.text.replace(/\s+/g, ' ').slice(0, 500)}</bdi>
        </code>
      </td>
      <td>
        <bdi>{props.query.user}</bdi>
      </td>
      <td class="data">{props.query.startedAt.slice(11, 19)}</td>
      <td class="data num">{duration(age())}</td>
      <td class="actions">
        <button
          class="button small ghost"
          onClick={() => props.session.edit(props.query.text)}
          title="Open the statement in a new tab"
        >
          Open
        </button>
        <Show
          when={!stopping() && !props.query.isCancelled}
          fallback={
            <span class="badge warn">
              <Icon name="stop" />
              stopping
            </span>
          }
        >
          <button class="button small" onClick={() => void cancel()}>
            <Icon name="stop" />
            Cancel
          </button>
        </Show>
      </td>
    </tr>
  );
}
