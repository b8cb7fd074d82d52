/** Page that lists the server's background jobs, with their last runs, failures and next runs. */
import { createMemo, createSignal, For, Show, type JSX } from 'solid-js';
import { SearchField } from '../dialogs/SearchField.js';
import { countText, duration, grouped, timestampText } from '../model/format.js';
import { Icon, type IconName } from '../ui/icons.js';
import { LivePage } from '../ui/LivePage.js';
import { addressOf, openPage, route } from '../page/pages.js';
import type { Job, JobState, Jobs } from '../state/jobs.js';
import { FILTERS, filterOf, filtered, jobTitle, type JobFilter } from './model.js';
import { Listing } from '../ui/Listing.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

const REFRESH_MS = 2000;

export default function JobsPage(props: { jobs: Jobs }): JSX.Element {
  const { jobs } = props;
  return (
    <LivePage
      page="jobs"
      title={texts.common.backgroundJobs}
      hint={overview}
      everyMs={REFRESH_MS}
      poll={() => void jobs.refresh()}
      loaded={jobs.all()}
      key="id"
      unread={texts.jobs.notLoaded}
      empty={
        <>
          <strong>{texts.jobs.noJobs}</strong>
          <p>{texts.jobs.noJobsHint}</p>
        </>
      }
    >
      {(all) => <FilteredJobs jobs={all} />}
    </LivePage>
  );
}

function overview(jobs: readonly Job[]): string {
  const troubled = jobs.filter(({ state }) => state === 'failing' || state === 'stopped').length;
  const count = countText(jobs.length, texts.counts.jobs);
  return troubled === 0 ? count : fill(texts.jobs.overview, { jobs: count, count: troubled });
}

function FilteredJobs(props: { jobs: readonly Job[] }): JSX.Element {
  const [search, setSearch] = createSignal('');
  const filter = (): JobFilter => filterOf(route().subject);
  const shown = createMemo(() => filtered(props.jobs, filter(), search()));
  return (
    <>
      <div class="page-filters">
        <SearchField placeholder={texts.jobs.filter} search={setSearch} />
        <span class="segmented" role="group" aria-label={texts.jobs.jobState}>
          <For each={FILTERS}>
            {(one) => (
              <button
                aria-pressed={filter() === one ? 'true' : 'false'}
                onClick={() => openPage('jobs', one === 'all' ? '' : one)}
              >
                {FILTER_NAMES[one]}
              </button>
            )}
          </For>
        </span>
      </div>
      <Show
        when={shown().length > 0}
        fallback={
          <div class="empty">
            <strong>{texts.jobs.noMatchingJobs}</strong>
            <p>
              {filter() === 'trouble' && search() === ''
                ? texts.jobs.noProblems
                : texts.jobs.tryAnotherFilter}
            </p>
          </div>
        }
      >
        <JobTable jobs={shown()} />
      </Show>
    </>
  );
}

const FILTER_NAMES: Readonly<Record<JobFilter, string>> = {
  all: texts.jobs.all,
  running: texts.common.running,
  trouble: texts.jobs.withProblems,
  resting: texts.jobs.idle,
};

function JobTable(props: { jobs: readonly Job[] }): JSX.Element {
  return (
    <div class="page-table" role="region" aria-label={texts.jobs.list} tabindex="0">
      <Listing
        class="listing jobs"
        heads={[
          [texts.common.job],
          [texts.common.state],
          [texts.common.lastError],
          [texts.jobs.lastRunUtc],
          [texts.common.duration, 'num'],
          [texts.common.nextRunUtc],
          [texts.jobs.runs, 'num'],
        ]}
        rows={props.jobs}
      >
        {(job) => <JobRow job={job} />}
      </Listing>
    </div>
  );
}

function JobRow(props: { job: Job }): JSX.Element {
  return (
    <tr>
      <th scope="row">
        {jobTitle(props.job)}{' '}
        <Show when={props.job.name !== ''}>
          <a class="data" href={addressOf('tables', props.job.name)}>
            <bdi>{props.job.name}</bdi>
          </a>
        </Show>
      </th>
      <td>
        <JobStateBadge job={props.job} />
      </td>
      <td class="job-error">
        <Show when={props.job.lastError} fallback={<span class="hint">{texts.common.none}</span>}>
          {(error) => <bdi title={error()}>{error()}</bdi>}
        </Show>
      </td>
      <td class="data">{timestampText(props.job.lastStart)}</td>
      <td class="data num">{props.job.runs === 0 ? '–' : duration(props.job.lastMs)}</td>
      <td class="data">{timestampText(props.job.nextRun)}</td>
      <td class="data num">{grouped(String(props.job.runs))}</td>
    </tr>
  );
}

const APPEARANCES: Readonly<Record<JobState, readonly [IconName, string]>> = {
  running: ['running', 'accent'],
  waiting: ['check', ''],
  failing: ['alert', 'error'],
  paused: ['pause', 'quiet'],
  stopped: ['stop', 'warn'],
};

function JobStateBadge(props: { job: Job }): JSX.Element {
  const appearance = (): readonly [IconName, string] => APPEARANCES[props.job.state];
  return (
    <Show
      when={props.job.state !== 'waiting'}
      fallback={
        <span class="hint" title={texts.jobs.waitingHint}>
          {texts.jobs.waiting}
        </span>
      }
    >
      <span class={`badge ${appearance()[1]}`}>
        <Icon name={appearance()[0]} class={props.job.state === 'running' ? 'spin' : ''} />
        {props.job.state}
        <Show when={props.job.failures > 1}>
          {' '}
          {countText(props.job.failures, texts.counts.times)}
        </Show>
      </span>
    </Show>
  );
}
