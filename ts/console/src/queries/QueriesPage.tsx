/**
 * Lists the server's running queries with their user and start time. Each query can be cancelled.
 */
import { createSignal, Show, type JSX } from 'solid-js';
import { duration } from '../model/format.js';
import { announce, showFailure } from '../page/notices.js';
import { Icon } from '../ui/icons.js';
import { LivePage } from '../ui/LivePage.js';
import type { RunningQuery, Activity } from '../state/activity.js';
import type { Tabs } from '../state/tabs.js';
import { Listing } from '../ui/Listing.js';
import { texts } from '../texts.js';

const REFRESH_MS = 1000;

interface QueryActions {
  readonly activity: Activity;
  readonly tabs: Tabs;
}

export default function QueriesPage(props: QueryActions): JSX.Element {
  const { activity } = props;
  const [now, setNow] = createSignal(Date.now());
  const refresh = (): void => {
    setNow(Date.now());
    void activity.refresh();
  };
  return (
    <LivePage
      page="queries"
      title={texts.common.runningQueries}
      hint={() => texts.queries.hint}
      everyMs={REFRESH_MS}
      poll={refresh}
      loaded={activity.queries()}
      key="id"
      unread={texts.queries.notLoaded}
      empty={
        <>
          <strong>{texts.queries.noQueries}</strong>
          <p>{texts.queries.noQueriesHint}</p>
        </>
      }
    >
      {(queries) => <QueryTable {...props} queries={queries} now={now()} />}
    </LivePage>
  );
}

function QueryTable(
  props: QueryActions & { queries: readonly RunningQuery[]; now: number },
): JSX.Element {
  return (
    <div class="page-table" role="region" aria-label={texts.queries.list} tabindex="0">
      <Listing
        heads={[
          [texts.common.statement],
          [texts.common.user],
          [texts.queries.startedUtc],
          [texts.queries.runningFor, 'num'],
          [texts.common.actions, 'actions'],
        ]}
        rows={props.queries}
      >
        {(running) => <QueryRow {...props} query={running} />}
      </Listing>
    </div>
  );
}

function QueryRow(props: QueryActions & { query: RunningQuery; now: number }): JSX.Element {
  const [stopping, setStopping] = createSignal(false);
  const age = (): number => Math.max(0, props.now - Date.parse(props.query.startedAt));
  const cancel = async (): Promise<void> => {
    setStopping(true);
    try {
      await props.activity.cancel(props.query.id);
      announce(texts.queries.cancelling);
    } catch (cause) {
      setStopping(false);
      showFailure(cause);
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
          onClick={() => props.tabs.edit(props.query.text)}
          title={texts.common.openNewTab}
        >
          {texts.common.open}
        </button>
        <Show
          when={!stopping() && !props.query.isCancelled}
          fallback={
            <span class="badge warn">
              <Icon name="stop" />
              {texts.queries.beingCancelled}
            </span>
          }
        >
          <button class="button small" onClick={() => void cancel()}>
            <Icon name="stop" />
            {texts.common.cancel}
          </button>
        </Show>
      </td>
    </tr>
  );
}
