/** Shows a column profile that the server computes over all rows while the profile is open. */
import '../styles/profile.css';
import { createEffect, createSignal, on, onCleanup, Show, type JSX } from 'solid-js';
import { aborted } from '../api/client.js';
import { Icon } from '../ui/icons.js';
import { ProfileFacts } from './ProfileFacts.js';
import type { ProfiledColumn, Rows } from './questions.js';
import { summarize, type ColumnSummary } from './summary.js';
import { messageOf } from '../model/message.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

interface ServerSummaryProps {
  readonly column: ProfiledColumn;
  readonly rows: Rows;
  /** Waits for a slot in the queue and returns a function that releases the slot. */
  readonly enter?: (signal: AbortSignal) => Promise<() => void>;
}

export function ServerSummary(props: ServerSummaryProps): JSX.Element {
  const [summary, setSummary] = createSignal<ColumnSummary>();
  const [failure, setFailure] = createSignal('');
  const [attempt, setAttempt] = createSignal(0);
  createEffect(
    on(
      () => [props.column.name, props.column.type, props.rows.from, attempt()] as const,
      () => {
        const abort = new AbortController();
        onCleanup(() => abort.abort());
        setSummary(undefined);
        setFailure('');
        const { column, rows, enter } = props;
        void (async () => {
          const release = await enter?.(abort.signal);
          try {
            abort.signal.throwIfAborted();
            for await (const known of summarize(column, rows, abort.signal)) {
              setSummary(known);
            }
          } catch (cause) {
            if (!aborted(cause) && !abort.signal.aborted) {
              setFailure(messageOf(cause));
            }
          } finally {
            release?.();
          }
        })();
      },
    ),
  );
  const isBusy = (): boolean => failure() === '' && summary()?.isWhole !== true;
  return (
    <div class="server-summary" aria-busy={isBusy()}>
      <Show when={summary()}>
        {(known) => (
          <>
            <Show when={known().sampleName}>
              {(part) => <p class="hint">{fill(texts.profile.basedOn, { rows: part() })}</p>}
            </Show>
            <ProfileFacts profile={known().profile} />
            <Show when={known().missing.length > 0}>
              <p class="hint">
                {fill(texts.profile.timedOut, { figures: known().missing.join(', ') })}
              </p>
            </Show>
          </>
        )}
      </Show>
      <Show when={isBusy()}>
        <p class="hint">
          <Icon name="running" class="spin" /> {texts.common.loading}
        </p>
      </Show>
      <Show when={failure()}>
        <p class="error">
          <bdi>{failure()}</bdi>
        </p>
        <button class="button small" onClick={() => setAttempt(attempt() + 1)}>
          {texts.common.tryAgain}
        </button>
      </Show>
    </div>
  );
}
