/** Pending changes as SQL, in execution order. */
import { For, Show, type JSX } from 'solid-js';
import { announce } from '../page/notices.js';
import { copy } from '../ui/clipboard.js';
import { Icon } from '../ui/icons.js';
import type { AccessState } from './state.js';
import { Failure } from '../ui/Failure.js';

export function PendingPane(props: { state: AccessState }): JSX.Element {
  const statements = (): string[] => props.state.steps().map(({ statement }) => statement);
  const count = (): number => props.state.changes().length;
  const apply = async (): Promise<void> => {
    if (await props.state.apply()) {
      announce('Changes applied.');
    }
  };
  return (
    <aside class="access-pending" aria-label="Pending changes">
      <strong>
        {count()} {count() === 1 ? 'change' : 'changes'} pending
      </strong>
      <p class="hint">These statements run in this order and stop at the first error.</p>
      <ol>
        <For each={statements()}>{(statement) => <li class="data">{statement}</li>}</For>
      </ol>
      <Failure text={props.state.failure()} />
      <Show when={statements().length > 0}>
        <div class="details-actions">
          <button class="button primary" data-action="apply" onClick={() => void apply()}>
            Apply
          </button>
          <button class="button" onClick={() => props.state.discard()}>
            Discard
          </button>
          <button
            class="button ghost"
            onClick={() => void copy(`${statements().join(';\n')};`, 'SQL')}
          >
            <Icon name="copy" />
            Copy SQL
          </button>
        </div>
      </Show>
    </aside>
  );
}
