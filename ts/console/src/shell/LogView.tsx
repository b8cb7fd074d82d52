/**
 * Query log: all runs with their times, newest first, and the query plan on request. The log
 * survives reloads.
 */
import { createMemo, createSignal, For, Show, type JSX } from 'solid-js';
import { confirmed } from '../page/questions.js';
import { countText, duration } from '../model/format.js';
import type { LogEntry } from '../state/history.js';
import { type Run, runTitle } from '../state/run.js';
import type { Session } from '../state/session.js';
import { Icon, SPINNING } from '../ui/icons.js';
import type { Tabs } from '../state/tabs.js';
import type { Workspace } from '../state/workspace.js';
import { IconButton } from '../ui/IconButton.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

export function LogView(props: { session: Session }): JSX.Element {
  const { workspace } = props.session;
  const [search, setSearch] = createSignal('');
  const shown = createMemo(() => {
    const terms = search().toLowerCase().split(/\s+/);
    return workspace.log().filter(({ run, tab }) => {
      const text = `${run.statement.text} ${tab} ${runTitle(run)}`.toLowerCase();
      return terms.every((word) => text.includes(word));
    });
  });
  return (
    <Show
      when={workspace.log().length > 0}
      fallback={
        <div class="empty">
          <strong>{texts.log.noQueriesYet}</strong>
          <p>{texts.log.noQueriesHint}</p>
        </div>
      }
    >
      <div class="log-bar">
        <input
          class="input"
          type="search"
          aria-label={texts.log.filterLog}
          placeholder={texts.log.filterLog}
          value={search()}
          onInput={(event) => setSearch(event.currentTarget.value)}
        />
        <span class="hint">
          {fill(texts.common.countOfAll, { count: shown().length, all: workspace.log().length })}
        </span>
        <span class="spring" />
        <button
          class="button small"
          onClick={() =>
            void import('../notebook/templates.js').then(({ fromLog }) =>
              fromLog(workspace, shown()),
            )
          }
        >
          <Icon name="notebook" />
          {texts.log.createNotebook}
        </button>
        <button class="button small ghost" onClick={() => void forget(workspace)}>
          {texts.log.clearLog}
        </button>
      </div>
      <ol class="log" tabindex="0" aria-label={texts.common.queryLog} data-region="log">
        <For each={shown()}>{(entry) => <Entry tabs={props.session.tabs} entry={entry} />}</For>
      </ol>
    </Show>
  );
}

function Entry(props: { tabs: Tabs; entry: LogEntry }): JSX.Element {
  const [isOpen, setOpen] = createSignal(false);
  const { run, at, tab, plan } = props.entry;
  return (
    <li data-state={run.state}>
      <SummaryIcon state={run.state} />
      <time dateTime={at.toISOString()} title={at.toISOString()}>
        {timeText(at)}
      </time>
      <bdi class="log-tab">{tab}</bdi>
      <code title={run.statement.text.slice(0, 2000)}>
        {run.statement.text.replace(/\s+/g, ' ').slice(0, 300)}
      </code>
      <span class="log-outcome">{timedOutcome(run)}</span>
      <span class="log-actions">
        <Show when={plan}>
          <button
            class="button small ghost"
            aria-expanded={isOpen() ? 'true' : 'false'}
            onClick={() => setOpen(!isOpen())}
          >
            {texts.common.plan}
          </button>
        </Show>
        <IconButton
          icon="sql"
          label={texts.common.openNewTab}
          title={texts.common.openNewTab}
          onClick={() => props.tabs.edit(run.statement.text)}
        />
      </span>
      <Show when={isOpen() && plan}>
        {(lines) => (
          <pre class="log-plan" tabindex="0" aria-label={texts.common.plan}>
            {lines().join('\n')}
          </pre>
        )}
      </Show>
    </li>
  );
}

/** Formats the time of a log entry. Entries from earlier days include the date. */
function timeText(at: Date): string {
  const time = at.toTimeString().slice(0, 8);
  const day = `${at.getMonth() + 1}-${at.getDate()}`;
  return at.toDateString() === new Date().toDateString() ? time : `${day} ${time.slice(0, 5)}`;
}

async function forget(workspace: Workspace): Promise<void> {
  const count = workspace.log().length;
  const isSure = await confirmed({
    title: texts.log.clearQuestion,
    text: countText(count, texts.log.entriesDeleted),
    destroy: texts.log.clearLog,
    cancel: texts.common.cancel,
  });
  if (isSure) {
    await workspace.forgetLog();
  }
}

export function SummaryIcon(props: { state: Run['state'] }): JSX.Element {
  const icons = {
    running: ['running', SPINNING],
    done: ['check', 'ok'],
    failed: ['alert', 'error'],
    cancelled: ['stop', 'warn'],
  } as const;
  return <Icon name={icons[props.state][0]} class={icons[props.state][1]} />;
}

function timedOutcome(run: Run): string {
  const server = run.tail?.timings
    ? fill(texts.log.serverTime, { duration: duration(serverMs(run)) })
    : '';
  return runTitle(run) + server;
}

export function serverMs({ tail }: Run): number {
  const timings = tail?.timings;
  return ((timings?.compiler ?? 0) + (timings?.execute ?? 0) + (timings?.count ?? 0)) / 1e6;
}
