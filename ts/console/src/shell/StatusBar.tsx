/** Status bar: shows connection, activity, ingestion, memory, time zone and server version. */
import { createMemo, Show, type JSX } from 'solid-js';
import { grouped, bytesText } from '../model/format.js';
import { Account } from '../signin/Account.js';
import type { Job } from '../state/jobs.js';
import { RETRY_MS } from '../state/live.js';
import type { Session } from '../state/session.js';
import type { Vital } from '../state/vitals.js';
import { sparkline } from '../model/rates.js';
import { Icon } from '../ui/icons.js';
import { addressOf } from '../page/pages.js';
import { zone } from '../page/zone.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

const SPARK_WIDTH = 60;
const SPARK_HEIGHT = 14;

export function StatusBar(props: { session: Session }): JSX.Element {
  const version = createMemo(() => {
    const value = props.session.server.settings()?.config['release.version'];
    return typeof value === 'string' ? fill(texts.status.version, { version: value }) : '';
  });
  const suspended = createMemo(() => {
    return props.session.schema.known.filter((table) => table.suspended).length;
  });
  const running = (): number => props.session.activity.count;
  return (
    <footer class="status" aria-label={texts.status.status}>
      <Show
        when={props.session.server.connection() !== 'lost'}
        fallback={
          <span class="error">
            <Icon name="alert" />
            {texts.server.notRespondingDraftsSafe}
            <span class="wide-only">
              {fill(texts.status.nextAttempt, { seconds: RETRY_MS / 1000 })}
            </span>
          </span>
        }
      >
        <span class={props.session.server.connection() === 'connected' ? 'ok' : ''}>
          <Icon name={props.session.server.connection() === 'connected' ? 'check' : 'running'} />
          {props.session.server.connection() === 'connected'
            ? texts.status.connected
            : texts.status.connecting}
        </span>
      </Show>
      <span>{location.host}</span>
      <Show when={props.session.server.isReadOnly}>
        <span title={texts.status.readOnlyHint}>{texts.status.readOnly}</span>
      </Show>
      <Show when={running() > 0 && props.session.server.connection() !== 'lost'}>
        <a href={addressOf('queries')} title={texts.common.runningQueries}>
          <Icon name="queries" />
          {fill(texts.status.runningQueries, { count: running() })}
        </a>
      </Show>
      <Show when={suspended() > 0}>
        <a class="warn" href={addressOf('tables')} title={texts.status.suspendedHint}>
          <Icon name="alert" />
          {fill(texts.status.suspendedTables, { count: suspended() })}
        </a>
      </Show>
      <TroubledJobs jobs={props.session.jobs.troubled} />
      <span class="spring" />
      <VitalFacts now={props.session.vitals.now()} />
      <Account workspace={props.session.workspace} server={props.session.server} />
      <span>{zone() === 'utc' ? 'UTC' : texts.status.localTime}</span>
      <span>{version()}</span>
    </footer>
  );
}

/** Warns of background jobs that fail or that have stopped and will not restart automatically. */
function TroubledJobs(props: { jobs: readonly Job[] }): JSX.Element {
  const text = (): string => {
    const count = (state: Job['state']): number =>
      props.jobs.filter((job) => job.state === state).length;
    return (['failing', 'stopped'] as const)
      .filter((state) => count(state) > 0)
      .map((state) => `${count(state)} ${state}`)
      .join(', ');
  };
  return (
    <Show when={props.jobs.length > 0}>
      <a class="warn" href={addressOf('jobs', 'trouble')} title={texts.common.backgroundJobs}>
        <Icon name="alert" />
        {fill(texts.status.jobs, { states: text() })}
      </a>
    </Show>
  );
}

function VitalFacts(props: { now: Vital }): JSX.Element {
  return (
    <>
      <Show when={props.now.history.some((rate) => rate > 0)}>
        <a class="wide-only" href={addressOf('tables')} title={texts.status.ingestingHint}>
          {texts.status.ingesting}{' '}
          <svg
            class="spark-line"
            width={SPARK_WIDTH}
            height={SPARK_HEIGHT}
            viewBox={`0 -1 ${SPARK_WIDTH} ${SPARK_HEIGHT + 2}`}
            aria-hidden="true"
          >
            <path d={sparkline(props.now.history, SPARK_WIDTH, SPARK_HEIGHT)} />
          </svg>
          {fill(texts.status.rowsPerSecond, {
            count: grouped(String(Math.round(props.now.rate ?? 0))),
          })}
        </a>
      </Show>
      <Show when={props.now.memory}>
        {(bytes) => (
          <a class="wide-only" href={addressOf('queries')} title={texts.status.memoryHint}>
            {fill(texts.status.memory, { bytes: bytesText(bytes()) })}
          </a>
        )}
      </Show>
    </>
  );
}
