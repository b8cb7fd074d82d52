/** Status bar: connection, activity, ingestion, memory, time zone, server version. */
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

const SPARK_WIDTH = 60;
const SPARK_HEIGHT = 14;

export function StatusBar(props: { session: Session }): JSX.Element {
  const version = createMemo(() => {
    const value = props.session.server.settings()?.config['release.version'];
    return typeof value === 'string' ? `Tidemark ${value}` : '';
  });
  const suspended = createMemo(() => {
    return props.session.schema.known.filter((table) => table.suspended).length;
  });
  const running = (): number => props.session.activity.count;
  return (
    <footer class="status" aria-label="Status">
      <Show
        when={props.session.server.connection() !== 'lost'}
        fallback={
          <span class="error">
            <Icon name="alert" />
            The server is not responding. Your drafts are safe.
            <span class="wide-only">Next attempt within {RETRY_MS / 1000} s.</span>
          </span>
        }
      >
        <span class={props.session.server.connection() === 'connected' ? 'ok' : ''}>
          <Icon name={props.session.server.connection() === 'connected' ? 'check' : 'running'} />
          {props.session.server.connection() === 'connected' ? 'Connected' : 'Connecting'}
        </span>
      </Show>
      <span>{location.host}</span>
      <Show when={props.session.server.isReadOnly}>
        <span title="The server refuses all writes">Read-only</span>
      </Show>
      <Show when={running() > 0 && props.session.server.connection() !== 'lost'}>
        <a href={addressOf('queries')} title="Running queries">
          <Icon name="queries" />
          {running()} running
        </a>
      </Show>
      <Show when={suspended() > 0}>
        <a class="warn" href={addressOf('tables')} title="Tables that accept no writes">
          <Icon name="alert" />
          {suspended()} suspended
        </a>
      </Show>
      <TroubledJobs jobs={props.session.jobs.troubled} />
      <span class="spring" />
      <VitalFacts now={props.session.vitals.now()} />
      <Account workspace={props.session.workspace} server={props.session.server} />
      <span>{zone() === 'utc' ? 'UTC' : 'Local time'}</span>
      <span>{version()}</span>
    </footer>
  );
}

/** Warns of background jobs that fail, or that will not restart by themselves. */
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
      <a class="warn" href={addressOf('jobs', 'trouble')} title="Background jobs">
        <Icon name="alert" />
        Jobs: {text()}
      </a>
    </Show>
  );
}

function VitalFacts(props: { now: Vital }): JSX.Element {
  return (
    <>
      <Show when={props.now.history.some((rate) => rate > 0)}>
        <a class="wide-only" href={addressOf('tables')} title="Rows written to all tables">
          Ingesting{' '}
          <svg
            class="spark-line"
            width={SPARK_WIDTH}
            height={SPARK_HEIGHT}
            viewBox={`0 -1 ${SPARK_WIDTH} ${SPARK_HEIGHT + 2}`}
            aria-hidden="true"
          >
            <path d={sparkline(props.now.history, SPARK_WIDTH, SPARK_HEIGHT)} />
          </svg>
          {grouped(String(Math.round(props.now.rate ?? 0)))} rows/s
        </a>
      </Show>
      <Show when={props.now.memory}>
        {(bytes) => (
          <a class="wide-only" href={addressOf('queries')} title="Memory used by the server">
            Memory {bytesText(bytes())}
          </a>
        )}
      </Show>
    </>
  );
}
